"""The slowest of N GPUs: worked rows, brute force, independent searches, convergence."""

import dataclasses
import json
import math

import jax
import numpy as np
import pytest
from scipy import optimize, special, stats

from fabric_kernels.cooling import slowest
from tests.agreement import FALSE_ALARM
from tests.answers import answer
from tests.kernels.thermal_cases import GB300, LANES, LITRE_PER_MINUTE, Lanes, slow
from tests.reference import thermal
from tests.tables import reference_table


def expected_score(count: Lanes) -> Lanes:
    """Approximate mean of the largest of N normal scores that the worked rows use."""
    return special.ndtri((count - np.pi / 8) / (count - np.pi / 4 + 1))


@pytest.mark.parametrize("row", ["C47", "C48", "C49", "C50"])
def test_worked_rows(row: str):
    case = next(r for r in reference_table("thermal_cases.csv") if r["case_id"] == row)
    system, expected = json.loads(case["params_json"]), json.loads(case["expected_json"])
    counts = np.array([72, 1024, 16384, 131072])
    uniform = np.exp(counts * special.log_ndtr(expected_score(counts)))  # u^(1/N) = Phi(score)
    design = {"thermal_design_power": system["tdp_W"], "power_cap": system["tdp_W"]}
    if "air" in system:
        # one heatsink of 0.058 K/W that follows the air of its own GPU, no preheat
        fixed = {"air_supply_temperature": 30.0, "gpus_per_rack": 32.0, "other_power": 0.0}
        numbers = {**GB300, **design, **fixed, "gpus": counts}
        numbers |= {"heatsink_resistance": 0.058, "preheat_share": 0.0}
        uniforms = {"slowest": (uniform > 0.5, np.minimum(uniform, 1 - uniform))}
        uniforms["bad_part"] = (False, 0.5)
        found = answer("cooling", "air", numbers, uniforms=uniforms)["slowest_clock_fraction"]
    else:
        flow = system["V"] * LITRE_PER_MINUTE
        found = slow(
            counts,
            uniform,
            **design,
            coolant_flow=flow,
            coolant_supply_temperature=system["T_in"],
        )
    truth = [expected[f"phi_N{count}"] for count in counts]
    np.testing.assert_allclose(found, truth, rtol=1e-5)  # the rows took 6 searches


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


@pytest.mark.parametrize("inlet", [44.0, 40.0])
def test_agrees_with_brute_force(inlet: float):
    clusters = brute_force(inlet)
    every = (np.arange(LANES) + 0.5) / LANES
    cold = {"coolant_supply_temperature": inlet}
    assert_near(np.mean(slow(72, every, **cold)), clusters)
    less = {name: 0.75 * value for name, value in GB300.items() if name.endswith("_spread")}
    too_fast = np.mean(slow(72, every, **cold, **less))
    with pytest.raises(AssertionError):
        assert_near(too_fast, clusters)


def test_one_search_on_both_limits_at_once_is_wrong():
    clusters = brute_force(44.0)
    scores = special.ndtri(((np.arange(20) + 0.5) / 20) ** (1 / 72))
    apart = [min(searched(a, 44.0, (limit,)) for limit in LIMITS) for a in scores]
    at_once = [searched(a, 44.0, LIMITS) for a in scores]
    assert_near(np.mean(apart), clusters)
    with pytest.raises(AssertionError):
        assert_near(np.mean(at_once), clusters)


LIMITS = ("power", "thermal")


def part_clock(scores: Lanes, inlet: float, limits: tuple[str, ...]) -> float:
    """Clock of one part under some of the limits, above 1 too, by Brent's method."""
    part, medium = thermal.part_of(
        PART, dataclasses.replace(PLATE, supply=inlet), thermal.Spreads(), scores
    )
    ceilings = {
        "power": medium.base + medium.resistance * part.power_limit,
        "thermal": part.temperature_limit,
    }
    ceiling = min(ceilings[name] for name in limits)

    def room(clock: float) -> float:
        heat = medium.resistance * part.power(ceiling, clock)
        return ceiling - medium.base - heat

    return float(optimize.brentq(room, 0.05, 3.0, xtol=1e-14))


def searched(score: float, inlet: float, limits: tuple[str, ...], searches: int = 12) -> float:
    """z = -a g / |g| with the gradient by central differences."""
    scores, step = np.zeros(5), 1e-5
    for _ in range(searches):
        sides = [
            part_clock(scores + step * axis, inlet, limits)
            - part_clock(scores - step * axis, inlet, limits)
            for axis in np.eye(5)
        ]
        scores = -score * np.array(sides) / np.linalg.norm(sides)
    return part_clock(scores, inlet, limits)


@pytest.mark.parametrize("count", [72, 131072])
def test_agrees_with_a_search_on_differences_limit_by_limit(count: int):
    score = float(special.ndtri(np.exp(np.log(0.5) / count)))
    truth = min(searched(score, 45.0, (limit,)) for limit in LIMITS)
    assert slow(count) == pytest.approx(truth, rel=1e-5)


def test_three_searches_are_as_good_as_six(monkeypatch: pytest.MonkeyPatch):
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
    monkeypatch.setattr(slowest, "SEARCHES", 6)
    jax.clear_caches()
    converged = slow(131072, **lanes)
    monkeypatch.undo()
    jax.clear_caches()
    gap = found / converged - 1
    assert gap.min() >= -1e-6
    assert gap.max() <= 2e-4  # a fraction of the method's own error, up to 7e-3
