"""The part of a hierarchical collective across the fabric: one group of domains for every rail.

After the part inside, each of the d ranks of a domain holds a d-th of the payload, its shard, and
all-reduces (or reduce-scatters, or all-gathers) it with the ranks of its place in the other
domains. Where there is one domain only, nothing crosses the fabric.
"""

import jax.numpy as jnp
from jax import Array

from fabric_kernels.calls import Call, Network, Part, refused
from fabric_kernels.calls.inside import phases
from fabric_kernels.operation import ALL_REDUCE
from fabric_kernels.pattern import Barrier, Doubling, Pattern, Ring, Tree, repeated


def _across(call: Call, transfer: Array, latency: Array, hops: Array, pattern: Pattern) -> Part:
    crosses = call.domains > 1
    transfer = jnp.where(crosses, transfer, 0.0)
    return Part(
        jnp.zeros_like(transfer),
        transfer,
        jnp.where(crosses, latency, 0.0),
        jnp.where(crosses, hops, 0.0),
        repeated((pattern,), jnp.where(crosses, 1.0, 0.0)),
    )


def ring_across(call: Call, network: Network) -> Part:
    """A ring of G domains on every rail: G - 1 steps for each phase.

        transfer = phases (G - 1) / G x shard / gpu_rate,  latency = phases (G - 1) hop_latency

    Patarasuk and Yuan, J. Parallel and Distributed Computing 69(2), 2009.
    """
    path = network.path
    steps = phases(call) * (call.domains - 1)
    chunk = call.payload / call.in_domain / call.domains
    ring = Ring(call.domains, steps, chunk, call.in_domain, jnp.ones_like(steps))
    return _across(call, steps * chunk / path.gpu_rate, steps * path.hop_latency, steps, ring)


def tree_across(call: Call, network: Network) -> Part:
    """A double binary tree over G domains on every rail, up to add and down to spread.

        transfer = 2 shard / gpu_rate            (shard / gpu_rate where G = 2)
        latency = 2 D longest_hop_latency + (2 D - 1) transfer / chunks,  D = ceil(log2(G))

    Sanders, Speck, Traff, Parallel Computing 35(12), 2009: every rank is an inner node of one tree
    and a leaf of the other, each tree carries half, so a rank sends the payload twice; between two
    ranks once is enough. The second term fills the pipeline of `chunks` pieces. Only for
    all-reduce: a tree moves the whole payload along each edge, so to scatter gains nothing.
    """
    if call.operation != ALL_REDUCE:
        raise refused(call, "a tree only all-reduces", "ring")
    path, reduction = network.path, network.reduction
    levels = jnp.ceil(jnp.log2(jnp.maximum(call.domains, 1.0)) - 1e-6)
    shard = call.payload / call.in_domain
    transfer = jnp.where(call.domains > 2.5, 2.0, 1.0) * shard / path.gpu_rate
    fill = (2 * levels - 1) * transfer / reduction.tree_chunks
    levels, chunks = jnp.broadcast_arrays(levels, reduction.tree_chunks)
    one, two = jnp.ones_like(levels), jnp.full_like(levels, 2.0)
    tree = Tree(call.domains, levels, two, two, chunks, shard / (2 * chunks), call.in_domain, one)
    latency = 2 * levels * path.longest_hop_latency + fill
    return _across(call, transfer, latency, 2 * levels, tree)


def doubling_across(call: Call, network: Network) -> Part:
    """Recursive halving to reduce, doubling to gather, over G domains on every rail.

        transfer = phases (G - 1) / G x shard / gpu_rate
        latency = phases log2(G) longest_hop_latency

    Thakur, Rabenseifner, Gropp, Int. J. High Performance Computing Applications 19(1), 2005. An
    all-reduce over a G that is no power of two first folds the G - 2^k surplus domains into
    others and unfolds them at the end: 2 hops and 2 shard / gpu_rate more, and 2^k in place of G.
    A reduce-scatter or all-gather over such a G has no such fold: NaN.
    """
    path = network.path
    levels = jnp.floor(jnp.log2(jnp.maximum(call.domains, 1.0)) + 1e-6)
    folded = jnp.round(jnp.exp2(levels))
    whole = call.domains == folded
    shard = call.payload / call.in_domain
    extra = jnp.where(whole, 0.0, 2.0)
    transfer = (phases(call) * (folded - 1) / folded + extra) * shard / path.gpu_rate
    hops = phases(call) * levels + extra
    mean = transfer * path.gpu_rate / jnp.maximum(hops, 1.0)
    doubling = Doubling(call.domains, hops, mean, call.in_domain, jnp.ones_like(hops))
    if call.operation != ALL_REDUCE:
        transfer = jnp.where(whole, transfer, jnp.nan)
    return _across(call, transfer, hops * path.longest_hop_latency, hops, doubling)


def switch_across(call: Call, network: Network) -> Part:
    """The fabric's switches add on the way up and multicast the sum on the way down (SHARP).

        transfer = shard / gpu_rate
        latency = longest_hop_latency + fabric_tiers fabric_reduction_latency

    Graham et al., SHARP, COMHPC'16. Every rank sends its shard once and receives the sum once, at
    the same time. NaN where the switches cannot add; only for all-reduce.
    """
    if call.operation != ALL_REDUCE:
        raise refused(call, "switches only all-reduce here", "hierarchical")
    path, reduction = network.path, network.reduction
    able = reduction.fabric_reduction > 0.5
    shard = call.payload / call.in_domain
    latency = path.longest_hop_latency + path.fabric_tiers * reduction.fabric_reduction_latency
    transfer = jnp.where(able, shard / path.gpu_rate, jnp.nan)
    hop = jnp.ones_like(shard)
    return _across(call, transfer, jnp.where(able, latency, jnp.nan), hop, star(call))


def star(call: Call) -> Barrier:
    """Up to the switches and down again: two rounds of one message a rank."""
    shard = call.payload / call.in_domain
    repeats = jnp.where(call.domains > 1, 1.0, 0.0).astype(shard.dtype)
    return Barrier(call.ranks, jnp.full_like(shard, 2.0), shard, repeats)
