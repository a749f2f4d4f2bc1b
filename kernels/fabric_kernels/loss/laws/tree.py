"""Stalls on the longest way from the leaves of a tree to its root."""

import functools

import jax
import jax.numpy as jnp
from jax import Array

from fabric_kernels.loss.laws.rounds import Rounds
from fabric_kernels.maths.poisson import most_of_many
from fabric_kernels.pattern import Tree

_COUNTS = 10
_LEVELS = 24


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
    mean = sum(survival[1:], survival[0])
    square = sum(((2 * k + 1) * s for k, s in enumerate(survival)), jnp.zeros_like(mean))
    bound = depth * jnp.minimum(most_of_many(edge, 0.6931471805599453 + 0 * edge), 1e30)
    light = survival[-1] < 1e-3
    number = tree.legs * tree.repeats
    variance = jnp.where(light, jnp.maximum(square - mean * mean, 0.0), depth * edge)
    return Rounds(
        number * jnp.where(light, mean, bound),
        number * variance,
        number * edges * tree.chunks * rate,
    )


def _recursion(edge: Array, depth: Array) -> list[Array]:
    """P(M > k) of the whole tree for k = 0, 1 ..."""
    small = jnp.minimum(edge, 20.0)
    mass = [jnp.exp(-small)]
    for count in range(1, _COUNTS + 6):
        mass.append(mass[-1] * small / count)
    beyond = [sum(mass[k + 2 :], mass[k + 1]) for k in range(_COUNTS)]  # P(edge > k)

    def level(number: Array, above: list[Array]) -> list[Array]:
        raised = []
        for k in range(_COUNTS):
            # P(edge + M > k)
            one = beyond[k]
            for j in range(k + 1):
                one = one + mass[j] * above[k - j]
            one = jnp.minimum(one, 1.0)
            inside = number.astype(depth.dtype) < depth
            raised.append(jnp.where(inside, one * (2 - one), above[k]))
        return raised

    start = [jnp.zeros_like(edge + depth)] * _COUNTS
    return jax.lax.fori_loop(0, _LEVELS, level, start)
