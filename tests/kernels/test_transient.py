"""Heating after lost flow, power cycles, redundancy: small steps, closed forms, worked rows."""

import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg, stats

from fabric_kernels.cooling.chip import Medium
from fabric_kernels.transient import OUTCOMES
from fabric_kernels.transient.network import (
    Nodes,
    State,
    after,
    duty_cycle,
    steady,
    time_to,
    time_to_with_leakage,
)
from fabric_kernels.transient.two_node import two_or_more_out
from tests.answers import answer
from tests.kernels.thermal_cases import at, thermal_chip
from tests.reference import thermal
from tests.reference.thermal_building import heating
from tests.reference.thermal_building import time_to as reference_time
from tests.tables import reference_table

GPU = {
    "peak_flops": 1e15, "thermal_design_power": 1000.0, "power_cap": 1000.0,
    "coolant_supply_temperature": 45.0, "coolant_flow": 2.5e-5, "gpus_per_rack": 72.0,
    "other_power": 600.0, "communication_power": 450.0, "wait_power": 450.0,
    "rack_power": 132e3, "rack_density": 0.0, "clock_fraction": 0.9441481703,
    "slowest_clock_fraction": 0.9, "junction_temperature": 77.67185681, "gpu_power": 1000.0,
    "limiting_reason": 1.0, "thermal_resistance": 0.03267185681, "medium_temperature": 45.0,
    "mean_gpu_power": 1000.0, "mean_slowness": 1.06, "mean_compute_power": 1000.0,
}  # fmt: skip
LOST = (50.0, 500.0, 0.015, 0.5, 45.0)
START = (77.67185681, 62.67185681)


def nodes(*values: float) -> Nodes:
    return Nodes(*(np.asarray(v) for v in values))


def expected(case: str) -> dict[str, float]:
    rows = reference_table("thermal_cases.csv")
    return json.loads(next(r for r in rows if r["case_id"] == case)["expected_json"])


def test_lost_flow_of_the_worked_row():
    truth = expected("C21")
    found = answer("transient", "two_node", GPU | {"pump_switchover_time": [3.0, 7.0, 12.0]})
    assert found["time_to_throttle"] == pytest.approx([truth["t_to_87_s"]] * 3, rel=1e-4)
    assert found["time_to_shutdown"] == pytest.approx([truth["t_to_95_s"]] * 3, rel=1e-4)
    assert [OUTCOMES[int(k)] for k in found["pump_failure_outcome"]] == list(OUTCOMES)
    # 300,556 J/K warm by 10 K from 87 % of 132 kW
    assert found["loop_ride_through_time"] == pytest.approx(300555.6192 * 10 / (0.87 * 132e3))


def test_constant_power_agrees_with_small_steps():
    truth = expected("C20")
    targets = np.array([87.0, 89.0, 95.0])
    solution = heating(lambda _: 1000.0, START, LOST)
    found = at(
        jax.jit(lambda n, s, p, t: time_to(n, s, p, t, 3600.0)),
        (nodes(*LOST), State(*START), np.asarray(1000.0), targets),
    )
    assert found == pytest.approx([truth[f"t_to_{t:.0f}_s"] for t in targets], rel=1e-9)
    assert found == pytest.approx([reference_time(solution, t) for t in targets], rel=1e-8)
    assert found[0] != pytest.approx(reference_time(solution, 87.1), rel=1e-4)


def test_growing_leakage_agrees_with_small_steps():
    part, clock = thermal.chip(1000.0, 1000.0), 0.9441481703
    leaking = heating(lambda t: part.power(t, clock), START, LOST)
    held = heating(lambda _: part.power(START[0], clock), START, LOST)
    chip = thermal_chip(150.0, 100.0, 850.0)
    targets = np.array([80.0, 87.0, 95.0, 120.0])

    def times(*given: object) -> jax.Array:
        return time_to_with_leakage(*given, 3600.0)

    found = at(jax.jit(times), (chip, np.asarray(clock), nodes(*LOST), State(*START), targets))
    truth = np.array([reference_time(leaking, t) for t in targets])
    np.testing.assert_allclose(found, truth, rtol=1e-4)
    assert np.all(reference_time(held, 120.0) > truth[-1] * 1.05)


def test_steps_are_exact():
    a, b = 1 / (0.015 * 50), 1 / (0.015 * 500)
    matrix = np.array([[-a, a], [b, -(b + 0.5 / 500)]])
    step = jax.jit(lambda n, s, p, t: after(n, s, p, t))
    for time in (1e-3, 0.3, 5.0, 80.0):
        state = at(step, (nodes(*LOST), State(*START), np.asarray(700.0), np.asarray(time)))
        rest = 45 + 700 / 0.5 + 700 * np.array([0.015, 0])
        truth = rest + linalg.expm(matrix * time) @ (np.array(START) - rest)
        np.testing.assert_allclose(state, truth, rtol=1e-11)


@pytest.mark.parametrize(("case", "period"), [("C22", 0.5), ("C23", 5.0)])
def test_power_cycles_of_the_worked_rows(case: str, period: float):
    truth = expected(case)
    flowing = nodes(50.0, 500.0, 0.015, 1 / (0.03267185681 - 0.015), 45.0)
    powers = (np.asarray(1000.0), np.asarray(450.0))
    found = at(jax.jit(duty_cycle), (flowing, powers, np.asarray(period), np.asarray(0.7)))
    assert found.mean == pytest.approx(truth["T_mean_C"], rel=1e-9)
    assert found.coldest == pytest.approx(truth["T_min_C"], rel=1e-9)
    assert found.hottest == pytest.approx(truth["T_max_C"], rel=1e-9)


LANES = 5000
cycles = jax.jit(duty_cycle)
exact = jax.jit(lambda n, s, p, t: after(n, s, p, t))
resting = jax.jit(steady)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_a_cycle_repeats_itself(seed: int):
    numbers = np.random.default_rng(seed)

    def draw(low: float, high: float) -> np.ndarray:
        return np.exp(numbers.uniform(math.log(low), math.log(high), LANES))

    network = Nodes(draw(10, 200), draw(200, 2000), draw(0.005, 0.1), draw(5, 100), draw(15, 60))
    high, low = draw(500, 1500), draw(100, 500)
    period, share = draw(0.01, 100), numbers.uniform(0.05, 0.95, LANES)
    found = at(cycles, (network, (high, low), period, share))
    mean = at(resting, (network, share * high + (1 - share) * low))
    np.testing.assert_allclose(found.mean, mean.die, rtol=1e-12)
    assert np.all((found.coldest <= found.mean) & (found.mean <= found.hottest))
    ends = at(resting, (network, low)).die, at(resting, (network, high)).die
    assert np.all((ends[0] <= found.coldest + 1e-9) & (found.hottest <= ends[1] + 1e-9))


def test_float32_keeps_stiff_networks():
    """Between nodes that are nearly one, and nodes that hardly cool: the ends of all bounds."""
    numbers = np.random.default_rng(8)

    def draw(low: float, high: float) -> np.ndarray:
        return np.exp(numbers.uniform(math.log(low), math.log(high), LANES)).astype(np.float32)

    network = Nodes(draw(1, 1e4), draw(1, 1e5), draw(1e-6, 1), draw(0.1, 1e6), draw(15, 60))
    powers, period, share = (draw(100, 1e5), draw(1, 1e4)), draw(1e-4, 1e4), draw(0.01, 1)
    start = resting(network, powers[1])
    time = draw(1e-3, 3600)
    wide, single = (
        (at(cycles, (network, powers, period, share), dtype).swing,
         at(exact, (network, start, powers[0], time), dtype).die)
        for dtype in (np.float64, np.float32)
    )  # fmt: skip
    np.testing.assert_allclose(single[0], wide[0], rtol=3e-6)
    np.testing.assert_allclose(single[1], wide[1], rtol=1e-5)


def test_two_or_more_pumps_out_is_binomial():
    needed, share = np.array([1, 2, 8, 64.0]), np.array([1e-6, 1e-3, 0.02, 0.3])
    truth = stats.binom(needed[:, None] + 1, share).sf(1)
    for dtype, close in ((np.float64, 1e-9), (np.float32, 1e-4)):
        with jax.enable_x64(dtype is np.float64):
            found = two_or_more_out(
                jnp.asarray(needed[:, None] + 0 * share, dtype),
                jnp.asarray(share + 0 * needed[:, None], dtype),
            )
        np.testing.assert_allclose(found, truth, rtol=close)


def test_no_flow_is_answered_here():
    """A medium of its own; the steady state of a plate without flow is refused elsewhere."""
    assert Medium._fields == ("temperature", "resistance")
