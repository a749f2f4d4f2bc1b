"""Flat algorithms that are no ring: a double binary tree, and halving and doubling."""

import math

from fabric_kernels.calls import Network
from fabric_kernels.calls.tree import chained_tree, doubled
from fabric_kernels.collective import Collective
from fabric_kernels.collective.exchange import exchange, fixed
from fabric_kernels.inputs import Job, Overlap, Reduction, ScaleUp
from fabric_kernels.operation import Operation
from fabric_kernels.path import Path
from fabric_kernels.workload import Workload


def double_binary_tree(
    operation: Operation,
    workload: Workload,
    overlap: Overlap,
    path: Path,
    scale_up: ScaleUp,
    reduction: Reduction,
) -> Collective:
    """A chain through every NVLink domain, two binary trees over the domains, up and down.

        transfer = 2 payload / (d gpu_rate)      (payload / (d gpu_rate) where G = 2)
        latency = 2 (D longest_hop_latency + (d - 1) nvlink_latency) + fill
        fill = (2 (D + d - 1) - 1) transfer / chunks,  D = ceil(log2(G))

    `tree_across` on every rail, each rail's trees rooted at another rank, with the chain of a
    domain's d ranks at every node, as NVIDIA's NCCL builds them since 2.4. NVLink carries the
    payload once each way and a half, which is hidden behind the fabric unless it is the narrower
    part: then the excess is charged to it.
    """
    network = Network(path, scale_up, reduction)
    return exchange(
        "double_binary_tree",
        fixed("double_binary_tree", chained_tree),
        operation,
        workload,
        overlap,
        network,
    )


def recursive_halving_doubling(
    operation: Operation,
    workload: Workload,
    overlap: Overlap,
    path: Path,
    scale_up: ScaleUp,
    reduction: Reduction,
) -> Collective:
    """Halving to reduce, doubling to gather, nearest partners first: inside, then across.

        transfer = 2 (d - 1) / d x payload / nvlink_rate + 2 (G - 1) / G x payload / (d gpu_rate)
        latency = 2 log2(d) nvlink_latency + 2 log2(G) longest_hop_latency

    for an all-reduce over G domains of d ranks, half of it for either phase alone
    (`doubling_inside`, `doubling_across`, where the fold is for a G that is no power of two).
    """
    network = Network(path, scale_up, reduction)
    return exchange(
        "recursive_halving_doubling",
        fixed("recursive_halving_doubling", doubled),
        operation,
        workload,
        overlap,
        network,
    )


def doubling_refusal(job: Job, scale_up: ScaleUp) -> str | None:
    """Why ranks cannot be paired inside a domain; None where they can."""
    ranks = float(job.gpus) / (float(job.tensor_parallel) * float(job.pipeline_parallel))
    room = max(float(scale_up.nvlink_domain) // float(job.tensor_parallel), 1)
    inside = ranks // math.ceil(ranks / room) if ranks >= 1 else 1
    if math.log2(max(inside, 1)).is_integer():
        return None
    return (
        f"{inside:.0f} ranks of a group in an NVLink domain: recursive halving and doubling pairs "
        "them, so a power of two is needed; change nvlink_domain or tensor_parallel, or take "
        "collective hierarchical_halving_doubling."
    )
