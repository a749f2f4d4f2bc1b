"""One GPU's clock, temperature and power: heat makes leakage, leakage makes heat.

A cooling technology supplies a medium, the governor holds limits, and the operating point is the
highest clock at which a stable temperature within the limits exists. With T_b and R of the medium,

    P(T, phi) = P0 + v(phi)^2 (L0 exp(beta (T - T0)) + D phi),   v = max(v_min, 1 - s (1 - phi))
    T = T_b + R P(T, phi),   T <= T_c = min(T_limit, T_b + R P_limit)

Sources: power capping is P(phi) = cap, measured on an A100 [M]; leakage grows exponentially with
temperature, arXiv:1404.3381 and arXiv:1407.8116 [M]; the governor as NVML documents it [V].
True for seconds and longer (the junction settles in about 1 s), R of 0.015 to 1.5 K/W.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from fabric_kernels.cooling.chip import CODE, Limits, Medium, fold_temperature
from fabric_kernels.inputs.power_law import (
    Chip,
    leakage_power,
    power,
    power_slope,
    power_with_leakage,
    voltage,
)
from fabric_kernels.maths.lambert import feedback_growth
from fabric_kernels.maths.rare import unless

_E = 2.718281828459045


class OperatingPoint(NamedTuple):
    """Where a GPU settles.

    A tripped GPU has no stable point: it shows its lowest clock, the shutdown temperature and the
    heat that the medium takes away at that temperature.
    """

    clock: Array  # phi, share of full clock
    temperature: Array  # junction, degC
    power: Array  # W
    reason: Array  # index into LIMITS


def ceiling(limits: Limits, medium: Medium) -> tuple[Array, Array, Array]:
    """Temperature and power at which the first limit is met, and its code.

    All limits become one: T_c = min(T_limit, T_b + R P_limit), and P = (T_c - T_b) / R.
    """
    at_cap = medium.temperature + medium.resistance * limits.power
    capped = at_cap <= limits.temperature
    allowed = (limits.temperature - medium.temperature) / medium.resistance
    return (
        jnp.where(capped, at_cap, limits.temperature),
        jnp.where(capped, limits.power, allowed),
        jnp.where(capped, CODE["power"], CODE["thermal"]).astype(at_cap.dtype),
    )


@jax.custom_jvp
def operating_point(chip: Chip, limits: Limits, medium: Medium) -> OperatingPoint:
    """Highest clock with a stable temperature within the limits, and what limits it.

    The fast solution where it holds, else the robust one. Against root finding: float64 1e-12 in
    clock and 1e-9 K, float32 1e-6 and 1e-3 K (0.06 K at the fold, a double root). Derivatives
    are those of the equations, in forward and reverse mode; at a change of limit they are
    one-sided.
    """
    full_shape = partial(jnp.broadcast_to, shape=_shape(chip, limits, medium))
    point, valid = jax.tree.map(full_shape, fast(chip, limits, medium))
    return unless(valid, point, lambda: robust(chip, limits, medium))


@operating_point.defjvp
def _implicit(
    primals: tuple[Chip, Limits, Medium], tangents: tuple[Chip, Limits, Medium]
) -> tuple[OperatingPoint, OperatingPoint]:
    """Implicit function theorem: the derivative of one Newton step taken at the solution."""
    point = operating_point(*primals)
    _, change = jax.jvp(lambda *inputs: _corrected(point, *inputs), primals, tangents)
    return point, change


def fast(chip: Chip, limits: Limits, medium: Medium) -> tuple[OperatingPoint, Array]:
    """Operating point where the limit is met before the fold, and whether it holds.

    At the limit T_c is known, so leakage is a number and the clock the root of a cubic, convex
    and increasing: Newton from phi = 1 descends to it, 5 steps to 6e-13. At a fixed clock (1, or
    the lowest) the temperature is a Lambert W. Not valid where the fold comes before the limit.
    """
    limit, allowed, code = ceiling(limits, medium)
    leakage = leakage_power(chip, limit)
    free = power_with_leakage(chip, leakage, 1.0) <= allowed
    below = power_with_leakage(chip, leakage, chip.minimum_clock) > allowed
    clock = _cubic_root(chip, leakage, allowed)
    clock = jnp.where(free, 1.0, jnp.where(below, chip.minimum_clock, clock)).astype(limit.dtype)
    temperature, drawn, stable = _at_clock(chip, medium, clock)
    v = voltage(chip, clock)
    before_fold = medium.resistance * chip.leakage_coefficient * leakage * v * v < 1.0
    held = stable & (temperature <= limits.shutdown_temperature)
    settled = ~stable | (temperature > limit)
    valid = free | jnp.where(below, settled, before_fold)
    interior = OperatingPoint(clock, limit, allowed, code)
    at_end = OperatingPoint(clock, temperature, drawn, jnp.zeros_like(code))
    return _ladder(chip, limits, medium, interior, at_end, free=free, below=below, held=held), valid


def robust(chip: Chip, limits: Limits, medium: Medium) -> OperatingPoint:
    """Operating point by bisection on the clock, fold included.

    max over T of T - T_b - R P(T, phi) falls strictly with phi: bisection ends within 2^-24 of
    the clock, in float64 2^-52. The temperature is the lowest root, by Newton from T_b: the left
    side is concave in T, so iterates rise and never overshoot.
    """
    full_shape = partial(jnp.broadcast_to, shape=_shape(chip, limits, medium))
    chip, limits, medium = jax.tree.map(full_shape, (chip, limits, medium))
    limit, _, code = ceiling(limits, medium)
    steps, newton = (52, 40) if limit.dtype == jnp.float64 else (24, 24)
    lowest, full = chip.minimum_clock, jnp.ones_like(limit)
    free = _slack(chip, medium, limit, full) >= 0.0
    below = _slack(chip, medium, limit, lowest) < 0.0
    held = _slack(chip, medium, limits.shutdown_temperature, lowest) >= 0.0

    def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = 0.5 * (low + high)
        feasible = _slack(chip, medium, limit, middle) >= 0.0
        return jnp.where(feasible, middle, low), jnp.where(feasible, high, middle)

    low, _ = jax.lax.fori_loop(0, steps, halve, (lowest, full))
    clock = jnp.where(free, 1.0, jnp.where(below, lowest, low)).astype(limit.dtype)
    fold = fold_temperature(chip, medium, clock)
    reached = jnp.minimum(fold, limit)
    code = jnp.where(fold < limit, CODE["runaway"], code).astype(limit.dtype)
    inside = (reached - medium.temperature) / medium.resistance
    top = jnp.clip(fold, medium.temperature, jnp.maximum(limit, limits.shutdown_temperature))
    temperature = _lowest_root(chip, medium, clock, top, newton)
    interior = OperatingPoint(clock, reached, inside, code)
    drawn = (temperature - medium.temperature) / medium.resistance
    at_end = OperatingPoint(clock, temperature, drawn, jnp.zeros_like(code))
    return _ladder(chip, limits, medium, interior, at_end, free=free, below=below, held=held)


def _shape(*inputs: Chip | Limits | Medium) -> tuple[int, ...]:
    return jnp.broadcast_shapes(*(jnp.shape(x) for x in jax.tree.leaves(inputs)))


def _cubic_root(chip: Chip, leakage: Array, allowed: Array) -> Array:
    """Clock in [lowest, 1] where P0 + v^2 (leakage + D phi) = allowed, or the nearer end."""
    clock = jnp.ones_like(allowed)
    for _ in range(6 if allowed.dtype == jnp.float64 else 5):
        excess = power_with_leakage(chip, leakage, clock) - allowed
        clock = clock - excess / power_slope(chip, leakage, clock)
        clock = jnp.clip(clock, chip.minimum_clock, 1.0)
    return clock


def _at_clock(chip: Chip, medium: Medium, clock: Array) -> tuple[Array, Array, Array]:
    """Lowest temperature at a fixed clock, the power there, and whether there is one.

    T = T1 + R l1 G, with T1 the temperature without leakage, l1 the leakage at T1 and
    G = exp(beta R l1 G).
    """
    v = voltage(chip, clock)
    v_squared = v * v
    base_power = chip.idle_power + v_squared * (chip.dynamic_power * clock)
    start = medium.temperature + medium.resistance * base_power
    leakage = v_squared * leakage_power(chip, start)
    feedback = chip.leakage_coefficient * medium.resistance * leakage
    grown = leakage * feedback_growth(feedback)
    return start + medium.resistance * grown, base_power + grown, feedback * _E <= 1.0


def _slack(chip: Chip, medium: Medium, limit: Array, clock: Array) -> Array:
    """max of T - T_b - R P(T, phi) over T_b <= T <= limit, in K; >= 0 where the clock is held."""
    fold = fold_temperature(chip, medium, clock)
    at = jnp.clip(fold, medium.temperature, limit)
    return at - medium.temperature - medium.resistance * power(chip, at, clock)


def _lowest_root(chip: Chip, medium: Medium, clock: Array, top: Array, steps: int) -> Array:
    v = voltage(chip, clock)
    gain = medium.resistance * chip.leakage_coefficient * v * v

    def step(_: int, at: Array) -> Array:
        leakage = leakage_power(chip, at)
        drawn = power_with_leakage(chip, leakage, clock)
        missing = medium.temperature + medium.resistance * drawn - at
        slope = jnp.maximum(1.0 - gain * leakage, 1e-6)
        return jnp.clip(at + jnp.maximum(missing, 0.0) / slope, medium.temperature, top)

    return jax.lax.fori_loop(0, steps, step, medium.temperature)


def _ladder(
    chip: Chip,
    limits: Limits,
    medium: Medium,
    interior: OperatingPoint,
    at_end: OperatingPoint,
    *,
    free: Array,
    below: Array,
    held: Array,
) -> OperatingPoint:
    """The point of the status that applies: interior, or at an end of the clock's range."""
    removed = jnp.maximum(limits.shutdown_temperature - medium.temperature, 0.0)
    tripped = OperatingPoint(
        chip.minimum_clock,
        limits.shutdown_temperature,
        removed / medium.resistance,
        jnp.full_like(interior.reason, CODE["trip"]),
    )
    code = jnp.where(free, CODE["none"], CODE["floor"]).astype(interior.reason.dtype)
    at_end = at_end._replace(reason=code)
    lost = below & ~held
    return OperatingPoint(
        *(
            jnp.where(lost, trip, jnp.where(free | below, end, inside))
            for trip, end, inside in zip(tripped, at_end, interior, strict=True)
        )
    )


def _corrected(point: OperatingPoint, chip: Chip, limits: Limits, medium: Medium) -> OperatingPoint:
    """One Newton step at the solution: the same value, and the derivative of the solution."""
    reason = point.reason
    runaway, tripped = reason == CODE["runaway"], reason == CODE["trip"]
    at_end = (reason == CODE["none"]) | (reason == CODE["floor"]) | tripped
    limit, _, _ = ceiling(limits, medium)
    end = jnp.where(reason == CODE["none"], 1.0, chip.minimum_clock).astype(point.clock.dtype)
    at = jnp.where(runaway, point.temperature, limit)
    leakage = leakage_power(chip, at)
    excess = power_with_leakage(chip, leakage, point.clock) - (
        (at - medium.temperature) / medium.resistance
    )
    slope = jax.lax.stop_gradient(power_slope(chip, leakage, point.clock))
    clock = jnp.where(at_end, end, point.clock - excess / slope)
    leakage = leakage_power(chip, point.temperature)
    v = voltage(chip, clock)
    gain = medium.resistance * chip.leakage_coefficient * leakage * v * v
    missing = medium.temperature - point.temperature
    missing += medium.resistance * power_with_leakage(chip, leakage, clock)
    settled = missing / jax.lax.stop_gradient(jnp.maximum(1.0 - gain, 1e-6)) + point.temperature
    held = jnp.where(runaway, fold_temperature(chip, medium, clock), limit)
    temperature = jnp.where(at_end, settled, held)
    temperature = jnp.where(tripped, limits.shutdown_temperature, temperature)
    drawn = jnp.maximum(temperature - medium.temperature, 0.0) / medium.resistance
    return OperatingPoint(clock, temperature, drawn, reason)
