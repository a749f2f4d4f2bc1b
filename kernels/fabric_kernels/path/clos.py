"""Folded Clos networks (fat trees) of one kind of switch: tiers, switches and cables."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from fabric_kernels.inputs import ScaleOut, UpperTiers
from fabric_kernels.maths.switch_ports import quotient_above, split_ports, whole_quotient

MOST_TIERS = 4


class Clos(NamedTuple):
    """One network, tier by tier from the leaves up; tuples leave out the top of four tiers."""

    tiers: Array
    blocks: tuple[Array, ...]  # ports to GPUs under one leaf, one pod, one group of pods
    oversubscriptions: tuple[Array, ...]
    switches: Array
    links: Array


def clos(ports: Array, radix: Array, scale_out: ScaleOut, upper_tiers: UpperTiers) -> Clos:
    """The network of the fewest tiers that has so many ports to GPUs.

        most ports of L tiers = radix down_1 ... down_(L-1),  down_i = ports down of tier i
        (radix where L = 1, 2 (radix / 2)^L without oversubscription)

    Al-Fares, Loukissas, Vahdat, SIGCOMM'08, with the ports of a tier split as its oversubscription
    asks (`split_ports`). Of a partly filled network every switch of a tier is full but the last,
    which has the uplinks that its own downlinks ask for; so a full one without oversubscription has
    N (2 L - 1) / radix switches and N L cables. More ports than four tiers hold: NaN.
    """
    oversubscriptions = (
        scale_out.oversubscription,
        upper_tiers.spine_oversubscription,
        upper_tiers.core_oversubscription,
    )
    split = [split_ports(radix, ratio) for ratio in oversubscriptions]
    blocks = [split[0][0]]
    for down, _ in split[1:]:
        blocks.append(blocks[-1] * down)
    tiers = _fewest_tiers(ports, radix, blocks)
    switches, links = _counts(ports, radix, tiers, oversubscriptions)
    return Clos(tiers, tuple(blocks), oversubscriptions, switches, links)


def _fewest_tiers(ports: Array, radix: Array, blocks: list[Array]) -> Array:
    most = [radix, *(radix * block for block in blocks)]
    tiers = jnp.where(ports <= most[-1], float(MOST_TIERS), jnp.nan)
    for count in range(MOST_TIERS - 1, 0, -1):
        tiers = jnp.where(ports <= most[count - 1], float(count), tiers)
    return tiers.astype(jnp.result_type(radix))


def _counts(
    ports: Array, radix: Array, tiers: Array, oversubscriptions: tuple[Array, ...]
) -> tuple[Array, Array]:
    below = ports  # cables from below into the tier at hand
    links, switches = ports, jnp.where(tiers <= 1.0, quotient_above(ports, radix), 0.0)
    for number, ratio in enumerate(oversubscriptions, start=1):
        down, up = split_ports(radix, ratio)
        full = whole_quotient(below, down)
        rest = jnp.maximum(below - full * down, 0.0)
        above = full * up + jnp.minimum(jnp.ceil(rest / ratio - 1e-3), up)
        climbs, top = tiers > number, tiers == number + 1.0
        switches = switches + jnp.where(climbs, quotient_above(below, down), 0.0)
        switches = switches + jnp.where(top, quotient_above(above, radix), 0.0)
        links = links + jnp.where(climbs, above, 0.0)
        below = above
    undefined = jnp.isnan(tiers)
    return jnp.where(undefined, tiers, switches), jnp.where(undefined, tiers, links)
