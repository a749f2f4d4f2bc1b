"""One flat ring over all ranks."""

import jax.numpy as jnp

from fabric_kernels.collective import Collective
from fabric_kernels.collective.placement import placement
from fabric_kernels.inputs import Job, ScaleUp
from fabric_kernels.path import Path
from fabric_kernels.workload import Workload


def ring(job: Job, workload: Workload, path: Path, scale_up: ScaleUp) -> Collective:
    """Ring all-reduce (reduce-scatter, then all-gather) over the g ranks of a group.

        transfer = 2 (g - 1) / g x payload / rate
        rate = min(d / (d - 1) nvlink_rate, d gpu_rate)      (nvlink_rate inside one domain)
        latency = c hop_latency + (2 (g - 1) - c) nvlink_latency,  c = ceil(2 (g - 1) / d)

    Patarasuk and Yuan, J. Parallel and Distributed Computing 69(2), 2009. The g ranks stand in
    G domains of d, d rings in parallel share a domain's d ports, each leaving by another (so that
    NVLink carries d - 1 of d), and a chunk on its way twice around less two hops crosses the fabric
    c times, never where G = 1. Exact, against a simulation of every message, where the ranks fill
    their domains; where they do not, the domain with fewest ranks sets d, and c may be one or two
    hops short. Congestion is later charged to the whole transfer, also where NVLink is the narrower
    part: an upper bound.
    """
    ranks = workload.data_parallel
    domains, in_domain = placement(job, workload, scale_up)
    crosses = domains > 1
    hops = 2 * (ranks - 1)
    fabric_hops = jnp.where(crosses, 2 * domains - jnp.floor(2.5 / in_domain), 0.0)
    payload = workload.payload * (hops / ranks)
    inside, outside = (in_domain - 1) / scale_up.nvlink_rate, 1 / path.gpu_rate
    across = payload / in_domain * jnp.maximum(inside, outside)
    return Collective(
        nvlink_transfer_time=jnp.where(crosses, 0.0, payload / scale_up.nvlink_rate),
        fabric_transfer_time=jnp.where(crosses, across, 0.0),
        exchange_latency=fabric_hops * path.hop_latency
        + (hops - fabric_hops) * scale_up.nvlink_latency,
        fabric_hops=fabric_hops,
        fabric_steps=jnp.where(crosses, hops, 0.0),
        # d rings in parallel, each with G messages across in a step
        fabric_messages=jnp.where(crosses, ranks, 0.0),
        message_payload=jnp.where(crosses, workload.payload / (ranks * in_domain), 0.0),
    )
