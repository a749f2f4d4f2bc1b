"""One flat ring over all ranks."""

import jax.numpy as jnp

from fabric_kernels.collective import Collective
from fabric_kernels.collective.calls import Call, Network, Part, exchange, fixed
from fabric_kernels.collective.hierarchical import no_message
from fabric_kernels.collective.inside import phases
from fabric_kernels.inputs import Overlap, Reduction, ScaleUp
from fabric_kernels.operation import Operation
from fabric_kernels.path import Path
from fabric_kernels.pattern import Ring
from fabric_kernels.workload import Workload


def ring(
    operation: Operation,
    workload: Workload,
    overlap: Overlap,
    path: Path,
    scale_up: ScaleUp,
    reduction: Reduction,
) -> Collective:
    """Ring over the g ranks of a group, in one phase (reduce-scatter, all-gather) or both.

        transfer = phases (g - 1) / g x payload / rate
        rate = min(d / (d - 1) nvlink_rate, d gpu_rate)      (nvlink_rate inside one domain)
        latency = c hop_latency + (phases (g - 1) - c) nvlink_latency
        c = ceil(phases (g - 1) / d)

    Patarasuk and Yuan, J. Parallel and Distributed Computing 69(2), 2009. The g ranks stand in
    G domains of d, d rings in parallel share a domain's d ports, each leaving by another (so that
    NVLink carries d - 1 of d), and a chunk on its way round less one hop for each phase crosses
    the fabric c times, never where G = 1. Exact, against a simulation of every message, where the
    ranks fill their domains; where they do not, the domain with fewest ranks sets d, and c may be
    one or two hops short. Congestion is later charged to the whole transfer, also where NVLink is
    the narrower part: an upper bound.
    """
    network = Network(path, scale_up, reduction)
    return exchange("ring", fixed("ring", flat_ring), operation, workload, overlap, network)


def flat_ring(call: Call, network: Network) -> Part:
    """One call of the ring."""
    no_message(call)
    path, scale_up = network.path, network.scale_up
    ranks, d, turns = call.ranks, call.in_domain, phases(call)
    crosses = call.domains > 1
    hops = turns * (ranks - 1)
    fabric_hops = jnp.where(crosses, turns * call.domains - jnp.floor((turns + 0.5) / d), 0.0)
    payload = call.payload * (hops / ranks)
    inside, outside = (d - 1) / scale_up.nvlink_rate, 1 / path.gpu_rate
    across = payload / d * jnp.maximum(inside, outside)
    # d rings in parallel, each with G messages across in a step
    pattern = Ring(
        ranks=ranks,
        steps=hops,
        payload=call.payload / (ranks * d),
        parallel=jnp.ones_like(hops),
        repeats=jnp.where(crosses, 1.0, 0.0).astype(hops.dtype),
        crossings=fabric_hops,
    )
    return Part(
        jnp.where(crosses, 0.0, payload / scale_up.nvlink_rate),
        jnp.where(crosses, across, 0.0),
        fabric_hops * path.hop_latency + (hops - fabric_hops) * scale_up.nvlink_latency,
        fabric_hops,
        (pattern,),
    )
