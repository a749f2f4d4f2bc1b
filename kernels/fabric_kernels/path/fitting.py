"""What fits a network of switches: the limits of `clos` on plain numbers, and what to do."""

import math

from fabric_kernels.inputs import ScaleOut, UpperTiers
from fabric_kernels.maths.switch_ports import ROUNDING
from fabric_kernels.path.clos import MOST_TIERS

_RATIOS = ("oversubscription", "spine_oversubscription", "core_oversubscription")


def most_ports(radix: float, ratios: tuple[float, ...]) -> float:
    """Ports to GPUs of the largest network of four tiers: radix down_1 down_2 down_3, or radix."""
    most = radix
    for ratio in ratios:
        up = max(math.floor(radix / (1 + ratio) + ROUNDING), 1)
        most *= max(min(math.floor(ratio * up + ROUNDING), radix - up), 1)
    return max(most, radix)


def clos_refusal(
    ports: float, radix: float, scale_out: ScaleOut, upper_tiers: UpperTiers, *, planes: float = 1
) -> str | None:
    """Why no network of switches of this radix has so many ports; None where one has."""
    ratios = (
        float(scale_out.oversubscription),
        float(upper_tiers.spine_oversubscription),
        float(upper_tiers.core_oversubscription),
    )
    for name, ratio in zip(_RATIOS, ratios, strict=True):
        if ratio > radix - 1:
            return (
                f"{name} is {ratio:g} with switches of {radix:.0f} ports: at most {radix - 1:.0f} "
                f"is allowed, one port up; set {name} to {radix - 1:.0f} or less."
            )
    most = most_ports(radix, ratios)
    if ports <= most:
        return None
    fitting = _least_radix(ports, ratios, planes)
    higher = f"switch_radix to {fitting:.0f} or more" if fitting else "planes higher"
    split = f" x {planes:.0f} planes" if planes > 1 else ""
    return (
        f"gpus is {ports:.0f}: at most {most:.0f} are allowed, which is what {MOST_TIERS} tiers of "
        f"switch_radix {radix / planes:.0f}{split} hold; set gpus to {most:.0f} or less, or "
        f"{higher}."
    )


def _least_radix(ports: float, ratios: tuple[float, ...], planes: float) -> int | None:
    """The fewest ports of a switch at the link rate with which the network fits."""
    radices = range(2, 4097)
    return next((r for r in radices if most_ports(r * planes, ratios) >= ports), None)
