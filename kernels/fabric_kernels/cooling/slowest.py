"""The slowest of N GPUs that differ from each other: first-order reliability, limit by limit.

Thermal resistance, leakage, dynamic power, inlet temperature and flow of a GPU deviate by five
independent standard normals z. For one limit at a time, the point of |z| = a where the clock is
lowest is found from the gradient g of the clock (Hasofer and Lind, J. Eng. Mech. Div. ASCE 100,
1974):

    z = -a g / |g|,   a = Phi^-1(U^(1/N)),   clock of the slowest = min over limits of phi(z)

Limits are kept apart (a series system): one search on their minimum is wrong by up to 3.9 %,
because two design points compete. Against brute force, N = 72 to 131072: 0.06 to 0.7 % too fast.
Not included: parts outside the normal population, screening, and the fold of thermal runaway,
which is not one of the limits here.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from fabric_kernels.cooling.chip import (
    Chip,
    Limits,
    Medium,
    power_slope,
    power_with_leakage,
    voltage,
)
from fabric_kernels.inputs import Population

SEARCHES = 3  # phi is stationary on |z| = a: within 1e-5 of converged, 2e-4 at wide spreads
_FASTEST = 4.0  # clocks above 1 only steer the search


class Sensitivity(NamedTuple):
    """How the medium of one GPU follows its deviations."""

    resistance_by_resistance: Array  # dR / d ln(resistance factor), K W-1
    resistance_by_flow: Array  # dR / d ln(flow), K W-1, not positive
    temperature_by_flow: Array  # dT_b / d ln(flow), K, not positive


Supply = Callable[[Array | float, Array | float], tuple[Medium, Sensitivity]]
"""Medium of a GPU whose resistance and flow have these log factors; 0 is the nominal GPU."""


class _Deviation(NamedTuple):
    """The five normals, times the population's spread."""

    resistance: Array  # of the log
    leakage: Array  # of the log
    dynamic_power: Array  # relative
    temperature: Array  # K
    flow: Array  # of the log


class _Median(NamedTuple):
    """What every search starts from."""

    chip: Chip
    limits: Limits
    medium: Medium
    sensitivity: Sensitivity
    population: Population
    clock: Array


def slowest_clock(
    chip: Chip,
    limits: Limits,
    supply: Supply,
    supplied: tuple[Medium, Sensitivity],
    population: Population,
    score: Array,
    clock: Array,
) -> Array:
    """Clock of the slowest GPU, at most `clock`, that of the nominal GPU.

    `supplied` is the median's medium; `score` is a, above 0 for a slow GPU. Clipped to the range
    of the governor. Cost: 2 limits x SEARCHES x (the exponentials of `supply` and one), and 2.
    """
    median = _Median(chip, limits, *supplied, population, clock)
    by_power = _branch(median, supply, score, hot=False)
    by_heat = _branch(median, supply, score, hot=True)
    return jnp.clip(jnp.minimum(by_power, by_heat), chip.minimum_clock, clock)


def _branch(median: _Median, supply: Supply, score: Array, *, hot: bool) -> Array:
    """Clock of one limit at its design point: only the temperature's (hot) or only the power's."""
    clock, chip = median.clock, median.chip
    zero = jnp.zeros_like(score)
    deviation = _Deviation(zero, zero, zero, zero, zero)
    medium, sensitivity = median.medium, median.sensitivity
    for _ in range(SEARCHES):
        part, leakage, allowed = _deviating(median, medium, deviation, hot=hot)
        clock = _newton(part, leakage, allowed, clock, steps=1)
        v = voltage(chip, clock)
        leaking, switching = v * v * leakage, v * v * chip.dynamic_power * clock
        heating = 1.0 / medium.resistance if hot else chip.leakage_coefficient * leaking
        costs = _costs(leaking, switching, heating, allowed, sensitivity)
        deviation = _steepest(costs, median.population, score)
        medium, sensitivity = supply(deviation.resistance, deviation.flow)
        medium = medium._replace(temperature=medium.temperature + deviation.temperature)
    part, leakage, allowed = _deviating(median, medium, deviation, hot=hot)
    return _newton(part, leakage, allowed, clock, steps=5 if clock.dtype == jnp.float64 else 4)


def _newton(chip: Chip, leakage: Array, allowed: Array, clock: Array, *, steps: int) -> Array:
    """Clock that draws the allowed power; a search gets by on one step, its result does not."""
    for _ in range(steps):
        excess = power_with_leakage(chip, leakage, clock) - allowed
        clock = jnp.clip(clock - excess / power_slope(chip, leakage, clock), 0.0, _FASTEST)
    return clock


def _deviating(
    median: _Median, medium: Medium, deviation: _Deviation, *, hot: bool
) -> tuple[Chip, Array, Array]:
    """A deviating part, its leakage at the limit, and the power the limit allows."""
    chip, limits = median.chip, median.limits
    if hot:
        limit = limits.temperature
        allowed = (limit - medium.temperature) / medium.resistance
    else:
        limit = medium.temperature + medium.resistance * limits.power
        allowed = limits.power
    spread = median.population.leakage_spread
    heating = chip.leakage_coefficient * (limit - chip.leakage_reference)
    # minus half the variance: the population's mean leakage is that of the chip
    heating += deviation.leakage - 0.5 * spread * spread
    leakage = chip.leakage * jnp.exp(jnp.minimum(heating, 60.0))
    dynamic = chip.dynamic_power * jnp.maximum(1.0 + deviation.dynamic_power, 0.0)
    return chip._replace(dynamic_power=dynamic), leakage, allowed


def _costs(
    leaking: Array, switching: Array, heating: Array, allowed: Array, sensitivity: Sensitivity
) -> _Deviation:
    """Power (W) that one unit of each deviation costs, `heating` being that of one kelvin."""
    by_flow = allowed * sensitivity.resistance_by_flow + sensitivity.temperature_by_flow
    return _Deviation(
        resistance=heating * allowed * sensitivity.resistance_by_resistance,
        leakage=leaking,
        dynamic_power=switching,
        temperature=heating,
        flow=heating * by_flow,
    )


def _steepest(costs: _Deviation, population: Population, score: Array) -> _Deviation:
    """The deviation whose normals have length `score` and point where power costs grow fastest."""
    spreads = _Deviation(
        population.resistance_spread,
        population.leakage_spread,
        population.dynamic_power_spread,
        population.inlet_temperature_spread,
        population.flow_spread,
    )
    normals = [cost * spread for cost, spread in zip(costs, spreads, strict=True)]
    length = sum((z * z for z in normals[1:]), normals[0] * normals[0])
    scale = score * jax.lax.rsqrt(jnp.maximum(length, 1e-20))
    return _Deviation(*(z * s * scale for z, s in zip(normals, spreads, strict=True)))
