"""How the ranks of an exchange wait for each other: what jitter and lost packets act on.

The type of a pattern is known when a model is built, so an exchange pays for the laws of its own
patterns only. Counts are numbers of a sample.
"""

from typing import NamedTuple

from jax import Array


class Ring(NamedTuple):
    """Ranks in a circle; in every step each sends one message to the next and waits for one."""

    ranks: Array
    steps: Array  # of one call: 2 (ranks - 1) for an all-reduce, ranks - 1 for one phase
    payload: Array  # bytes of one message across the fabric
    parallel: Array  # such rings of one group side by side
    repeats: Array  # calls one after another
    crossings: Array | None = None  # steps of one message that cross the fabric; None: all of them


class Tree(NamedTuple):
    """Ranks in a binary tree; a rank waits for both children (up) or its parent (down)."""

    ranks: Array
    levels: Array  # hops across the fabric from leaf to root
    legs: Array  # 2 up and down, 1 one way
    trees: Array  # trees that carry a share each at the same time (2: double binary tree)
    chunks: Array  # pipelined pieces of one tree's share
    payload: Array  # bytes of one chunk
    parallel: Array
    repeats: Array


class Doubling(NamedTuple):
    """Ranks in pairs at distance 1, 2, 4 ...; both of a pair wait for each other."""

    ranks: Array
    levels: Array  # exchanges of one call across the fabric: 2 log2(ranks) for halving and doubling
    payload: Array  # mean bytes of one message
    parallel: Array
    repeats: Array


class Barrier(NamedTuple):
    """Rounds that each end when the slowest of all their messages has come."""

    messages: Array  # of one round
    rounds: Array  # of one call
    payload: Array  # bytes of one message
    repeats: Array


class Line(NamedTuple):
    """Messages one after another, each waiting for the one before."""

    hops: Array
    payload: Array  # bytes of one message
    repeats: Array


Pattern = Ring | Tree | Doubling | Barrier | Line


class Traffic(NamedTuple):
    """What one exchange sends across the fabric in a step."""

    patterns: tuple[Pattern, ...]  # one after another
    groups: Array  # groups that do so at the same time, alike and independent


def repeated(patterns: tuple[Pattern, ...], times: Array) -> tuple[Pattern, ...]:
    """The same patterns, each `times` as often; 0 times is never."""
    return tuple(p._replace(repeats=p.repeats * times) for p in patterns)
