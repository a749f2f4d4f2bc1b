"""Single-phase liquid cooling: worked rows, root finding, closed forms and the laws of heat."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from fabric_kernels.cooling import LIMITS
from fabric_kernels.cooling.single_phase import cold_plate, flow_refusal
from fabric_kernels.inputs import LiquidLoop
from fabric_kernels.quantity import quantities
from tests.answers import answer
from tests.kernels.thermal_cases import at
from tests.reference import thermal
from tests.tables import reference_table

LITRE_PER_MINUTE = 1e-3 / 60
B200 = {
    "gpus": 72,
    "parameters": 1e12,
    "peak_flops": 1e15,
    "thermal_design_power": 1000.0,
    "power_cap": 1000.0,
    "coolant_supply_temperature": 45.0,
    "coolant_flow": 1.5 * LITRE_PER_MINUTE,
}


LANES = 60


def cooled(*, dtype: type = np.float64, **changed: ArrayLike) -> dict[str, np.ndarray]:
    median = {"slowest": (False, 0.5), "bad_part": (False, 0.5)}
    return answer("cooling", "single_phase", {**B200, **changed}, uniforms=median, dtype=dtype)


def rows() -> list[dict[str, str]]:
    table = reference_table("thermal_cases.csv")
    return [r for r in table if '"cooling": "single_phase"' in r["params_json"]]


def test_worked_rows():
    table = rows()
    given = {
        name: np.array([json.loads(row["params_json"])[key] for row in table])
        for name, key in {
            "thermal_design_power": "tdp_W",
            "power_cap": "P_cap_W",
            "activity": "activity",
            "coolant_supply_temperature": "T_in_C",
            "coolant_flow": "V_lpm",
            "package_resistance": "R_pkg",
            "interface_resistance": "R_tim",
            "junction_temperature_limit": "T_lim_C",
            "shutdown_temperature": "T_shut_C",
        }.items()
    }
    given["coolant_flow"] *= LITRE_PER_MINUTE
    found = cooled(**given)
    assert len(table) == 12
    for lane, row in enumerate(table):
        expected = json.loads(row["expected_json"])
        one = {name: float(values[lane]) for name, values in found.items()}
        assert LIMITS[int(one["limiting_reason"])] == expected["status"].lower()
        assert one["clock_fraction"] == pytest.approx(expected["phi"], rel=1e-6)
        assert one["thermal_resistance"] == pytest.approx(expected["R_ji_K_per_W"], rel=1e-6)
        if expected["status"] == "TRIP":
            assert one["junction_temperature"] == 95.0
            continue
        assert one["junction_temperature"] == pytest.approx(expected["T_j_C"], rel=1e-6)
        assert one["gpu_power"] == pytest.approx(expected["P_W"], rel=1e-6)
        outlet = one["medium_temperature"] + one["gpu_power"] / expected["C_W_per_K"]
        assert outlet == pytest.approx(expected["T_out_C"], rel=1e-6)


def test_agrees_with_root_finding():
    flows = np.geomspace(0.1, 4, 40) * LITRE_PER_MINUTE
    inlets = np.linspace(20, 55, 40)[::-1]
    found = cooled(coolant_flow=flows, coolant_supply_temperature=inlets)
    part = thermal.chip(1000.0, 1000.0)
    media = [thermal.single_phase(thermal.Plate(*lane)) for lane in zip(inlets, flows, strict=True)]
    points = [thermal.governed(part, medium) for medium in media]
    assert len({point.status for point in points}) >= 4
    assert [LIMITS[int(code)] for code in found["limiting_reason"]] == [p.status for p in points]
    np.testing.assert_allclose(found["clock_fraction"], [p.clock for p in points], atol=1e-12)
    np.testing.assert_allclose(found["thermal_resistance"], [m.resistance for m in media])


def resistance(flow: np.ndarray, exponent: float = 0.5) -> np.ndarray:
    return cooled(coolant_flow=flow, plate_flow_exponent=exponent)["thermal_resistance"]


def test_ends_of_the_flow_range_have_closed_forms():
    flow = np.array([1e-7, 1e-3])
    capacity = 1007.2 * 3980.6 * flow
    plate = 0.012 * (flow / 2.5e-5) ** -0.5
    slow, quick = resistance(flow) - 0.015
    # the outlet is as hot as the plate but for exp(-NTU)
    missed = np.exp(-1 / (plate[0] * capacity[0]))
    assert slow == pytest.approx((1 + missed) / capacity[0], rel=1e-10)
    # the mean of inlet and outlet: 1 / eps = 1 / x + 1 / 2 + x / 12 - ..., x = 1 / (plate capacity)
    series = plate[1] + 0.5 / capacity[1] + 1 / (12 * plate[1] * capacity[1] ** 2)
    assert quick == pytest.approx(series, rel=1e-6)


def test_laws_of_heat_along_the_flow():
    flow = np.geomspace(1e-7, 1e-3, LANES)
    found = cooled(coolant_flow=flow)
    capacity = 1007.2 * 3980.6 * flow
    ohms = found["thermal_resistance"]
    assert np.all(np.diff(ohms) < 0)
    assert np.all(ohms - 0.015 >= 1 / capacity * (1 - 1e-12))
    assert np.all(np.diff(found["clock_fraction"]) >= -1e-12)
    drawn, inlet = found["gpu_power"], found["medium_temperature"]
    plate = found["junction_temperature"] - 0.015 * drawn
    outlet = inlet + drawn / capacity
    assert np.all(inlet <= outlet)
    assert np.all(outlet <= plate + 1e-9)
    assert np.all(plate <= found["junction_temperature"])
    assert np.all(found["slowest_clock_fraction"] <= found["clock_fraction"])


share = st.floats(0, 1, allow_subnormal=False)


@given(share, share, share)
def test_sensitivities_are_derivatives(flow: float, exponent: float, deviation: float):
    given = {
        "coolant_supply_temperature": 45.0,
        "coolant_flow": 1e-6 * 100**flow,
        "plate_flow_exponent": exponent,
    }
    away = np.array(2 * deviation - 1)
    truth, stated = slopes(given, away, -away)
    np.testing.assert_allclose(stated, truth, rtol=1e-9, atol=1e-15)


@jax.jit
def both(
    loop: LiquidLoop, resistance: jax.Array, flow: jax.Array
) -> tuple[tuple[jax.Array, ...], tuple[jax.Array, ...]]:
    def values(r: jax.Array, f: jax.Array) -> tuple[jax.Array, jax.Array]:
        medium, _ = cold_plate(loop, r, f)
        return medium.resistance, medium.temperature + jnp.zeros_like(f)

    by_resistance = jax.jvp(lambda r: values(r, flow), (resistance,), (jnp.ones_like(resistance),))
    by_flow = jax.jvp(lambda f: values(resistance, f), (flow,), (jnp.ones_like(flow),))
    _, stated = cold_plate(loop, resistance, flow)
    return (by_resistance[1][0], *by_flow[1]), tuple(stated[:3])


def slopes(given: dict[str, float], resistance: np.ndarray, flow: np.ndarray) -> tuple:
    loop = {n: np.asarray(given.get(n, q.default)) for n, q in quantities(LiquidLoop).items()}
    return at(both, (LiquidLoop(**loop), resistance, flow))


def test_float32_agrees_with_float64():
    flow = np.geomspace(0.1, 4, LANES) * LITRE_PER_MINUTE
    given = {"coolant_flow": flow}
    exact, single = (cooled(**given, dtype=dtype) for dtype in (np.float64, np.float32))
    assert {value.dtype for value in single.values()} == {np.dtype(np.float32)}
    for name, allowed in {
        "clock_fraction": 2e-6,
        "slowest_clock_fraction": 4e-6,
        "junction_temperature": 2e-3,
        "thermal_resistance": 1e-6,
    }.items():
        np.testing.assert_allclose(single[name], exact[name], rtol=0, atol=allowed)


MANY = 5000
plates = jax.jit(lambda loop: cold_plate(loop, 0.0, 0.0)[0].resistance)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_laws_of_plates(seed: int):
    """Resistance falls with flow and stays above 1 / C: the outlet is never above the plate."""
    numbers = np.random.default_rng(seed)

    def draw(low: float, high: float) -> np.ndarray:
        return np.exp(numbers.uniform(np.log(low), np.log(high), MANY))

    given = {n: np.full(MANY, q.default) for n, q in quantities(LiquidLoop).items() if q.default}
    given |= {
        "coolant_supply_temperature": draw(15, 60),
        "coolant_flow": draw(3e-7, 1e-3),
        "plate_resistance": draw(1e-3, 0.1),
        "plate_flow_exponent": numbers.uniform(0, 1, MANY),
        "upstream_plates": np.floor(numbers.uniform(0, 4, MANY)),
    }
    found = at(plates, (LiquidLoop(**given),))
    more = at(plates, (LiquidLoop(**given | {"coolant_flow": given["coolant_flow"] * 1.1}),))
    assert np.all(more < found)
    capacity = given["coolant_heat_capacity"] * given["coolant_flow"]
    passed = (1 + given["upstream_plates"]) / capacity
    assert np.all(found - 0.015 >= passed * (1 - 1e-12))


def test_plates_in_series_see_the_outlet_of_the_one_before():
    one, two = (cooled(upstream_plates=k, power_cap=800.0) for k in (0.0, 1.0))
    assert one["gpu_power"] == two["gpu_power"] == 800.0
    rise = 800.0 / (1007.2 * 3980.6 * 1.5 * LITRE_PER_MINUTE)
    gap = two["junction_temperature"] - one["junction_temperature"]
    assert gap == pytest.approx(rise, rel=1e-9)


def test_no_flow_and_hot_supplies_are_refused():
    usual = {n: q.default for n, q in quantities(LiquidLoop).items()}
    usual |= {"coolant_flow": 2.5e-5, "coolant_supply_temperature": 45.0}
    assert flow_refusal(LiquidLoop(**usual)) is None
    still = flow_refusal(LiquidLoop(**usual | {"coolant_flow": 0.0}))
    assert still is not None
    assert "transient" in still
    hot = flow_refusal(LiquidLoop(**usual | {"coolant_supply_temperature": 65.0}))
    assert hot is not None
    assert "at most 60 degC" in hot
    # and none of it is ever undefined
    found = cooled(coolant_flow=0.0)
    assert all(np.isfinite(x).all() for x in found.values())
