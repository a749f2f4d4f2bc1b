"""Flat algorithms that are no ring: a double binary tree, and halving and doubling."""

import jax.numpy as jnp

from fabric_kernels.collective import Collective
from fabric_kernels.collective.across import doubling_across, tree_across
from fabric_kernels.collective.calls import Call, Network, Part, exchange, fixed, followed
from fabric_kernels.collective.hierarchical import no_message
from fabric_kernels.collective.inside import doubling_inside
from fabric_kernels.inputs import Overlap, Reduction, ScaleUp
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


def chained_tree(call: Call, network: Network) -> Part:
    """One call of the tree."""
    no_message(call)
    scale_up, reduction = network.scale_up, network.reduction
    part = tree_across(call, network)
    chain = call.in_domain - 1
    inside = 2 * chain * (call.payload / call.in_domain) / scale_up.nvlink_rate
    slot = jnp.maximum(part.fabric_transfer, inside) / reduction.tree_chunks
    across = part.fabric_transfer / reduction.tree_chunks
    levels = 0.5 * part.hops
    steps = jnp.maximum(2 * (levels + chain) - 1, 0.0)
    fill = steps * slot - jnp.maximum(2 * levels - 1, 0.0) * across
    return part._replace(
        nvlink_transfer=jnp.maximum(inside - part.fabric_transfer, 0.0),
        latency=part.latency + 2 * chain * scale_up.nvlink_latency + fill,
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


def doubled(call: Call, network: Network) -> Part:
    """One call of halving and doubling."""
    no_message(call)
    return followed(doubling_inside(call, network), doubling_across(call, network))
