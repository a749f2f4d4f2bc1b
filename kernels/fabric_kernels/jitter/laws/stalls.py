"""The noise of one exchange by the laws of its patterns, and its lower bound."""

import jax.numpy as jnp
from jax import Array

from fabric_kernels.inputs.noise import HopConditions
from fabric_kernels.jitter.barrier import sum_of_largest
from fabric_kernels.jitter.laws.conditions import latest_arrival, slowest_delay
from fabric_kernels.jitter.laws.ring import ring_stall
from fabric_kernels.jitter.laws.waits import doubling_stall, tree_stall
from fabric_kernels.noise import HopNoise
from fabric_kernels.pattern import Barrier, Doubling, Line, Pattern, Ring, Traffic, Tree

MEAN = 0.5614595  # exp(-Euler's constant): the exponential variate at a Gumbel law's mean


def surrogate_stall(
    traffic: Traffic,
    noise: HopNoise,
    exponential: Array,
    conditions: HopConditions | None = None,
    persistent: Array | None = None,
) -> Array:
    """Stall of one exchange (s) at -log u = exponential, the slowest of its groups.

    Patterns one after another are taken at the same level: an upper bound, as a barrier between
    them would be. `persistent` is the exponential variate of what is drawn once for all steps; it
    defaults to the same one.
    """
    level = exponential / traffic.groups
    lasting = level if persistent is None else persistent / traffic.groups
    total = jnp.zeros_like(level)
    for pattern in traffic.patterns:
        total = total + pattern_stall(pattern, noise, level, conditions, lasting)
    if conditions is not None and traffic.patterns:
        ranks = _messages(traffic.patterns[0])
        total = total + latest_arrival(conditions, ranks, lasting)
    return total


def pattern_stall(
    pattern: Pattern,
    noise: HopNoise,
    level: Array,
    conditions: HopConditions | None = None,
    lasting: Array | None = None,
) -> Array:
    """Stall of all calls of one pattern (s) at -log F = level."""
    delay = jnp.zeros_like(level)
    if conditions is not None:
        delay = slowest_delay(conditions, _messages(pattern), level if lasting is None else lasting)
    match pattern:
        case Ring():
            slots = None if conditions is None else conditions.receive_slots
            ring = across_fabric(pattern)
            one = level / jnp.maximum(ring.parallel, 1.0)
            return ring_stall(ring, noise, one, delay=delay, slots=slots)
        case Tree():
            extra = pattern.repeats * pattern.legs * delay
            return _summed(pattern, noise, level) + extra
        case Doubling():
            mean, _ = noise.moments()
            slow = pattern.repeats * pattern.levels * (mean + delay)
            least = jnp.where(delay > 0, slow, -jnp.inf)
            return jnp.maximum(_summed(pattern, noise, level), least)
        case Barrier():
            rounds = pattern.rounds * pattern.repeats
            return sum_of_largest(noise, pattern.messages, rounds, level) + rounds * delay
        case Line():
            hops = pattern.hops * pattern.repeats
            return sum_of_largest(noise, jnp.ones_like(hops), hops, level) + hops * delay


def mean_stall(traffic: Traffic, noise: HopNoise, exponential: Array) -> Array:
    """The hops of one path times their mean (s): what an exchange pays when nobody waits.

    A lower bound of the mean stall; the same for every level.
    """
    mean, _ = noise.moments()
    total = jnp.zeros_like(exponential)
    for pattern in traffic.patterns:
        total = total + path_hops(pattern) * mean
    return total


def path_hops(pattern: Pattern) -> Array:
    """Hops across the fabric, one after another, that every path of a pattern has."""
    match pattern:
        case Ring():
            return across_fabric(pattern).steps * pattern.repeats
        case Tree():
            steps = pattern.legs * pattern.levels + jnp.maximum(pattern.chunks - 1.0, 0.0)
            return jnp.where(pattern.levels > 0, steps, 0.0) * pattern.repeats
        case Doubling():
            return pattern.levels * pattern.repeats
        case Barrier():
            return pattern.rounds * pattern.repeats
        case Line():
            return pattern.hops * pattern.repeats


def across_fabric(ring: Ring) -> Ring:
    """The ring of those hops only that cross the fabric.

    Where a message crosses it in some of its steps, the ranks between two crossings move as one.
    """
    if ring.crossings is None:
        return ring
    share = ring.crossings / jnp.maximum(ring.steps, 1.0)
    return ring._replace(
        ranks=jnp.maximum(ring.ranks * share, 2.0), steps=ring.crossings, crossings=None
    )


def _messages(pattern: Pattern) -> Array:
    match pattern:
        case Ring() | Tree() | Doubling():
            return pattern.ranks
        case Barrier():
            return pattern.messages
        case Line():
            return jnp.ones_like(pattern.hops)


def _summed(pattern: Tree | Doubling, noise: HopNoise, level: Array) -> Array:
    """The sum of `repeats` independent calls: the mean as often, the spread by the square root.

    One call is exact. The mean is taken where a Gumbel law has it.
    """
    calls = pattern.repeats
    once = _call(pattern, noise, level)
    middle = _call(pattern, noise, jnp.full_like(level, MEAN))
    several = calls * middle + jnp.sqrt(calls) * (once - middle)
    return jnp.where(calls > 0, jnp.where(calls == 1, once, several), 0.0)


def _call(pattern: Tree | Doubling, noise: HopNoise, level: Array) -> Array:
    match pattern:
        case Tree():
            return tree_stall(pattern, noise, level)
        case Doubling():
            return doubling_stall(pattern, noise, level)
