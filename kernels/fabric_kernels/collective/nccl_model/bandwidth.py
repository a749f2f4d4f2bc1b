"""Rate of every algorithm of NCCL's cost model: payload over transfer time, B/s."""

import jax.numpy as jnp
from jax import Array

from fabric_kernels.collective.nccl_model import tables
from fabric_kernels.collective.nccl_model.group import (
    Asked,
    by_generation,
    limit,
    ll_limit,
    tree_correction,
)

LL128_SHARE = 0.92  # what NCCL counts of 120 data bytes in 128
LL_SHARE = 0.5  # half of every 8 bytes is a flag
TREE_SHARE = 0.92
TREE_LL_SHARE = 1 / 3.8
TREE_LL128_SHARE_ONE_NODE = 7 / 9
TREE_LL128_SHARE = 120 / 128
PLAIN_TREE_SHARE = 0.85
PAT_SHARE = 0.75
COLLNET_DIRECT_SHARE = (1.0, 1.0, 0.85, 0.85)  # by generation


def rate(asked: Asked, algorithm: str, protocol: str) -> Array:
    """Payload over transfer time.

    The rate of a GPU's links, the bus rate, times ranks / steps where all ranks move alike (ring,
    NVLS); half of it for trees and CollNet, whose GPUs send the payload up and down; as it is for
    PAT.
    """
    alike = asked.group.ranks / asked.steps
    if algorithm == "ring":
        return _ring(asked, protocol) * alike
    if algorithm == "double_binary_tree":
        return 0.5 * _tree(asked, protocol) * tree_correction(asked, protocol)
    if algorithm == "collnet_direct":
        return 0.5 * _collnet_direct(asked)
    if algorithm == "collnet_chain":
        return 0.5 * asked.library.library_channels * asked.channels.inside
    if algorithm == "pat":
        return PAT_SHARE * asked.library.library_channels * asked.per_channel
    return _nvls(asked, across_tree=algorithm == "nvls_tree") * alike


def _ring(asked: Asked, protocol: str) -> Array:
    channels = asked.library.library_channels
    bus = channels * asked.per_channel
    if protocol == "ll":
        return jnp.minimum(ll_limit(asked), LL_SHARE * bus)
    if protocol == "ll128":
        return jnp.minimum(LL128_SHARE * bus, channels * limit(asked, tables.RING_LL128_LIMIT))
    return bus


def _tree(asked: Asked, protocol: str) -> Array:
    channels = asked.library.library_channels
    bus = TREE_SHARE * channels * asked.per_channel
    bus = jnp.minimum(bus, channels * limit(asked, tables.TREE_LIMIT))
    if protocol == "ll":
        bus = jnp.minimum(TREE_LL_SHARE * bus, ll_limit(asked))
    if protocol == "ll128":
        one_node = asked.group.nodes < 1.5
        share = jnp.where(one_node, TREE_LL128_SHARE_ONE_NODE, TREE_LL128_SHARE)
        most = channels * limit(asked, tables.TREE_LL128_LIMIT)
        bus = jnp.minimum(share * bus, most)
    return bus * jnp.where(asked.library.tree_pattern > 0.5, PLAIN_TREE_SHARE, 1.0)


def _collnet_direct(asked: Asked) -> Array:
    """Halfway to the penalty of more GPUs than channels, or to the gain of fewer."""
    channels = asked.library.library_channels
    crowd = asked.group.gpus_per_node / channels
    bus = channels * asked.channels.inside / (crowd - 0.5 * (crowd - 1))
    return bus * by_generation(asked, COLLNET_DIRECT_SHARE)


def _nvls(asked: Asked, *, across_tree: bool) -> Array:
    """One channel is kept for control; all-reduce uses both directions of a link."""
    group, channels = asked.group, asked.library.library_channels
    share = by_generation(asked, tables.NVLS_EFFICIENCY) * (channels - 1) / channels
    own = 2.0 if asked.all_reduce else (group.gpus_per_node - 1) / group.gpus_per_node
    each = asked.channels.multicast * share * own
    across = asked.channels.across
    if across_tree:
        across = across * jnp.where(group.nodes < 2.5, 2.0, 1.0)
        across = jnp.minimum(across, limit(asked, tables.NVLS_TREE_LIMIT))
    each = jnp.where(group.nodes > 1, jnp.minimum(each, across), each)
    if across_tree:
        x86 = asked.library.host_processor < 1.5
        corrected = x86 & (asked.library.gpu_generation > 2.5)
        each = each * jnp.where(corrected, tree_correction(asked, "simple"), 1.0)
    return channels * each
