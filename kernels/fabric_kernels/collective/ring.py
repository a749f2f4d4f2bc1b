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
        rate = min(nvlink_rate, d gpu_rate)      (nvlink_rate inside one domain)
        latency = c hop_latency + (2 (g - 1) - c) nvlink_latency,  c = ceil(2 (g - 1) / d)

    Patarasuk and Yuan, J. Parallel and Distributed Computing 69(2), 2009. The g ranks stand in
    G domains of d, d rings in parallel share a domain's d ports, and a chunk on its way twice
    around less two hops crosses the fabric c times, never where G = 1. Exact for chunks sent whole
    over rings that fill their domains and d = 1 or G = 1; elsewhere a message that waits for a
    slower port overlaps with others, so this is within one chunk a domain. Congestion is later
    charged to the whole transfer, also where NVLink is the narrower part: an upper bound.
    """
    ranks = workload.data_parallel
    domains, in_domain = placement(job, workload, scale_up)
    crosses = domains > 1
    hops = 2 * (ranks - 1)
    fabric_hops = jnp.where(crosses, 2 * domains - jnp.floor(2.5 / in_domain), 0.0)
    payload = workload.payload * (hops / ranks)
    rate = jnp.minimum(scale_up.nvlink_rate, in_domain * path.gpu_rate)
    return Collective(
        nvlink_transfer_time=jnp.where(crosses, 0.0, payload / scale_up.nvlink_rate),
        fabric_transfer_time=jnp.where(crosses, payload / rate, 0.0),
        exchange_latency=fabric_hops * path.hop_latency
        + (hops - fabric_hops) * scale_up.nvlink_latency,
        fabric_hops=fabric_hops,
        fabric_steps=jnp.where(crosses, hops, 0.0),
        fabric_messages=jnp.where(crosses, domains, 0.0),
        message_payload=jnp.where(crosses, workload.payload / ranks, 0.0),
    )
