"""Collectives that first go round the NVLink domain, then across the fabric on every rail.

Stages follow each other; a library that pipelines them comes nearer to the longest of them. Where
a group does not fill its domains, the domain with fewest ranks sets d.
"""

from fabric_kernels.calls import Network
from fabric_kernels.calls.staged import STAGED
from fabric_kernels.calls.switches import nvls_refusal, switch_refusal
from fabric_kernels.collective import Collective
from fabric_kernels.collective.exchange import exchange, fixed
from fabric_kernels.inputs import Overlap, Reduction, ScaleUp
from fabric_kernels.operation import Operation
from fabric_kernels.path import Path
from fabric_kernels.workload import Workload


def hierarchical(
    operation: Operation,
    workload: Workload,
    overlap: Overlap,
    path: Path,
    scale_up: ScaleUp,
    reduction: Reduction,
) -> Collective:
    """Ring inside the NVLink domain, ring of the domains for every rail.

        nvlink_transfer = 2 (d - 1) / d x payload / nvlink_rate
        fabric_transfer = 2 (G - 1) / G x payload / (d gpu_rate)
        latency = 2 (d - 1) nvlink_latency + 2 (G - 1) hop_latency

    for an all-reduce over G domains of d ranks, half of it for a reduce-scatter or all-gather
    (`ring_inside`, `ring_across`). The bandwidth bound of a domain of d ports, d gpu_rate x
    G / (2 (G - 1)), is the one that measured tables of many domains approach to 87-90 %. An
    all-to-all first moves inside, to the rail of its destination (`rails`).
    """
    network = Network(path, scale_up, reduction)
    return exchange(
        "hierarchical",
        fixed("hierarchical", STAGED["hierarchical"]),
        operation,
        workload,
        overlap,
        network,
    )


def hierarchical_tree(
    operation: Operation,
    workload: Workload,
    overlap: Overlap,
    path: Path,
    scale_up: ScaleUp,
    reduction: Reduction,
) -> Collective:
    """Ring inside the NVLink domain, double binary tree across (`ring_inside`, `tree_across`)."""
    network = Network(path, scale_up, reduction)
    return exchange(
        "hierarchical_tree",
        fixed("hierarchical_tree", STAGED["hierarchical_tree"]),
        operation,
        workload,
        overlap,
        network,
    )


def hierarchical_halving_doubling(
    operation: Operation,
    workload: Workload,
    overlap: Overlap,
    path: Path,
    scale_up: ScaleUp,
    reduction: Reduction,
) -> Collective:
    """Ring inside the NVLink domain, halving and doubling across (`doubling_across`)."""
    network = Network(path, scale_up, reduction)
    return exchange(
        "hierarchical_halving_doubling",
        fixed("hierarchical_halving_doubling", STAGED["hierarchical_halving_doubling"]),
        operation,
        workload,
        overlap,
        network,
    )


def nvls(
    operation: Operation,
    workload: Workload,
    overlap: Overlap,
    path: Path,
    scale_up: ScaleUp,
    reduction: Reduction,
) -> Collective:
    """NVLink switches add inside the domain, a ring across (`nvls_inside`, `ring_across`)."""
    network = Network(path, scale_up, reduction)
    return exchange("nvls", fixed("nvls", STAGED["nvls"]), operation, workload, overlap, network)


def nvls_tree(
    operation: Operation,
    workload: Workload,
    overlap: Overlap,
    path: Path,
    scale_up: ScaleUp,
    reduction: Reduction,
) -> Collective:
    """NVLink switches add inside the domain, a double binary tree across (`tree_across`)."""
    network = Network(path, scale_up, reduction)
    return exchange(
        "nvls_tree", fixed("nvls_tree", STAGED["nvls_tree"]), operation, workload, overlap, network
    )


def sharp(
    operation: Operation,
    workload: Workload,
    overlap: Overlap,
    path: Path,
    scale_up: ScaleUp,
    reduction: Reduction,
) -> Collective:
    """Ring inside the NVLink domain, the fabric's switches add across (`switch_across`)."""
    network = Network(path, scale_up, reduction)
    return exchange("sharp", fixed("sharp", STAGED["sharp"]), operation, workload, overlap, network)


def nvls_sharp(
    operation: Operation,
    workload: Workload,
    overlap: Overlap,
    path: Path,
    scale_up: ScaleUp,
    reduction: Reduction,
) -> Collective:
    """Switches add everywhere: NVLink's inside (`nvls_inside`), the fabric's across."""
    network = Network(path, scale_up, reduction)
    return exchange(
        "nvls_sharp",
        fixed("nvls_sharp", STAGED["nvls_sharp"]),
        operation,
        workload,
        overlap,
        network,
    )


def nvls_sharp_refusal(reduction: Reduction) -> str | None:
    """Why switches cannot add everywhere; None where they can."""
    return nvls_refusal(reduction) or switch_refusal(reduction)
