"""Chips, media and clusters for the tests of cooling, and their operating points in numpy."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from fabric_kernels.cooling import LIMITS
from fabric_kernels.cooling.chip import Limits, Medium, fold_temperature
from fabric_kernels.cooling.electrothermal import OperatingPoint, operating_point
from fabric_kernels.inputs.power_law import Chip, power
from tests.answers import answer

CODE = {name: code for code, name in enumerate(LIMITS)}
solve = jax.jit(operating_point)


@jax.jit
def described(
    chip: Chip, limits: Limits, medium: Medium
) -> tuple[OperatingPoint, jax.Array, jax.Array]:
    """The point, the power that its temperature and clock imply, and its fold temperature."""
    point = operating_point(chip, limits, medium)
    drawn = power(chip, point.temperature, point.clock)
    return point, drawn, fold_temperature(chip, medium, point.clock)


Case = tuple[Chip, Limits, Medium]


def cast(case: Case, dtype: type) -> Case:
    return jax.tree.map(lambda x: jnp.asarray(x, dtype), case)


def at(function: Callable[..., Any], case: Case, dtype: type = np.float64) -> Any:
    """The result as float64 numpy, evaluated in `dtype`."""
    with jax.enable_x64(dtype is np.float64):
        return jax.tree.map(lambda x: np.asarray(x), function(*cast(case, dtype)))


def random_cases(count: int, seed: int, *, hot: bool = False) -> Case:
    """Chips, limits and media far beyond any product, a third tripped; `hot` ones run away."""
    numbers = np.random.default_rng(seed)

    def draw(low: float, high: float) -> np.ndarray:
        return numbers.uniform(low, high, count)

    tdp = np.exp(draw(np.log(200), np.log(1500)))
    chip = Chip(
        idle_power=tdp * draw(0.05, 0.2),
        leakage=tdp * (draw(0.2, 0.4) if hot else draw(0.03, 0.3)),
        leakage_reference=np.full(count, 65.0),
        leakage_coefficient=draw(0.03, 0.05) if hot else draw(0.005, 0.035),
        dynamic_power=tdp * draw(0.3, 1.2),
        minimum_voltage=draw(0.6, 0.9),
        voltage_slope=draw(0.3, 0.95),
        minimum_clock=draw(0.1, 0.4),
    )
    limit = draw(110, 140) if hot else draw(75, 100)
    limits = Limits(tdp * draw(0.5, 1.2), limit, limit + draw(3, 15))
    medium = Medium(draw(15, 60), np.exp(draw(np.log(0.015), np.log(1.5))))
    return chip, limits, medium


def joined(*parts: Case) -> Case:
    return jax.tree.map(lambda *values: np.concatenate(values), *parts)


def thermal_chip(idle: float, leakage: float, dynamic: float, growth: float = 0.02) -> Chip:
    return Chip(idle, leakage, 65.0, growth, dynamic, 0.72, 0.8, 0.2)


def of_design(design: float, inlet: float | list[float], resistance: float) -> Case:
    """A chip of the default shares of its design power."""
    chip = thermal_chip(0.15 * design, 0.1 * design, 0.85 * design)
    return chip, Limits(design, 87.0, 95.0), Medium(np.asarray(inlet), resistance)


SOME = joined(random_cases(250, 1), random_cases(50, 3, hot=True))


LITRE_PER_MINUTE = 1e-3 / 60
GB300 = {
    "gpus": 72,
    "parameters": 1e12,
    "peak_flops": 1e15,
    "thermal_design_power": 1400.0,
    "power_cap": 1400.0,
    "coolant_supply_temperature": 45.0,
    "coolant_flow": 2.1 * LITRE_PER_MINUTE,
    "activity": 1.0,
    "resistance_spread": 0.08,
    "leakage_spread": 0.2,
    "dynamic_power_spread": 0.03,
    "inlet_temperature_spread": 1.0,
    "flow_spread": 0.07,
}
LANES = 256
Lanes = NDArray[np.float64]


def cooled(
    upper: ArrayLike,
    distance: ArrayLike,
    *,
    dtype: type = np.float64,
    bad_part: ArrayLike = 0.5,
    **changed: ArrayLike,
) -> dict[str, Lanes]:
    luck = np.asarray(bad_part)
    uniforms = {
        "slowest": (upper, distance),
        "bad_part": (luck > 0.5, np.minimum(luck, 1 - luck)),
    }
    return answer("cooling", "single_phase", {**GB300, **changed}, uniforms=uniforms, dtype=dtype)


def slow(count: ArrayLike, uniform: ArrayLike = 0.5, **changed: ArrayLike) -> Lanes:
    """Clock of the slowest of `count` at the uniform u."""
    upper = np.asarray(uniform) > 0.5
    distance = np.where(upper, 1 - np.asarray(uniform), uniform)
    return cooled(upper, distance, gpus=count, **changed)["slowest_clock_fraction"]
