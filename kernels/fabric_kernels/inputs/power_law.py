"""The power law of one GPU.

    v(phi)    = max(v_min, 1 - s (1 - phi))
    P(T, phi) = P0 + v(phi)^2 (L0 exp(beta (T - T0)) + D phi)

Power capping is P(phi) = cap, measured on an A100 [M]; leakage grows exponentially with
temperature, arXiv:1404.3381 and arXiv:1407.8116 [M].
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from fabric_kernels.inputs.chip import Gpu

_SMALLEST_SLOPE = 1e-6  # W: a chip whose power ignores its clock has no clock to find


class Chip(NamedTuple):
    """The power law of one GPU."""

    idle_power: Array  # P0, W
    leakage: Array  # L0, W at full voltage and the reference temperature
    leakage_reference: Array  # T0, degC
    leakage_coefficient: Array  # beta, K-1
    dynamic_power: Array  # D, W at full clock and voltage and the activity of the workload
    minimum_voltage: Array  # v_min, share of full voltage
    voltage_slope: Array  # s
    minimum_clock: Array  # lowest phi of the governor


def chip_of(gpu: Gpu) -> Chip:
    """The power law of a nominal GPU under the workload's activity."""
    design = gpu.thermal_design_power
    idle = gpu.idle_power_share + gpu.memory_power_share * gpu.memory_activity
    return Chip(
        idle_power=design * idle,
        leakage=design * gpu.leakage_share,
        leakage_reference=gpu.leakage_reference_temperature,
        leakage_coefficient=gpu.leakage_temperature_coefficient,
        dynamic_power=design * gpu.dynamic_power_share * gpu.activity,
        minimum_voltage=gpu.minimum_voltage_fraction,
        voltage_slope=gpu.voltage_slope,
        minimum_clock=gpu.minimum_clock_fraction,
    )


def voltage(chip: Chip, clock: Array | float) -> Array:
    """Voltage as a share of full voltage: v = max(v_min, 1 - s (1 - phi)), also above phi = 1."""
    return jnp.maximum(chip.minimum_voltage, 1.0 - chip.voltage_slope * (1.0 - clock))


def leakage_power(chip: Chip, temperature: Array) -> Array:
    """Leakage at full voltage (W): L0 exp(beta (T - T0)), held beyond beta (T - T0) = 60."""
    heating = chip.leakage_coefficient * (temperature - chip.leakage_reference)
    return chip.leakage * jnp.exp(jnp.minimum(heating, 60.0))


def power(chip: Chip, temperature: Array, clock: Array) -> Array:
    """Power of one GPU (W) at a junction temperature (degC) and a clock (share of full clock)."""
    return power_with_leakage(chip, leakage_power(chip, temperature), clock)


def power_with_leakage(chip: Chip, leakage: Array, clock: Array | float) -> Array:
    """P0 + v^2 (leakage + D phi), in W."""
    v = voltage(chip, clock)
    return chip.idle_power + v * v * (leakage + chip.dynamic_power * clock)


def power_slope(chip: Chip, leakage: Array, clock: Array) -> Array:
    """dP/dphi at constant temperature (W): 2 v s (leakage + D phi) + v^2 D; s = 0 at the floor."""
    v = voltage(chip, clock)
    s = jnp.where(v > chip.minimum_voltage, chip.voltage_slope, 0.0)
    heat = leakage + chip.dynamic_power * clock
    return jnp.maximum(v * (2.0 * s * heat + v * chip.dynamic_power), _SMALLEST_SLOPE)
