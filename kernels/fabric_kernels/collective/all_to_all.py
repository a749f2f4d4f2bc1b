"""All-to-all, and one message to one rank."""

from fabric_kernels.calls import Network
from fabric_kernels.calls.straight import in_rounds, straight
from fabric_kernels.collective import Collective
from fabric_kernels.collective.exchange import exchange, fixed
from fabric_kernels.inputs import Overlap, Reduction, ScaleUp
from fabric_kernels.operation import Operation
from fabric_kernels.path import Path
from fabric_kernels.workload import Workload


def direct(
    operation: Operation,
    workload: Workload,
    overlap: Overlap,
    path: Path,
    scale_up: ScaleUp,
    reduction: Reduction,
) -> Collective:
    """Every message at once, straight to its rank (`at_once`); or one `message` to one rank."""
    network = Network(path, scale_up, reduction)
    return exchange("direct", fixed("direct", straight), operation, workload, overlap, network)


def pairwise(
    operation: Operation,
    workload: Workload,
    overlap: Overlap,
    path: Path,
    scale_up: ScaleUp,
    reduction: Reduction,
) -> Collective:
    """All-to-all in g - 1 rounds, in each of which every rank sends to one other (`in_rounds`)."""
    network = Network(path, scale_up, reduction)
    return exchange("pairwise", fixed("pairwise", in_rounds), operation, workload, overlap, network)
