"""The fold of thermal runaway as a limit of the clock: where it lies, and what it costs."""

import jax.numpy as jnp
from jax import Array

from fabric_kernels.cooling.chip import Medium, fold_temperature
from fabric_kernels.cooling.deviation import Deviation, Sensitivity
from fabric_kernels.inputs.power_law import Chip, voltage

FASTEST = 4.0
"""Clocks above 1 only steer the search for the slowest GPU."""


def fold_newton(chip: Chip, medium: Medium, clock: Array) -> Array:
    """A step to the clock at which the fold is the operating point.

    There T_fold - T_b = R P(T_fold, phi), and leakage at the fold draws 1 / (R beta).
    """
    coefficient = jnp.maximum(chip.leakage_coefficient, 1e-6)
    v = voltage(chip, clock)
    s = jnp.where(v > chip.minimum_voltage, chip.voltage_slope, 0.0)
    drawn = chip.idle_power + v * v * chip.dynamic_power * clock
    room = fold_temperature(chip, medium, clock) - medium.temperature
    room = room - medium.resistance * drawn - 1.0 / coefficient
    switching = v * chip.dynamic_power * (2.0 * s * clock + v)
    falling = 2.0 * s / (v * coefficient) + medium.resistance * switching
    return jnp.clip(clock + room / jnp.maximum(falling, 1e-6), 0.0, FASTEST)


def fold_costs(chip: Chip, medium: Medium, sensitivity: Sensitivity, clock: Array) -> Deviation:
    """Kelvin of room below the fold that one unit of each deviation costs."""
    coefficient = jnp.maximum(chip.leakage_coefficient, 1e-6)
    v = voltage(chip, clock)
    switching = v * v * chip.dynamic_power * clock
    by_resistance = 1.0 / (coefficient * medium.resistance) + chip.idle_power + switching
    by_flow = by_resistance * sensitivity.resistance_by_flow + sensitivity.temperature_by_flow
    return Deviation(
        resistance=by_resistance * sensitivity.resistance_by_resistance,
        leakage=jnp.ones_like(clock) / coefficient,
        dynamic_power=medium.resistance * switching,
        temperature=jnp.ones_like(clock),
        flow=by_flow,
    )
