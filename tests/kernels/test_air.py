"""Air cooling at a rack's airflow ceiling: worked rows, root finding, heat balance."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from fabric_kernels.cooling import LIMITS
from tests.answers import answer
from tests.reference import thermal
from tests.tables import reference_table

H100 = {
    "gpus": 72,
    "parameters": 1e12,
    "peak_flops": 1e15,
    "thermal_design_power": 700.0,
    "power_cap": 700.0,
    "air_supply_temperature": 27.0,
    "gpus_per_rack": 32.0,
    "other_power": 575.0,
}
CAPACITY = 1191.772933 * 1.678172  # W/K of one rack


LANES = 60


def cooled(*, dtype: type = np.float64, **changed: ArrayLike) -> dict[str, np.ndarray]:
    median = {"slowest": (False, 0.5), "bad_part": (False, 0.5)}
    return answer("cooling", "air", {**H100, **changed}, uniforms=median, dtype=dtype)


def test_worked_rows():
    table = [r for r in reference_table("thermal_cases.csv") if r["model"] == "air_rack"]
    gpus = np.array([json.loads(row["params_json"])["n_gpu"] for row in table])
    found = cooled(gpus_per_rack=gpus)
    assert list(gpus) == [32, 64, 104]
    for lane, row in enumerate(table):
        expected = json.loads(row["expected_json"])
        one = {name: float(values[lane]) for name, values in found.items()}
        assert LIMITS[int(one["limiting_reason"])] == expected["status"].lower()
        for name, key in {
            "clock_fraction": "phi",
            "junction_temperature": "T_j_C",
            "gpu_power": "P_W",
            "thermal_resistance": "R_eff",
            "medium_temperature": "T_base_C",
        }.items():
            assert one[name] == pytest.approx(expected[key], rel=1e-6)
        rise = (one["gpu_power"] + 575) * gpus[lane] / CAPACITY
        assert rise == pytest.approx(expected["dT_air_K"], rel=1e-6)


def test_agrees_with_root_finding():
    gpus, inlets = np.linspace(8, 160, 40), np.linspace(15, 40, 40)
    found = cooled(gpus_per_rack=gpus, air_supply_temperature=inlets)
    part = thermal.chip(700.0, 700.0)
    media = [thermal.air(thermal.Air(t, n, 575.0)) for t, n in zip(inlets, gpus, strict=True)]
    points = [thermal.governed(part, medium) for medium in media]
    assert {"power", "thermal"} <= {point.status for point in points}
    assert [LIMITS[int(code)] for code in found["limiting_reason"]] == [p.status for p in points]
    np.testing.assert_allclose(found["clock_fraction"], [p.clock for p in points], atol=1e-12)


share = st.floats(0, 1, allow_subnormal=False)


@given(share, share, share, share)
def test_a_denser_or_warmer_rack_is_never_faster(
    gpus: float, inlet: float, other: float, more: float
):
    count, supply, rest = 4 + 150 * gpus, 10 + 35 * inlet, 1000 * other
    found = cooled(
        gpus_per_rack=[count, count * (1 + more), count, count],
        air_supply_temperature=[supply, supply, supply + 10 * more, supply],
        other_power=[rest, rest, rest, rest + 500 * more],
    )
    for name in ("clock_fraction", "slowest_clock_fraction"):
        assert np.all(found[name][1:] <= found[name][0] + 1e-9)
    assert np.all(found["slowest_clock_fraction"] <= found["clock_fraction"])
    # a share kappa = 0.4 of all the heat of the rack has warmed the air before a GPU
    if np.all(found["limiting_reason"] < LIMITS.index("trip")):
        heat = found["gpu_power"] + np.array([rest, rest, rest, rest + 500 * more])
        n = np.array([count, count * (1 + more), count, count])
        inlet_air = (
            np.array([supply, supply, supply + 10 * more, supply]) + 0.4 * heat * n / CAPACITY
        )
        sink = 0.045 * (n / 32) ** 0.6 * found["gpu_power"]
        np.testing.assert_allclose(found["junction_temperature"], inlet_air + sink, atol=2e-6)


def test_float32_agrees_with_float64():
    given = {"gpus_per_rack": np.linspace(8, 104, LANES)}
    exact, single = (cooled(**given, dtype=dtype) for dtype in (np.float64, np.float32))
    for name, allowed in {
        "clock_fraction": 2e-6,
        "slowest_clock_fraction": 4e-6,
        "junction_temperature": 2e-3,
    }.items():
        np.testing.assert_allclose(single[name], exact[name], rtol=0, atol=allowed)
