"""What hop noise costs trees, and ranks that exchange in pairs.

A path of H hops is the slowest of exponentially many, and its quantiles are tabulated as

    T = (H - 1) m + M + unit R(level, size, shape)

M the largest of all hops at the same level, which rules the far tail of a heavy law, m the mean.
"""

import jax.numpy as jnp
from jax import Array

from fabric_kernels.jitter.laws import doubling_table, pipeline_table, ring_table, tree_table
from fabric_kernels.jitter.laws.polynomial import Table, across, centred, through
from fabric_kernels.maths.order_statistics import GREATEST, SMALLEST
from fabric_kernels.noise import HopNoise, Rare
from fabric_kernels.pattern import Doubling, Tree

LEVELS = (-2.0, 9.0)  # of -log E, within which R was tabulated
DEPTHS = (1.0, 20.0)  # levels of a tree
DOUBLINGS = (1.0, 17.0)  # log2 of the ranks


def tree_stall(tree: Tree, noise: HopNoise, exponential: Array) -> Array:
    """Quantile of the noise of one call of a tree, or of trees beside each other (s).

    One chunk up a binary tree of depth D is F_h = (F_(h-1) * dF)^2, computed by
    kernels/constants/tree_constants.py; down is an independent copy. Trees beside each other are
    taken as independent. C chunks in a pipeline:

        T(C) = T(1) + (C - 1) m + M(C) - M(1) + kappa unit sqrt(D (C - 1))

    M the largest of all hops, kappa simulated by kernels/constants/tree_pipeline_constants.py up to
    depth 12 and 64 chunks, clipped beyond; for one leg 0.7 of it. One chunk: mean and 99th
    percentile within 0.5 % for depths from 3 on. Pipelined: mean within 1 % of simulations that the
    fit has not seen (1.5 % where depth and chunks are few), 99th percentile within 2 % (4 % of
    Weibull 0.5). Laws with spikes get the sum of the waits for body and spikes alone, which bounds
    both together; the mean wait for spikes in a pipeline is within 6 % from a share of 1e-3 on,
    within 13 % below.
    """
    depth = jnp.maximum(tree.levels, 1.0)
    both = jnp.clip(tree.legs - 1.0, 0.0, 1.0)
    level = exponential / jnp.maximum(tree.trees * tree.parallel, 1.0)
    gumbel = _gumbel(level)
    body = noise.body()
    member = centred(body.coordinate, ring_table.RANGE[body.family])
    place = centred(gumbel, LEVELS)
    size = centred(depth, DEPTHS)
    one = through(tree_table.ONE_LEG[body.family], place, size, member)
    two = through(tree_table.BOTH_LEGS[body.family], place, size, member)
    legs = 1.0 + both
    usual = noise.usual()
    mean, _ = usual.moments()
    chunks = jnp.maximum(tree.chunks, 1.0)
    hops = legs * (jnp.exp2(depth + 1.0) - 2.0) * chunks
    rest = jnp.where(both > 0.5, two, one)
    stall = (legs * depth - 1.0) * mean + usual.largest(hops, level) + body.unit * rest
    more = chunks - 1.0
    root = jnp.sqrt(depth * more + 1e-30)
    kappa = _kappa(body.family, gumbel, tree.chunks, depth, member) * (0.7 + 0.3 * both)
    stall = stall + more * mean + kappa * body.unit * root
    rare = noise.rare()
    if rare is not None:
        share = _share(rare)
        spikes = legs * jnp.exp(across(tree_table.SPIKES, size, share))
        longer = _pipelined(pipeline_table.SPIKES, tree.chunks, depth, share)
        scale = jnp.sqrt(jnp.maximum(rare.share, 1e-12)) * root * (0.7 + 0.3 * both)
        spikes = spikes + jnp.where(more > 0, jnp.exp(longer) * scale, 0.0)
        stall = stall + _spikes(rare, spikes, level)
    return jnp.where(tree.levels > 0, stall, 0.0)


def doubling_stall(doubling: Doubling, noise: HopNoise, exponential: Array) -> Array:
    """Quantile of the noise of one call of halving, doubling or both (s).

    Simulated by kernels/constants/doubling_constants.py for 2 to 2^17 ranks, halving or doubling
    alone (log2 N exchanges) and one after the other (twice as many); in between linear in the
    exchanges. Beyond 2^17 ranks it grows with the last slope. Mean within 1 % of event-level runs
    from 256 ranks on (2 % for Pareto tails from 0.4 on); below, and far above the 99th percentile,
    the simulation is thin. Spikes as in `tree_stall`.
    """
    doublings = jnp.log2(jnp.maximum(doubling.ranks, 2.0))
    ways = jnp.clip(doubling.levels / doublings, 0.0, 2.0)
    level = exponential / jnp.maximum(doubling.parallel, 1.0)
    one = _doubling_stall(noise, level, doublings, jnp.ones_like(doublings))
    two = _doubling_stall(noise, level, doublings, jnp.full_like(doublings, 2.0))
    blended = jnp.where(ways > 1.0, one + (ways - 1.0) * (two - one), ways * one)
    return jnp.where(doubling.levels > 0, blended, 0.0)


def _doubling_stall(noise: HopNoise, level: Array, doublings: Array, ways: Array) -> Array:
    body = noise.body()
    member = centred(body.coordinate, ring_table.RANGE[body.family])
    place = centred(_gumbel(level), LEVELS)
    inside = jnp.minimum(doublings, DOUBLINGS[1])
    size = centred(inside, DOUBLINGS)
    first = through(doubling_table.ONE_WAY[body.family], place, size, member)
    second = through(doubling_table.BOTH_WAYS[body.family], place, size, member)
    rest = jnp.where(ways > 1.5, second, first)
    usual = noise.usual()
    mean, _ = usual.moments()
    steps = ways * inside
    hops = steps * jnp.exp2(inside)
    stall = (steps - 1.0) * mean + usual.largest(hops, level) + body.unit * rest
    rare = noise.rare()
    if rare is not None:
        share = _share(rare)
        once = across(doubling_table.SPIKES_ONE_WAY, size, share)
        twice = across(doubling_table.SPIKES_BOTH_WAYS, size, share)
        spikes = jnp.exp(jnp.where(ways > 1.5, twice, once))
        stall = stall + _spikes(rare, spikes, level)
    return stall * (doublings / inside)


def _gumbel(exponential: Array) -> Array:
    """-log E, kept where float32 has room."""
    return -jnp.log(jnp.clip(exponential, SMALLEST, GREATEST))


def _share(rare: Rare) -> Array:
    """The coordinate of the share of spikes: log10 from 1e-4 to 1."""
    return centred(jnp.log10(jnp.maximum(rare.share, 1e-12)), (-4.0, 0.0))


def _kappa(family: str, gumbel: Array, chunks: Array, depth: Array, member: Array) -> Array:
    place = jnp.clip(0.25 * gumbel, -0.3, 1.15)
    table = pipeline_table.KAPPA[family]
    total = _pipelined(table[-1], chunks, depth, member)
    for inner in reversed(table[:-1]):
        total = total * place + _pipelined(inner, chunks, depth, member)
    return total


def _pipelined(table: tuple[Table, ...], chunks: Array, depth: Array, member: Array) -> Array:
    count = jnp.clip(jnp.log2(jnp.maximum(chunks, 2.0)) * (1.0 / 3.0) - 1.0, -1.0, 1.0)
    return through(table, count, centred(depth, (1.0, 12.0)), member)


def _spikes(rare: Rare, mean: Array, level: Array) -> Array:
    """Time of the spikes on the slowest path (s): the integers next to their mean.

    Their number hardly varies, so it is one of the two integers around its mean. Long ones count
    as long as the largest of so many.
    """
    least = jnp.floor(mean)
    count = least + jnp.where(level < -jnp.log1p(-(mean - least)), 1.0, 0.0)
    longer = 1.0 + rare.memory * jnp.log1p(mean) / (1.0 + mean)
    return jnp.where(rare.share > 1e-9, rare.length * count * longer, 0.0)
