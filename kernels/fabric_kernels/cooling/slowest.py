"""The slowest of N GPUs that differ from each other: first-order reliability, limit by limit.

    clock of the slowest = min over limits of phi(z),   z = -a g / |g|,   a = Phi^-1(U^(1/N))

with g the gradient of the clock under one limit alone. Limits are kept apart (a series system): one
search on their minimum is wrong by up to 3.9 %, because two design points compete. Against brute
force, N = 72 to 131072: 0.06 to 0.5 % too fast, which is what first order leaves out, the curvature
of the limits: 0.04 to 0.06 of a standard deviation at every N. Starved plates are further off:
below the clock of the lowest voltage a clock follows heat two to three times as fast, and the
slowest GPU is 0.9 to 1.5 % too fast. Power cap and temperature are always searched; memory, dry-out
and the fold of thermal runaway only where some GPU of the tile may meet them, and with screening or
what groups of GPUs have in common only where there is such a thing.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from fabric_kernels.cooling.chip import CODE, Limits, Medium, Memory, fold_temperature, memory_power
from fabric_kernels.cooling.deviation import (
    Deviation,
    Group,
    Sensitivity,
    Supply,
    steepest,
    steepest_of_groups,
)
from fabric_kernels.cooling.fold import FASTEST, fold_costs, fold_newton
from fabric_kernels.inputs import Population
from fabric_kernels.inputs.power_law import (
    Chip,
    leakage_power,
    power_slope,
    power_with_leakage,
    voltage,
)
from fabric_kernels.maths.order_statistics import level_of_largest
from fabric_kernels.maths.rare import unless

_COMMON = (CODE["power"], CODE["thermal"])
_EVERY = (*_COMMON, CODE["hbm"], CODE["dry_out"], CODE["runaway"])
SEARCHES = 3  # phi is stationary on |z| = a: within 1e-5 of converged, 2e-4 at wide spreads
RARE_SEARCHES = 6
_STEPS = 8  # of Newton's method
_ROOM = 1.25  # a largest deviation is this much larger when it is asked whether a limit matters
_NO_SCREENING = 8.0  # standard deviations that no part of a million has


Limit = float | Array
"""Code of a limit of the clock; a number that is known costs nothing."""

_Search = Callable[[Deviation], Deviation]  # the deviation that hurts most at these costs


class Part(NamedTuple):
    """A GPU and what it must hold."""

    chip: Chip
    limits: Limits
    memory: Memory


class _Median(NamedTuple):
    """What every search starts from."""

    part: Part
    medium: Medium
    sensitivity: Sensitivity
    population: Population
    clock: Array
    fold: Array  # degC, of runaway at full clock


def slowest_clock(
    part: Part,
    supply: Supply,
    supplied: tuple[Medium, Sensitivity],
    population: Population,
    exponential: Array,
    count: Array,
    clock: Array,
) -> Array:
    """Clock of the slowest of `count` GPUs, at most `clock`, that of the nominal GPU.

    `supplied` is the median's medium; a small `exponential` gives a slow GPU. Clipped to the range
    of the governor. Cost: 2 limits x SEARCHES x (the exponentials of `supply` and one), and 2.
    """
    fold = fold_temperature(part.chip, supplied[0], jnp.ones_like(clock))
    median = _Median(part, *supplied, population, clock, fold)
    score = level_of_largest(count, exponential).normal_score
    size = jnp.minimum(population.common_group, count)
    group = Group(level_of_largest(count / size, exponential).normal_score, size)
    usual, alike = _is_usual(median, score), _is_alike(population)
    entering = jax.tree.leaves((median, score, group))
    shape = jnp.broadcast_shapes(*(jnp.shape(x) for x in entering))
    usual, alike = (jnp.broadcast_to(x, shape) for x in (usual, alike))

    def plain(costs: Deviation) -> Deviation:
        return steepest(costs, population, score)

    def grouped(costs: Deviation) -> Deviation:
        return steepest_of_groups(costs, population, group)

    def over(search: _Search) -> Array:
        return jnp.broadcast_to(_over_every_limit(median, supply, search, shape), shape)

    common = jnp.minimum(*(_branch(median, supply, score, limit) for limit in _COMMON))
    common = jnp.broadcast_to(common, shape)
    found = unless(usual & alike, common, lambda: unless(alike, over(plain), lambda: over(grouped)))
    return jnp.clip(found, part.chip.minimum_clock, clock)


def _is_usual(median: _Median, score: Array) -> Array:
    """Whether no GPU can meet a rare limit, at a deviation somewhat larger than the largest."""
    chip, limits, memory = median.part
    medium, sensitivity, population = median.medium, median.sensitivity, median.population
    reach = _ROOM * jnp.abs(score)
    warming = population.flow_spread * sensitivity.temperature_by_flow
    warmest = medium.temperature + reach * _hypot(population.inlet_temperature_spread, warming)
    cool_memory = memory_power(memory, warmest) >= limits.power
    losing = jnp.exp(-reach * population.flow_spread) * sensitivity.dry_out_power
    losing = jnp.where(sensitivity.dry_out_by_flow > 0, losing, sensitivity.dry_out_power)
    wet = losing >= limits.power
    by_flow = sensitivity.resistance_by_flow / medium.resistance * population.flow_spread
    resisting = _hypot(population.resistance_spread, by_flow)
    lowering = reach * _hypot(resisting, population.leakage_spread)
    coefficient = jnp.maximum(chip.leakage_coefficient, 1e-6)
    fold = median.fold - lowering / coefficient
    return cool_memory & wet & (fold >= limits.temperature)


def _is_alike(population: Population) -> Array:
    """Whether parts are neither screened nor alike in groups, so that one length is that of all."""
    unscreened = population.screening_limit >= _NO_SCREENING
    apart = population.common_temperature_share + population.common_flow_share <= 0
    return unscreened & apart


def _hypot(one: Array, other: Array) -> Array:
    return jnp.sqrt(one * one + other * other)


def _branch(median: _Median, supply: Supply, score: Array, limit: float) -> Array:
    """Clock at the design point of one limit alone."""
    clock = median.clock
    zero = jnp.zeros_like(score)
    deviation = Deviation(zero, zero, zero, zero, zero)
    medium, sensitivity = median.medium, median.sensitivity
    for _ in range(SEARCHES):
        chip, leakage, allowed = _deviating(median, (medium, sensitivity), deviation, limit)
        clock = _newton(chip, leakage, allowed, clock, steps=1)
        costs = _costs(median, chip, medium, sensitivity, (leakage, allowed, clock), limit)
        deviation = steepest(costs, median.population, score)
        medium, sensitivity = _supplied(supply, deviation)
    chip, leakage, allowed = _deviating(median, (medium, sensitivity), deviation, limit)
    return _newton(chip, leakage, allowed, clock, steps=5 if clock.dtype == jnp.float64 else 4)


def _supplied(supply: Supply, deviation: Deviation) -> tuple[Medium, Sensitivity]:
    medium, sensitivity = supply(deviation.resistance, deviation.flow)
    return medium._replace(temperature=medium.temperature + deviation.temperature), sensitivity


def _over_every_limit(
    median: _Median, supply: Supply, search: _Search, shape: tuple[int, ...]
) -> Array:
    """As the smallest `_branch`, over every limit, each by a search of its own.

    In loops, not unrolled, so that what is rarely computed is also quickly compiled.
    """
    zero = jnp.zeros(shape, median.clock.dtype)
    none = Deviation(zero, zero, zero, zero, zero)
    limits = jnp.asarray(_EVERY, zero.dtype)

    def branch(number: Array, slowest: Array) -> Array:
        limit = limits[number]

        def closer(_: int, state: tuple[Array, Deviation]) -> tuple[Array, Deviation]:
            clock, costs = _followed(median, supply, state[1], state[0], limit)
            full = search(costs)
            return clock, Deviation(*(zero + deviation for deviation in full))

        clock, _ = jax.lax.fori_loop(0, RARE_SEARCHES, closer, (zero + median.clock, none))
        return jnp.minimum(slowest, clock)

    return jax.lax.fori_loop(0, len(_EVERY), branch, zero + FASTEST)


def _followed(
    median: _Median, supply: Supply, deviation: Deviation, clock: Array, limit: Array
) -> tuple[Array, Deviation]:
    """Clock of a deviating part under one limit, and what its deviations cost there."""
    supplied = _supplied(supply, deviation)
    chip, leakage, allowed = _deviating(median, supplied, deviation, limit)
    temperature = supplied[0].temperature + supplied[0].resistance * allowed

    def folding(clock: Array) -> Array:
        # beyond the fold there is no stable temperature: whatever the limit, the fold is reached
        beyond = temperature > fold_temperature(chip, supplied[0], clock)
        return beyond | (limit == CODE["runaway"])

    def step(_: int, clock: Array) -> Array:
        usual = _newton(chip, leakage, allowed, clock, steps=1)
        return jnp.where(folding(clock), fold_newton(chip, supplied[0], clock), usual)

    clock = jax.lax.fori_loop(0, _STEPS, step, clock)
    costs = _costs(median, chip, *supplied, (leakage, allowed, clock), limit)
    at_fold, folded = fold_costs(chip, *supplied, clock), folding(clock)
    pairs = zip(at_fold, costs, strict=True)
    return clock, Deviation(*(jnp.where(folded, fold, usual) for fold, usual in pairs))


def _newton(chip: Chip, leakage: Array, allowed: Array, clock: Array, *, steps: int) -> Array:
    """Clock that draws the allowed power; a search gets by on one step, its result does not."""
    for _ in range(steps):
        excess = power_with_leakage(chip, leakage, clock) - allowed
        clock = jnp.clip(clock - excess / power_slope(chip, leakage, clock), 0.0, FASTEST)
    return clock


def _deviating(
    median: _Median, supplied: tuple[Medium, Sensitivity], deviation: Deviation, limit: Limit
) -> tuple[Chip, Array, Array]:
    """A deviating part, its leakage at the limit, and the power the limit allows."""
    chip, limits, memory = median.part
    medium, sensitivity = supplied
    allowed = _pick(limit, "hbm", memory_power(memory, medium.temperature), limits.power)
    allowed = _pick(limit, "dry_out", sensitivity.dry_out_power, allowed)
    allowed = jnp.minimum(allowed, limits.power)
    by_heat = (limits.temperature - medium.temperature) / medium.resistance
    # beyond the fold more heat asks for less power: a limit that high is none
    hottest = jnp.maximum(limits.temperature, median.fold)
    at = jnp.minimum(medium.temperature + medium.resistance * allowed, hottest)
    allowed = (at - medium.temperature) / medium.resistance
    at, allowed = (
        _pick(limit, "thermal", limits.temperature, at),
        _pick(limit, "thermal", by_heat, allowed),
    )
    spread = median.population.leakage_spread
    # minus half the variance: the population's mean leakage is that of the chip
    more = jnp.exp(deviation.leakage - 0.5 * spread * spread)
    dynamic = chip.dynamic_power * jnp.maximum(1.0 + deviation.dynamic_power, 0.0)
    part = chip._replace(dynamic_power=dynamic, leakage=chip.leakage * more)
    return part, leakage_power(part, at), allowed


def _costs(
    median: _Median,
    chip: Chip,
    medium: Medium,
    sensitivity: Sensitivity,
    point: tuple[Array, Array, Array],
    limit: Limit,
) -> Deviation:
    """Power (W) that one unit of each deviation costs at (leakage, allowed power, clock)."""
    leakage, allowed, clock = point
    v = voltage(chip, clock)
    leaking, switching = v * v * leakage, v * v * median.part.chip.dynamic_power * clock
    heating = chip.leakage_coefficient * leaking
    kept = heating * medium.resistance - 1.0
    lost = _pick(limit, "hbm", -kept / median.part.memory.cross_resistance, 0.0)
    heating = _pick(limit, "thermal", 1.0 / medium.resistance, heating)
    by_flow = allowed * sensitivity.resistance_by_flow + sensitivity.temperature_by_flow
    by_flow = heating * by_flow + lost * sensitivity.temperature_by_flow
    drying = _pick(limit, "dry_out", kept * sensitivity.dry_out_by_flow, 0.0)
    return Deviation(
        resistance=heating * allowed * sensitivity.resistance_by_resistance,
        leakage=leaking,
        dynamic_power=switching,
        temperature=heating + lost,
        flow=by_flow + drying,
    )


def _pick(limit: Limit, name: str, this: Array | float, other: Array | float) -> Any:
    """`this` where the limit is that of the name; for a known limit only one is computed."""
    if isinstance(limit, float):
        return this if limit == CODE[name] else other
    return jnp.where(limit == CODE[name], this, other)
