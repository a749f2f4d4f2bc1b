"""How one GPU of a population deviates from the nominal one, and which deviation hurts most.

Thermal resistance, leakage, dynamic power, inlet temperature and flow of a GPU deviate by five
standard normals z. For one limit of the clock, the point of the first-order reliability method is
the z of a given probability where the clock is lowest: it lies along the gradient of the clock
(Hasofer and Lind, J. Eng. Mech. Div. ASCE 100, 1974).
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from fabric_kernels.cooling.chip import Medium
from fabric_kernels.inputs import Population
from fabric_kernels.maths.normal import log_survival
from fabric_kernels.maths.order_statistics import level_of_exponent
from fabric_kernels.maths.screened_normal import screened_scores

_TINY = 1e-20
_SPLITS = 4  # of a largest deviation into what a group shares and what is a part's own


class Sensitivity(NamedTuple):
    """How the medium of one GPU follows its deviations."""

    resistance_by_resistance: Array  # dR / d ln(resistance factor), K W-1
    resistance_by_flow: Array  # dR / d ln(flow), K W-1, not positive
    temperature_by_flow: Array  # dT_b / d ln(flow), K, not positive
    dry_out_power: Array | float = 1e9  # W that the medium can take away
    dry_out_by_flow: Array | float = 0.0  # d(dry-out power) / d ln(flow), W


Supply = Callable[[Array | float, Array | float], tuple[Medium, Sensitivity]]
"""Medium of a GPU whose resistance and flow have these log factors; 0 is the nominal GPU."""


class Deviation(NamedTuple):
    """A value for each of the five: a deviation, or what one unit of it costs."""

    resistance: Array  # of the log
    leakage: Array  # of the log
    dynamic_power: Array  # relative
    temperature: Array  # K
    flow: Array  # of the log


def spreads_of(population: Population) -> Deviation:
    """Standard deviations of the five."""
    return Deviation(
        population.resistance_spread,
        population.leakage_spread,
        population.dynamic_power_spread,
        population.inlet_temperature_spread,
        population.flow_spread,
    )


def steepest(costs: Deviation, population: Population, score: Array) -> Deviation:
    """The deviation whose normals have length `score` and point where power costs grow fastest."""
    spreads = spreads_of(population)
    normals = [cost * spread for cost, spread in zip(costs, spreads, strict=True)]
    length = sum((z * z for z in normals[1:]), normals[0] * normals[0])
    scale = score * jax.lax.rsqrt(jnp.maximum(length, _TINY))
    return Deviation(*(z * s * scale for z, s in zip(normals, spreads, strict=True)))


class Group(NamedTuple):
    """The largest of many parts that come in groups with something in common."""

    score: Array  # normal score of the largest of all groups
    size: Array  # parts of one group


def largest_split(group: Group, common: Array, own: Array) -> tuple[Array, Array]:
    """Scores (r, m) of the common and the own part of the largest of common r + own m.

    r is a normal of the group and m the largest of its parts' normals. With the normal score e of
    m's law the largest over all groups is sought on r^2 + e^2 = score^2, where common r + own m(e)
    is largest: exact where nothing or everything is common. common^2 + own^2 = 1.
    """

    def split(_: int, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        slope = state[2]
        lever = own * slope
        scale = group.score * jax.lax.rsqrt(jnp.maximum(common * common + lever * lever, _TINY))
        shared, apart = scale * common, scale * lever
        exponent = -log_survival(-apart)
        largest = level_of_exponent(exponent / group.size).normal_score
        # d m / d e, from Phi(m)^n = Phi(e)
        ratio = 0.5 * (largest * largest - apart * apart) - exponent / group.size + exponent
        return shared, largest, jnp.exp(jnp.clip(ratio, -30.0, 30.0)) / group.size

    zero = jnp.zeros_like(group.score + group.size + common + own)
    start = zero, group.score + zero, jnp.ones_like(zero)
    shared, largest, _ = jax.lax.fori_loop(0, _SPLITS, split, start)
    return shared, largest


def steepest_of_groups(costs: Deviation, population: Population, group: Group) -> Deviation:
    """As `steepest`, in a population with groups or screening.

    Screening cuts what is a part's own, not what a group has in common.
    """
    zero = jnp.zeros_like(group.score)
    spreads = _stacked(spreads_of(population), zero)
    shares = _stacked(
        Deviation(
            zero, zero, zero, population.common_temperature_share, population.common_flow_share
        ),
        zero,
    )
    normals = _stacked(costs, zero) * spreads
    # only the direction counts, and squares must not overflow
    largest_cost = jnp.max(jnp.abs(normals), axis=0, keepdims=True)
    normals = normals / jnp.maximum(largest_cost, _TINY)
    own, common = normals * jnp.sqrt(1.0 - shares), normals * jnp.sqrt(shares)
    by_own, by_common = _length(own), _length(common)
    total = _hypot(by_own, by_common)
    group = Group(group.score[None], (group.size + zero)[None])
    shared, largest = largest_split(group, by_common / total, by_own / total)
    limit = (population.screening_limit + zero)[None]
    scores = screened_scores(own / by_own, largest, limit)
    in_common = jnp.sqrt(shares) * shared * common / by_common
    return Deviation(*(spreads * (jnp.sqrt(1.0 - shares) * scores + in_common)))


def _stacked(values: Deviation, like: Array) -> Array:
    """Along a first axis, in the rank of `like`, since a value may be a scalar."""
    return jnp.stack(jnp.broadcast_arrays(*values, like)[:-1])


def _length(normals: Array) -> Array:
    """Length over the first axis, kept; never 0."""
    return jnp.sqrt(jnp.maximum(jnp.sum(normals * normals, axis=0, keepdims=True), _TINY))


def _hypot(one: Array, other: Array) -> Array:
    return jnp.sqrt(jnp.maximum(one * one + other * other, _TINY))
