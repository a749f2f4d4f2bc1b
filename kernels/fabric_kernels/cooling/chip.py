"""The power law of one GPU, the limits its governor holds, and the medium that cools it."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from fabric_kernels.cooling import LIMITS
from fabric_kernels.inputs import Gpu

CODE = {name: float(code) for code, name in enumerate(LIMITS)}
_SMALLEST_SLOPE = 1e-6  # W: a chip whose power ignores its clock has no clock to find
_SMALLEST_RESISTANCE = 1e-6  # K W-1: memory that ignores the power of its GPU


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


class Limits(NamedTuple):
    """What the governor holds."""

    power: Array  # W
    temperature: Array  # junction, degC; at most the shutdown temperature
    shutdown_temperature: Array  # degC


class Medium(NamedTuple):
    """What a cooling technology supplies."""

    temperature: Array  # T_b, degC
    resistance: Array  # R, K W-1, above 0


class Memory(NamedTuple):
    """The memory stacks beside the GPU, on the same plate or heatsink.

    T_memory = T_b + R_own P_memory + R_cross P <= limit
    """

    limit: Array  # degC
    own_rise: Array  # R_own P_memory, K
    cross_resistance: Array  # R_cross, K W-1


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


def limits_of(gpu: Gpu) -> Limits:
    """The limits of a GPU; a governor never aims above the shutdown temperature."""
    shutdown = gpu.shutdown_temperature
    held = jnp.minimum(gpu.junction_temperature_limit, shutdown)
    return Limits(gpu.power_cap, held, shutdown)


def memory_of(gpu: Gpu) -> Memory:
    """The memory of a GPU at the workload's use of it."""
    share = gpu.memory_power_share * gpu.memory_activity
    own = gpu.memory_own_resistance * gpu.thermal_design_power * share
    cross = jnp.maximum(gpu.memory_cross_resistance, _SMALLEST_RESISTANCE)
    return Memory(gpu.memory_temperature_limit, own, cross)


def memory_power(memory: Memory, medium_temperature: Array) -> Array:
    """Power of the GPU at which its memory meets its limit, in W; below 0 where nothing helps."""
    return (memory.limit - medium_temperature - memory.own_rise) / memory.cross_resistance


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


def fold_temperature(chip: Chip, medium: Medium, clock: Array) -> Array:
    """Thermal runaway: the temperature at which R dP/dT = 1, in degC.

        T_fold = T0 + log(1 / (R beta L0 v^2)) / beta

    A point above it is not stable. Without leakage it lies beyond any temperature of interest.
    """
    v = voltage(chip, clock)
    gain = medium.resistance * chip.leakage_coefficient * chip.leakage * v * v
    coefficient = jnp.maximum(chip.leakage_coefficient, 1e-6)
    return chip.leakage_reference - jnp.log(jnp.maximum(gain, 1e-20)) / coefficient
