"""The limits that the governor of a GPU holds, and the medium that cools it."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from fabric_kernels.cooling import LIMITS
from fabric_kernels.inputs import Gpu
from fabric_kernels.inputs.power_law import Chip, voltage

CODE = {name: float(code) for code, name in enumerate(LIMITS)}
_SMALLEST_RESISTANCE = 1e-6  # K W-1: memory that ignores the power of its GPU


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


def fold_temperature(chip: Chip, medium: Medium, clock: Array) -> Array:
    """Thermal runaway: the temperature at which R dP/dT = 1, in degC.

        T_fold = T0 + log(1 / (R beta L0 v^2)) / beta

    A point above it is not stable. Without leakage it lies beyond any temperature of interest.
    """
    v = voltage(chip, clock)
    gain = medium.resistance * chip.leakage_coefficient * chip.leakage * v * v
    coefficient = jnp.maximum(chip.leakage_coefficient, 1e-6)
    return chip.leakage_reference - jnp.log(jnp.maximum(gain, 1e-20)) / coefficient
