"""The slowest of N GPUs: worked rows, brute force, convergence, and what must hold of any N."""

import dataclasses
import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special, stats

from fabric_kernels.cooling import slowest
from fabric_kernels.cooling.single_phase import single_phase
from tests.agreement import FALSE_ALARM
from tests.answers import answer
from tests.reference import thermal
from tests.tables import reference_table

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
LANES = 512
Lanes = NDArray[np.float64]


def cooled(
    upper: ArrayLike, distance: ArrayLike, *, dtype: type = np.float64, **changed: ArrayLike
) -> dict[str, Lanes]:
    numbers = {**GB300, **changed, "upper": upper, "distance": distance}
    lanes = dict(zip(numbers, np.broadcast_arrays(*numbers.values()), strict=True))
    count = lanes["gpus"].size
    padded = {name: np.resize(values, LANES) for name, values in lanes.items()}
    uniforms = {"slowest": (padded.pop("upper"), padded.pop("distance"))}
    found = answer("cooling", "single_phase", padded, uniforms=uniforms, dtype=dtype)
    return {name: values[:count] for name, values in found.items()}


def slow(count: ArrayLike, uniform: ArrayLike = 0.5, **changed: ArrayLike) -> Lanes:
    """Clock of the slowest of `count` at the uniform u."""
    upper = np.asarray(uniform) > 0.5
    distance = np.where(upper, 1 - np.asarray(uniform), uniform)
    return cooled(upper, distance, gpus=count, **changed)["slowest_clock_fraction"]


def expected_score(count: Lanes) -> Lanes:
    """Approximate mean of the largest of N normal scores that the worked rows use."""
    return special.ndtri((count - np.pi / 8) / (count - np.pi / 4 + 1))


@pytest.mark.parametrize("row", ["C47", "C48", "C49", "C50"])
def test_worked_rows(row: str):
    case = next(r for r in reference_table("thermal_cases.csv") if r["case_id"] == row)
    given, expected = json.loads(case["params_json"]), json.loads(case["expected_json"])
    counts = np.array([72, 1024, 16384, 131072])
    uniform = np.exp(counts * special.log_ndtr(expected_score(counts)))  # u^(1/N) = Phi(score)
    design = {"thermal_design_power": given["tdp_W"], "power_cap": given["tdp_W"]}
    if "air" in given:
        # one heatsink of 0.058 K/W that follows the air of its own GPU, no preheat
        fixed = {"air_supply_temperature": 30.0, "gpus_per_rack": 32.0, "other_power": 0.0}
        numbers = {**GB300, **design, **fixed, "heatsink_resistance": 0.058, "preheat_share": 0.0}
        lanes = {name: np.resize(value, 4) for name, value in numbers.items()} | {"gpus": counts}
        uniforms = {"slowest": (uniform > 0.5, np.minimum(uniform, 1 - uniform))}
        found = answer("cooling", "air", lanes, uniforms=uniforms)["slowest_clock_fraction"]
    else:
        flow = given["V"] * LITRE_PER_MINUTE
        found = slow(counts, uniform, **design, coolant_flow=flow)
    truth = [expected[f"phi_N{count}"] for count in counts]
    np.testing.assert_allclose(found, truth, rtol=2e-5)  # stated for 6 searches, to 1e-3


PART = thermal.chip(1400.0, 1400.0)
PLATE = thermal.Plate(45.0, 2.1 * LITRE_PER_MINUTE)


def assert_near(found: float, clusters: Lanes) -> None:
    """Series-FORM is 0 to 0.7 % optimistic, and the brute force has its own error."""
    error = np.std(clusters) / math.sqrt(clusters.size) * stats.norm.isf(FALSE_ALARM / 2)
    bias = found / np.mean(clusters) - 1
    room = error / np.mean(clusters)
    assert -room <= bias <= 0.007 + room, (bias, room)


def brute_force(inlet: float) -> Lanes:
    scores = np.random.default_rng(20261130).standard_normal((400, 72, 5))
    plate = dataclasses.replace(PLATE, supply=inlet)
    return thermal.slowest_clocks(PART, plate, thermal.Spreads(), scores)


@pytest.mark.parametrize("inlet", [45.0, 40.0])
def test_agrees_with_brute_force(inlet: float):
    clusters = brute_force(inlet)
    every = (np.arange(LANES) + 0.5) / LANES
    found = slow(72, every, coolant_supply_temperature=inlet)
    assert_near(np.mean(found), clusters)
    with pytest.raises(AssertionError):  # a spread 1.3 times too small
        half = {"resistance_spread": 0.06, "inlet_temperature_spread": 0.77}
        half |= {"leakage_spread": 0.15, "dynamic_power_spread": 0.023, "flow_spread": 0.054}
        assert_near(np.mean(slow(72, every, coolant_supply_temperature=inlet, **half)), clusters)


def part_clock(scores: Lanes, *, limits: tuple[str, ...]) -> float:
    """Clock of one part under some of the limits, above 1 too, by Brent's method."""
    part, medium = thermal.part_of(PART, PLATE, thermal.Spreads(), scores)
    ceilings = {
        "power": medium.base + medium.resistance * part.power_limit,
        "thermal": part.temperature_limit,
    }
    ceiling = min(ceilings[name] for name in limits)

    def room(clock: float) -> float:
        heat = medium.resistance * part.power(ceiling, clock)
        return ceiling - medium.base - heat

    return float(optimize.brentq(room, 0.05, 3.0, xtol=1e-14))


def searched(score: float, limits: tuple[str, ...], searches: int = 12) -> float:
    """z = -a g / |g| with the gradient by central differences."""
    scores, step = np.zeros(5), 1e-5
    for _ in range(searches):
        sides = [
            part_clock(scores + step * axis, limits=limits)
            - part_clock(scores - step * axis, limits=limits)
            for axis in np.eye(5)
        ]
        scores = -score * np.array(sides) / np.linalg.norm(sides)
    return part_clock(scores, limits=limits)


@pytest.mark.parametrize("count", [72, 131072])
def test_agrees_with_a_search_on_differences_limit_by_limit(count: int):
    score = float(special.ndtri(np.exp(np.log(0.5) / count)))
    truth = min(searched(score, ("power",)), searched(score, ("thermal",)))
    assert slow(count)[0] == pytest.approx(truth, rel=1e-5)


def test_three_searches_are_as_good_as_twelve(monkeypatch: pytest.MonkeyPatch):
    numbers = np.random.default_rng(3)
    lanes = {
        "coolant_supply_temperature": numbers.uniform(20, 50, LANES),
        "coolant_flow": numbers.uniform(1.2, 4, LANES) * LITRE_PER_MINUTE,
        "activity": numbers.uniform(0.7, 1.1, LANES),
        "resistance_spread": numbers.uniform(0, 0.12, LANES),
        "leakage_spread": numbers.uniform(0, 0.3, LANES),
        "dynamic_power_spread": numbers.uniform(0, 0.05, LANES),
        "inlet_temperature_spread": numbers.uniform(0, 2, LANES),
        "flow_spread": numbers.uniform(0, 0.1, LANES),
    }
    found = slow(131072, **lanes)
    monkeypatch.setattr(slowest, "SEARCHES", 12)
    jax.clear_caches()
    converged = slow(131072, **lanes)
    monkeypatch.undo()
    jax.clear_caches()
    gap = found / converged - 1
    assert gap.min() >= -1e-6
    assert gap.max() <= 3e-4
    assert np.quantile(gap, 0.9) <= 2e-5
