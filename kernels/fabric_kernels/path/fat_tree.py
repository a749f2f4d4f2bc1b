"""A folded Clos network (fat tree) of one kind of switch."""

import jax.numpy as jnp
from jax import Array

from fabric_kernels.inputs import Job, ScaleOut
from fabric_kernels.path import SECONDS_PER_METRE, Path

MOST_TIERS = 4


def fat_tree(job: Job, scale_out: ScaleOut) -> Path:
    """A fat tree of the fewest tiers that holds every GPU, one port a GPU.

        GPUs that L tiers of radix k hold = 2 (k / 2)^L        (k where L = 1)
        hop = adapters + 2 L (cable_length x 4.9 ns/m + error_correction) + (2 L - 1) switch
        rate = link_rate payload_fraction routing_efficiency / oversubscription

    Al-Fares, Loukissas, Vahdat, SIGCOMM'08, for two tiers and more. The hop is that of the worst
    placement, over the top tier, with empty queues; serialisation belongs to the transfer. The
    capacity is that without oversubscription (an oversubscribed tree holds more), and every tier
    has cables of one mean length. More GPUs than four tiers hold: NaN.
    """
    tiers = _tiers(job, scale_out)
    links, switches = 2 * tiers, 2 * tiers - 1
    link = scale_out.cable_length * SECONDS_PER_METRE + scale_out.error_correction_latency
    return Path(
        fabric_tiers=tiers,
        hop_latency=scale_out.adapter_latency + links * link + switches * scale_out.switch_latency,
        gpu_rate=scale_out.link_rate
        * scale_out.payload_fraction
        * scale_out.routing_efficiency
        / scale_out.oversubscription,
    )


def _tiers(job: Job, scale_out: ScaleOut) -> Array:
    down = scale_out.switch_radix * 0.5
    capacity = [scale_out.switch_radix]
    for _ in range(MOST_TIERS - 1):
        capacity.append(capacity[-1] * down)
    tiers = jnp.where(job.gpus <= capacity[-1], float(MOST_TIERS), jnp.nan)
    for count in range(MOST_TIERS - 1, 0, -1):
        tiers = jnp.where(job.gpus <= capacity[count - 1], float(count), tiers)
    return tiers.astype(jnp.result_type(scale_out.switch_radix))


def fat_tree_refusal(job: Job, scale_out: ScaleOut) -> str | None:
    """Why no `fat_tree` holds the job, for records of plain numbers; None where one does."""
    gpus, radix = float(job.gpus), float(scale_out.switch_radix)
    most = 2 * (radix / 2) ** MOST_TIERS
    if gpus <= max(radix, most):
        return None
    return (
        f"gpus is {gpus:.0f}: at most {most:.0f} are allowed, which is what {MOST_TIERS} tiers of "
        f"switch_radix {radix:.0f} hold; set gpus lower or switch_radix higher."
    )
