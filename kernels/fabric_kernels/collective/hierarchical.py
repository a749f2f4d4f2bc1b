"""Collectives that first go round the NVLink domain, then across the fabric on every rail.

Stages follow each other; a library that pipelines them comes nearer to the longest of them. Where
a group does not fill its domains, the domain with fewest ranks sets d.
"""

from fabric_kernels.collective import Collective
from fabric_kernels.collective.across import (
    doubling_across,
    ring_across,
    switch_across,
    switch_refusal,
    tree_across,
)
from fabric_kernels.collective.all_to_all import rails
from fabric_kernels.collective.calls import (
    Call,
    Network,
    Part,
    PartOf,
    exchange,
    fixed,
    followed,
    refused,
)
from fabric_kernels.collective.inside import nvls_inside, nvls_refusal, ring_inside
from fabric_kernels.inputs import Overlap, Reduction, ScaleUp
from fabric_kernels.operation import ALL_TO_ALL, POINT_TO_POINT, Operation
from fabric_kernels.path import Path
from fabric_kernels.workload import Workload


def staged(inside: PartOf, across: PartOf) -> PartOf:
    """Inside the domain, then across the fabric."""

    def part(call: Call, network: Network) -> Part:
        no_message(call)
        return followed(inside(call, network), across(call, network))

    return part


def by_rails(call: Call, network: Network) -> Part:
    """One call of `hierarchical`, the only one that knows all-to-all."""
    if call.operation == ALL_TO_ALL:
        return rails(call, network)
    return staged(ring_inside, ring_across)(call, network)


STAGED: dict[str, PartOf] = {
    "hierarchical": by_rails,
    "hierarchical_tree": staged(ring_inside, tree_across),
    "hierarchical_halving_doubling": staged(ring_inside, doubling_across),
    "nvls": staged(nvls_inside, ring_across),
    "nvls_tree": staged(nvls_inside, tree_across),
    "sharp": staged(ring_inside, switch_across),
    "nvls_sharp": staged(nvls_inside, switch_across),
}
"""One call of each, by name."""


def nvls_sharp_refusal(reduction: Reduction) -> str | None:
    """Why switches cannot add everywhere; None where they can."""
    return nvls_refusal(reduction) or switch_refusal(reduction)


def no_message(call: Call) -> None:
    """Refuse what is sent from each to each or from one to one."""
    if call.operation in (ALL_TO_ALL, POINT_TO_POINT):
        raise refused(call, "it only reduces and gathers", "direct")


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
