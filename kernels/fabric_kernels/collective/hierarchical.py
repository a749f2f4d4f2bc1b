"""Reduce-scatter inside the NVLink domain, ring between the domains, all-gather inside."""

import jax.numpy as jnp

from fabric_kernels.collective import Collective
from fabric_kernels.collective.placement import placement
from fabric_kernels.inputs import Job, ScaleUp
from fabric_kernels.path import Path
from fabric_kernels.workload import Workload


def hierarchical(job: Job, workload: Workload, path: Path, scale_up: ScaleUp) -> Collective:
    """Hierarchical all-reduce over G domains of d ranks, one ring of domains for every rail.

        nvlink_transfer = 2 (d - 1) / d x payload / nvlink_rate
        fabric_transfer = 2 (G - 1) / G x payload / (d gpu_rate)
        latency = 2 (d - 1) nvlink_latency + 2 (G - 1) hop_latency

    The bandwidth bound of a domain of d ports, d gpu_rate x G / (2 (G - 1)), is the one that
    measured tables of many domains approach to 87-90 %. The three stages follow each other; a
    library that pipelines them comes nearer to the largest of the two transfers. Where the group
    does not fill its domains, the domain with fewest ranks sets d.
    """
    ranks = workload.data_parallel
    domains, in_domain = placement(job, workload, scale_up)
    crosses = domains > 1
    inside, outside = 2 * (in_domain - 1), 2 * (domains - 1)
    shard = workload.payload / in_domain
    return Collective(
        nvlink_transfer_time=inside * shard / scale_up.nvlink_rate,
        fabric_transfer_time=outside * (shard / domains) / path.gpu_rate,
        exchange_latency=inside * scale_up.nvlink_latency + outside * path.hop_latency,
        fabric_hops=outside,
        fabric_steps=outside,
        fabric_messages=jnp.where(crosses, ranks, 0.0),
        message_payload=jnp.where(crosses, shard / domains, 0.0),
    )
