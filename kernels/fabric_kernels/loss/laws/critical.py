"""From stalls anywhere in an exchange to those that its slowest rank waits for."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.lax import stop_gradient
from jax.scipy.special import erfc

from fabric_kernels.loss.laws.rounds import Rounds, counted, rounds_of, together
from fabric_kernels.loss.laws.tree import tree_rounds
from fabric_kernels.maths.chain import chain_law, chain_quantile
from fabric_kernels.maths.normal import normal_quantile
from fabric_kernels.maths.poisson import largest_of, most_of_many, poisson_quantile
from fabric_kernels.pattern import Barrier, Doubling, Line, Pattern, Ring, Tree
from fabric_kernels.uniform import Uniform


class Stalls(NamedTuple):
    """Stalls of one class on one message: what one costs (s), and how many there are."""

    cost: Array
    rate: Array  # Poisson


class Load(NamedTuple):
    """A pattern, in how many copies it runs at once, and the stalls of one of its messages."""

    pattern: Pattern
    copies: Array  # channels x parallel x groups
    stalls: Stalls


class Waits(NamedTuple):
    """Stalls that the worst of some independent copies waits for."""

    cost: Array  # s, of one count
    rate: Array  # Poisson, of one copy
    copies: Array


class Luck(NamedTuple):
    """Two uniforms of one class: how many stalls, and how they lie to each other."""

    struck: Uniform
    chain: Uniform


class RingLoad(NamedTuple):
    """Stalls on rings that run side by side, alike and independent."""

    copies: Array
    ranks: Array
    turns: Array  # times a message goes round, all calls together
    stalls: Array  # expected on one ring


class _Turned(NamedTuple):
    """Levels of the count of stalls and of their chain on the slowest ring."""

    level: Uniform
    score: Array
    chain_score: Array


@functools.partial(jax.jit, inline=True)
def stalled(loads: Sequence[Load], others: Sequence[Waits], luck: Luck) -> Array:
    """Time that stalls add to the slowest group of an exchange (s), `others` included.

    A message's stalls are Poisson. A ring waits for the longest chain of them (`chain_law`), a
    tree for its worst way up and down (`tree_rounds`), halving and doubling and rounds with a
    barrier for the worst message of each round, a line for all. Patterns and exchanges of one
    group that follow each other are one: their stalls are counted together and cost what they
    cost on average. The step waits for the worst of all copies; where those that follow each
    other differ in copies, the fewer are spread over the more, which keeps the chance of any
    stall and the mean of rare ones. Rings beside other patterns are taken at one level, which
    bounds their sum from above.

    Arrays have two axes in front of those of the lanes: the first is for classes of stalls, each
    with luck of its own, the second has one place and is filled here, so that all counts of an
    exchange come from one quantile.
    """
    rings = [(load.pattern, load) for load in loads if isinstance(load.pattern, Ring)]
    rounds = [load for load in loads if not isinstance(load.pattern, Ring)]
    ring = [_rings(rings)] if rings else []
    waits = [*(wait for wait, _ in ring), *([_rounds(rounds)] if rounds else []), *others]
    every = Waits(*(side_by_side(values) for values in zip(*waits, strict=True)))
    if ring:
        counts = _counts_with_ring(every, ring[0][1], luck)
    else:
        counts = poisson_quantile(every.rate, largest_of(every.copies, luck.struck))
    return jnp.sum(every.cost * counts, axis=1, keepdims=True)


def _counts_with_ring(waits: Waits, load: RingLoad, luck: Luck) -> Array:
    """The counts of all waits; the first is that of a ring, as of `ring_count`."""
    levels = largest_of(waits.copies, luck.struck)
    scores = normal_quantile(_joined(levels, luck.chain))
    first, rest = (jax.tree.map(lambda x, at=at: x[:, at], levels) for at in _FIRST_AND_REST)
    own = scores[:, :1], scores[:, -1:]
    turned = _turned(load.stalls, load.turns, Luck(first, luck.chain), own)
    scores = side_by_side([turned.score, scores[:, 1:-1]])
    counts = poisson_quantile(waits.rate, _joined(turned.level, rest), scores)
    law = chain_law(counts[:, :1], load.ranks, load.turns)
    chained = chain_quantile(law, luck.chain, turned.chain_score)
    return side_by_side([chained, counts[:, 1:]])


_FIRST_AND_REST = slice(0, 1), slice(1, None)


def ring_count(load: RingLoad, luck: Luck) -> Array:
    """Stalls that the slowest of `load.copies` rings waits for.

        n = largest of the Poisson counts,  count = chain of n stalls

    Where stalls are many, count and chain spread alike, and the slowest ring is not the one with
    most stalls: then the largest-of score belongs to the sum of the two parts, and the scores of
    the parts are turned into it by the angle of their deviations, as for two normal numbers. The
    turn starts at 4 stalls on a ring and is full at 16; with one copy it changes no law.
    """
    level = largest_of(load.copies, luck.struck)
    scores = normal_quantile(level), normal_quantile(luck.chain)
    turned = _turned(load.stalls, load.turns, Luck(level, luck.chain), scores)
    number = poisson_quantile(load.stalls, turned.level, turned.score)
    law = chain_law(number, load.ranks, load.turns)
    return chain_quantile(law, luck.chain, turned.chain_score)


def _turned(stalls: Array, turns: Array, luck: Luck, scores: tuple[Array, Array]) -> _Turned:
    """The levels of `ring_count`, from those of the largest count and of its chain."""
    largest = luck.struck
    common = jnp.clip((stalls - 4) / 12, 0.0, 1.0)
    known = jnp.maximum(stalls, 1.0)
    by_count = jnp.minimum(0.515 * jnp.sqrt(turns), jnp.sqrt(known))
    by_chain = 0.5 * jnp.exp(jnp.log(known) / 6) * common
    size = jnp.maximum(jnp.sqrt(by_count * by_count + by_chain * by_chain), 1e-30)
    most, other = scores
    count_score = (by_count * most - by_chain * other) / size
    chain_score = (by_chain * most + by_count * other) / size
    tail = jnp.maximum(0.5 * erfc(jnp.abs(count_score) * 0.7071067811865476), 1e-37)
    few = common == 0
    level = Uniform(
        jnp.where(few, largest.upper, count_score > 0),
        jnp.where(few, largest.distance, tail),
    )
    return _Turned(level, jnp.where(few, most, count_score), jnp.where(few, other, chain_score))


def mean_ring_count(load: RingLoad) -> Array:
    """Mean number of stalls that one ring waits for, integrated over the Poisson count.

    Summed count by count for up to 8 expected stalls; beyond, L(m) (1 - 1 / (8 m)), the second
    order of a square root. Within 0.3 % of the sum everywhere. For one copy.
    """
    few = jnp.minimum(load.stalls, 8.0)

    def added(number: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        mass, total = carry
        count = jnp.full_like(few, 1.0) * number.astype(few.dtype)
        mass = mass * few / count
        return mass, total + mass * chain_law(count, load.ranks, load.turns).mean

    _, total = jax.lax.fori_loop(1, 28, added, (jnp.exp(-few), jnp.zeros_like(few)))
    many = jnp.maximum(load.stalls, 8.0)
    smooth = chain_law(many, load.ranks, load.turns).mean * (1 - 1 / (8 * many))
    return jnp.where(load.stalls <= 8, total, smooth)


def _largest(values: Sequence[Array]) -> Array:
    found = values[0]
    for value in values[1:]:
        found = jnp.maximum(found, value)
    return found


def side_by_side(values: Sequence[Array]) -> Array:
    """Along the second axis."""
    first, _, *lanes = jnp.broadcast_shapes(*(v[:, :1].shape for v in values))
    every = [jnp.broadcast_to(v, (first, v.shape[1], *lanes)) for v in values]
    return jnp.concatenate(every, axis=1)


def _joined(one: Uniform, other: Uniform) -> Uniform:
    return Uniform(*(side_by_side(pair) for pair in zip(one, other, strict=True)))


def _rings(rings: Sequence[tuple[Ring, Load]]) -> tuple[Waits, RingLoad]:
    copies = _largest([load.copies for _, load in rings])
    number = turns = paid = jnp.zeros_like(copies)
    for ring, load in rings:
        # a count is a step function of its rate: only what a stall costs has a slope
        ring, rate, spread = stop_gradient((ring, load.stalls.rate, load.copies / copies))
        found = ring.ranks * ring.steps * ring.repeats * rate * spread
        number, paid = number + found, paid + found * load.stalls.cost
        turns = turns + ring.steps * ring.repeats / jnp.maximum(ring.ranks - 1, 1.0)
    ranks = _largest([ring.ranks for ring, _ in rings])
    load = stop_gradient(RingLoad(copies, ranks, turns, number))
    return Waits(paid / jnp.where(number > 0, number, 1.0), number, load.copies), load


def _rounds(loads: Sequence[Load]) -> Waits:
    copies = stop_gradient(_largest([load.copies for load in loads]))
    paid, parts = jnp.zeros_like(copies), []
    for load in loads:
        pattern, rate, spread = stop_gradient(
            (load.pattern, load.stalls.rate, load.copies / copies)
        )
        rounds = Rounds(*(spread * value for value in _pattern_rounds(pattern, rate)))
        parts.append(rounds)
        paid = paid + rounds.mean * load.stalls.cost
    rounds = together(parts)
    unit, rate = counted(rounds)
    return Waits(unit * paid / jnp.where(rounds.mean > 0, rounds.mean, 1.0), rate, copies)


def _pattern_rounds(pattern: Pattern, rate: Array) -> Rounds:
    match pattern:
        case Tree():
            return tree_rounds(pattern, rate)
        case Doubling():
            return doubling_rounds(pattern, rate)
        case Barrier():
            return rounds_of(pattern.messages, rate, pattern.rounds * pattern.repeats)
        case Line():
            number = pattern.hops * pattern.repeats * rate
            return Rounds(number, number, number)
        case Ring():
            raise TypeError("a ring has a chain law of its own: ring_count")


def doubling_rounds(doubling: Doubling, rate: Array) -> Rounds:
    """Halving and doubling: both of a pair wait for each other.

    Its mean is the smaller of two upper bounds: every level a barrier of all ranks, exact where
    stalls are rare; and the first-moment bound of 4^levels ways (`most_of_many`), as the speed of
    a branching random walk (Biggins, Advances in Applied Probability 8(3), 1976).
    """
    number = doubling.levels * doubling.repeats
    barrier = rounds_of(doubling.ranks, rate, number)
    walk = number * most_of_many(rate, 1.3862943611198906 + 0 * rate)
    mean = jnp.minimum(barrier.mean, walk)
    return barrier._replace(mean=mean, variance=jnp.minimum(barrier.variance, mean))
