"""From stalls anywhere in an exchange to those that its slowest rank waits for."""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.lax import stop_gradient
from jax.scipy.special import erfc

from fabric_kernels.loss.laws.rounds import Rounds, rounds_of, sampled, together
from fabric_kernels.loss.laws.tree import tree_rounds
from fabric_kernels.maths.chain import chain_law, chain_quantile
from fabric_kernels.maths.normal import normal_quantile
from fabric_kernels.maths.poisson import largest_of, most_of_many, poisson_quantile
from fabric_kernels.pattern import Barrier, Doubling, Line, Pattern, Ring, Traffic, Tree
from fabric_kernels.uniform import Uniform


class Stalls(NamedTuple):
    """Stalls of one class on one message: what one costs (s), and how many there are."""

    cost: Array
    rate: Array  # Poisson


StallsOf = Callable[[Array], Stalls]
"""Stalls of a message of this many bytes."""


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


def stalled(traffics: Sequence[Traffic], stalls_of: StallsOf, channels: Array, luck: Luck) -> Array:
    """Time that stalls of one class add to the slowest group of an exchange (s).

    A message's stalls are Poisson. A ring waits for the longest chain of them (`chain_law`), a
    tree for its worst way up and down (`tree_rounds`), halving and doubling and rounds with a
    barrier for the worst message of each round, a line for all. With c `channels` every pattern
    is c side by side with a c-th of the payload each. Patterns and exchanges of one group that
    follow each other are one: their stalls are counted together and cost what they cost on
    average. The step waits for the worst of all copies, channels x parallel x groups; where those
    that follow each other differ in copies, the fewer are spread over the more, which keeps the
    chance of any stall and the mean of rare ones. Rings beside other patterns are taken at one
    level, which bounds their sum from above.
    """
    every = [(p, t.groups * channels) for t in traffics for p in t.patterns]
    rings = [(p, c) for p, c in every if isinstance(p, Ring)]
    others = [(p, c) for p, c in every if not isinstance(p, Ring)]
    total = jnp.zeros_like(luck.struck.distance + channels)
    if rings:
        load, cost = _rings(rings, stalls_of, channels)
        total = total + cost * ring_count(load, luck)
    if others:
        rounds, copies, cost = _rounds(others, stalls_of, channels)
        total = total + cost * sampled(rounds, copies, luck.struck)
    return total


@functools.partial(jax.jit, inline=True)
def ring_count(load: RingLoad, luck: Luck) -> Array:
    """Stalls that the slowest of `load.copies` rings waits for.

        n = largest of the Poisson counts,  count = chain of n stalls

    Where stalls are many, count and chain spread alike, and the slowest ring is not the one with
    most stalls: then the largest-of score belongs to the sum of the two parts, and the scores of
    the parts are turned into it by the angle of their deviations, as for two normal numbers. The
    turn starts at 4 stalls on a ring and is full at 16; with one copy it changes no law.
    """
    largest = largest_of(load.copies, luck.struck)
    common = jnp.clip((load.stalls - 4) / 12, 0.0, 1.0)
    known = jnp.maximum(load.stalls, 1.0)
    by_count = jnp.minimum(0.515 * jnp.sqrt(load.turns), jnp.sqrt(known))
    by_chain = 0.5 * jnp.exp(jnp.log(known) / 6) * common
    size = jnp.maximum(jnp.sqrt(by_count * by_count + by_chain * by_chain), 1e-30)
    most, other = normal_quantile(largest), normal_quantile(luck.chain)
    count_score = (by_count * most - by_chain * other) / size
    chain_score = (by_chain * most + by_count * other) / size
    turned = Uniform(
        count_score > 0, jnp.maximum(0.5 * erfc(jnp.abs(count_score) * 0.7071067811865476), 1e-37)
    )
    few = common == 0
    level = Uniform(
        jnp.where(few, largest.upper, turned.upper),
        jnp.where(few, largest.distance, turned.distance),
    )
    law = chain_law(poisson_quantile(load.stalls, level), load.ranks, load.turns)
    return chain_quantile(law, luck.chain, jnp.where(few, other, chain_score))


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


def _rings(
    rings: Sequence[tuple[Ring, Array]], stalls_of: StallsOf, channels: Array
) -> tuple[RingLoad, Array]:
    copies = _largest([c * r.parallel for r, c in rings])
    number = turns = paid = jnp.zeros_like(copies)
    for ring, share in rings:
        stalls = stalls_of(ring.payload / channels)
        spread = share * ring.parallel / copies
        # a count is a step function of its rate: only what a stall costs has a slope
        found = stop_gradient(ring.ranks * ring.steps * ring.repeats * stalls.rate * spread)
        number, paid = number + found, paid + found * stalls.cost
        turns = turns + ring.steps * ring.repeats / jnp.maximum(ring.ranks - 1, 1.0)
    load = stop_gradient(RingLoad(copies, _largest([r.ranks for r, _ in rings]), turns, number))
    return load, paid / jnp.where(number > 0, number, 1.0)


def _rounds(
    others: Sequence[tuple[Pattern, Array]], stalls_of: StallsOf, channels: Array
) -> tuple[Rounds, Array, Array]:
    each = [c * _parallel(p) for p, c in others]
    copies = _largest(each)
    paid, parts = jnp.zeros_like(copies), []
    for (pattern, _), copy in zip(others, each, strict=True):
        stalls = stalls_of(pattern.payload / channels)
        spread = copy / copies
        rounds = stop_gradient(_pattern_rounds(pattern, stalls.rate))
        rounds = Rounds(*(stop_gradient(spread) * value for value in rounds))
        parts.append(rounds)
        paid = paid + rounds.mean * stalls.cost
    rounds = together(parts)
    return rounds, copies, paid / jnp.where(rounds.mean > 0, rounds.mean, 1.0)


def _parallel(pattern: Pattern) -> Array | float:
    match pattern:
        case Tree():
            return pattern.trees * pattern.parallel
        case Ring() | Doubling():
            return pattern.parallel
        case Barrier() | Line():
            return 1.0


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
