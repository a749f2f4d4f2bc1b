"""One flat ring over all ranks."""

from fabric_kernels.calls import Network
from fabric_kernels.calls.flat_ring import flat_ring
from fabric_kernels.collective import Collective
from fabric_kernels.collective.exchange import exchange, fixed
from fabric_kernels.inputs import Overlap, Reduction, ScaleUp
from fabric_kernels.operation import Operation
from fabric_kernels.path import Path
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
