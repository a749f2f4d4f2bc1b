"""Stalls on the longest way from the leaves of a tree to its root."""

import functools
import math

import jax
import jax.numpy as jnp
from jax import Array

from fabric_kernels.loss.laws.rounds import Rounds
from fabric_kernels.maths.poisson import most_of_many
from fabric_kernels.pattern import Tree

_COUNTS = 10
_LEVELS = 24
_LOG_FACTORIALS = tuple(math.lgamma(k + 2) for k in range(_COUNTS + 5))


@functools.partial(jax.jit, inline=True)
def tree_rounds(tree: Tree, rate: Array) -> Rounds:
    """All legs and calls of one tree; `rate` is that of the stalls of one chunk's message.

    The stalls of an edge add up over its chunks, and the root waits for the way with most: with
    one chunk exactly, with more an upper bound, as a later chunk need not wait for an earlier one
    on every edge.

        P(M_h <= k) = P(M_(h-1) + Poisson(edge) <= k)^2

    level by level for counts up to 10, kept as survival; where more are likely, the first-moment
    bound `most_of_many` of 2^h ways. The levels are those of a full binary tree with the edges of
    `ranks` ranks, so that every stall is counted once.
    """
    edges = jnp.maximum(tree.ranks - 1, 1.0)
    depth = jnp.round(jnp.log2((edges + 2) / 2))
    depth = jnp.clip(depth, 1.0, _LEVELS)
    full = 2 * (jnp.exp2(depth) - 1)
    edge = tree.chunks * rate * edges / full
    survival = _recursion(edge, depth)
    odd = jnp.arange(1, 2 * _COUNTS, 2).astype(survival.dtype)
    mean = jnp.sum(survival, axis=0)
    square = jnp.sum(odd.reshape((_COUNTS,) + (1,) * mean.ndim) * survival, axis=0)
    bound = depth * jnp.minimum(most_of_many(edge, 0.6931471805599453 + 0 * edge), 1e30)
    light = survival[-1] < 1e-3
    number = tree.legs * tree.repeats
    variance = jnp.where(light, jnp.maximum(square - mean * mean, 0.0), depth * edge)
    return Rounds(
        number * jnp.where(light, mean, bound),
        number * variance,
        number * edges * tree.chunks * rate,
    )


def _poisson_masses(rate: Array) -> Array:
    """P(Poisson = 0), P(Poisson = 1) ... along a leading axis."""
    column = (-1,) + (1,) * rate.ndim
    power = jnp.arange(_COUNTS + 5).astype(rate.dtype).reshape(column)
    factorials = jnp.asarray(_LOG_FACTORIALS, rate.dtype).reshape(column)
    # the first power is taken apart, so that a small rate keeps its precision
    once = (rate * jnp.exp(-rate))[None]
    logarithm = jnp.log(jnp.maximum(rate, 1e-30))[None]
    return jnp.concatenate([jnp.exp(-rate)[None], once * jnp.exp(power * logarithm - factorials)])


def _recursion(edge: Array, depth: Array) -> Array:
    """P(M > k) of the whole tree for k = 0, 1 ... along a leading axis."""
    mass = _poisson_masses(jnp.minimum(edge, 20.0))
    beyond = jax.lax.cumsum(mass[1:], axis=0, reverse=True)[:_COUNTS]  # P(edge > k)

    def level(number: Array, above: Array) -> Array:
        # P(edge + M > k); `lower` are the counts below 0, which nothing adds up to
        padded = jnp.concatenate([lower, above])
        one = beyond + mass[:1] * above
        for j in range(1, _COUNTS):
            one = one + mass[j : j + 1] * padded[_COUNTS - 1 - j : 2 * _COUNTS - 1 - j]
        one = jnp.minimum(one, 1.0)
        return jnp.where(number.astype(depth.dtype) < depth[None], one * (2 - one), above)

    start = jnp.zeros((_COUNTS, *(edge + depth).shape), edge.dtype)
    lower = start[1:]
    return jax.lax.fori_loop(0, _LEVELS, level, start)
