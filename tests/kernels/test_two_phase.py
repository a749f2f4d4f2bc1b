"""Two-phase cooling: worked rows, root finding, dry-out as a cap and as a trip, fluids."""

import json

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from fabric_kernels.cooling import LIMITS, fluids
from tests.answers import answer
from tests.kernels.thermal_cases import GB300
from tests.reference import thermal
from tests.reference.thermal_population import System, slowest_of
from tests.tables import reference_table

LATENT, LIQUID = 177540.0, 1243.0
B200 = GB300 | {"thermal_design_power": 1000.0, "power_cap": 1000.0}
B200["coolant_supply_temperature"] = 44.0


def cooled(
    upper: ArrayLike = 0, distance: ArrayLike = 0.5, *, dtype: type = np.float64,
    **changed: ArrayLike,
) -> dict[str, np.ndarray]:  # fmt: skip
    uniforms = {"slowest": (upper, distance), "bad_part": (False, 0.5)}
    return answer("cooling", "two_phase", B200 | changed, uniforms=uniforms, dtype=dtype)


def test_worked_rows():
    rows = [r for r in reference_table("thermal_cases.csv") if r["model"] == "gpu_two_phase"]
    assert len(rows) == 3
    for row in rows:
        case, expected = json.loads(row["params_json"]), json.loads(row["expected_json"])
        power = case["tdp_W"]
        design = power / (0.5 * LATENT + LIQUID * 5)
        found = cooled(
            thermal_design_power=power,
            power_cap=case["P_cap_W"],
            refrigerant_flow_share=case["mdot_kg_s"] / design,
        )
        assert found["clock_fraction"] == pytest.approx(expected["phi"], rel=1e-6)
        assert found["gpu_power"] == pytest.approx(expected["P_W"], rel=1e-6)
        assert found["junction_temperature"] == pytest.approx(expected["T_j_C"], rel=1e-6)
        assert found["medium_temperature"] == pytest.approx(case["T_sat_C"], rel=1e-12)
        reason = LIMITS[int(found["limiting_reason"])].replace("_", "")
        assert reason == expected["status"].lower()


def dry_out(share: np.ndarray, crisis: float = 1e6) -> np.ndarray:
    flow = share * 1000 / (0.5 * LATENT + LIQUID * 5)
    return np.minimum(flow * (0.7 * LATENT + LIQUID * 5), crisis)


def test_agrees_with_root_finding():
    supplies, shares = np.linspace(20, 60, 40), np.linspace(0.3, 1.2, 40)[::-1]
    found = cooled(coolant_supply_temperature=supplies, refrigerant_flow_share=shares)
    powers = np.minimum(dry_out(shares), 1000.0)
    points = [
        thermal.governed(
            thermal.chip(1000.0, float(power)), thermal.Medium(float(supply) + 6, 0.023)
        )
        for supply, power in zip(supplies, powers, strict=True)
    ]
    np.testing.assert_allclose(found["clock_fraction"], [p.clock for p in points], atol=1e-12)
    np.testing.assert_allclose(
        found["junction_temperature"], [p.temperature for p in points], atol=1e-9
    )
    capped = np.array([p.status == "power" for p in points])
    assert 0 < (dry_out(shares) < 1000).sum() < 40
    dried = found["limiting_reason"] == LIMITS.index("dry_out")
    np.testing.assert_array_equal(dried, capped & (dry_out(shares) < 1000))


def test_the_critical_heat_flow_is_a_limit_too():
    found = cooled(critical_heat_flow=[700.0, 2000.0])
    assert found["gpu_power"] == pytest.approx([700.0, 1000.0])
    assert LIMITS[int(found["limiting_reason"][0])] == "dry_out"


def test_a_plate_that_dries_out_may_cost_the_gpu():
    shares = np.array([0.6, 0.75, 1.0])  # dry at 824, 1030 and 1374 W
    cap, trip = (
        cooled(1, 0.3, gpus=1024, refrigerant_flow_share=shares, dry_out_trips=flag)
        for flag in (0, 1)
    )
    lost = LIMITS.index("trip")
    assert list(trip["limiting_reason"]) == [lost, 1, 1]
    # 3 % of room is less than what the poorest flow of 1024 lacks, 37 % is more
    assert list(trip["slowest_clock_fraction"][:2]) == [0.2, 0.2]
    assert trip["slowest_clock_fraction"][2] > 0.8
    assert np.all(cap["slowest_clock_fraction"] > 0.5)
    assert all(np.isfinite(x).all() for x in (*trip.values(), *cap.values()))


def test_the_slowest_by_dry_out_is_that_of_brute_force():
    dry = float(dry_out(np.array(0.72)))
    system = System(1000.0, 50.0, 0.0, resistance=0.023, dry_out=dry)
    truth = slowest_of(system, np.random.default_rng(9).standard_normal((150, 1024, 5)))
    levels = (np.arange(256) + 0.5) / 256
    upper, distance = levels > 0.5, np.minimum(levels, 1 - levels)
    mean = {
        share: np.mean(
            cooled(upper, distance, gpus=1024, refrigerant_flow_share=share)[
                "slowest_clock_fraction"
            ]
        )
        for share in (0.72, 1.0)
    }
    room = 5 * truth.std() / np.sqrt(truth.size) / truth.mean()
    assert -room <= mean[0.72] / truth.mean() - 1 <= 0.007 + room
    assert mean[1.0] > truth.mean() * 1.02


def test_pressure_warms_the_saturation():
    found = cooled(manifold_pressure_drop=[0.0, 10e3])["medium_temperature"]
    # 293.9 kPa at 50 degC and 391.5 at 60 degC: about 0.35 K a 10 kPa
    assert found[1] - found[0] == pytest.approx(10e3 / 293.9e3 / 0.0304, rel=0.03)


def test_fluids_are_those_of_the_tables():
    rows = {r["id"]: r for r in reference_table("thermal.csv")}
    for key, at in (("fluid_01", 30.0), ("fluid_02", 45.0), ("fluid_03", 55.0)):
        density, specific, _ = (float(x) for x in rows[key]["value"].split("/"))
        assert fluids.pg25_density(jnp.asarray(at)) == pytest.approx(density, abs=0.2)
        assert fluids.pg25_specific_heat(jnp.asarray(at)) == pytest.approx(specific, abs=0.3)
    for number, at in ((5, 30.0), (6, 40.0), (7, 50.0), (8, 60.0)):
        pressure, latent = (float(x) for x in rows[f"two_phase_0{number}"]["value"].split("/"))
        point = jnp.asarray(at)
        assert fluids.r1233zd_latent_heat(point) == pytest.approx(latent * 1e3, abs=120)
        assert fluids.r1233zd_saturation_pressure(point) == pytest.approx(pressure * 1e3, rel=3e-3)
        rise = float(fluids.r1233zd_warming(point, jnp.asarray(1e3)))
        later = fluids.r1233zd_saturation_pressure(point + rise)
        assert later == pytest.approx(
            float(fluids.r1233zd_saturation_pressure(point)) + 1e3, rel=1e-5
        )
    assert fluids.r1233zd_liquid_specific_heat(jnp.asarray(50.0)) == pytest.approx(LIQUID, abs=4)
    # steam tables: 995.65 and 983.2 kg/m3, 4180 and 4185 J/(kg K) at 30 and 60 degC
    water = jnp.asarray([30.0, 60.0])
    np.testing.assert_allclose(fluids.water_density(water), [995.65, 983.2], atol=0.2)
    np.testing.assert_allclose(fluids.water_specific_heat(water), [4180, 4185], atol=1.5)


share = st.floats(0, 1, allow_subnormal=False)


@settings(max_examples=20)
@given(share, share, share)
def test_laws(cold: float, flow: float, more: float):
    supply, part = 15 + 45 * cold, 0.2 + flow
    found = cooled(
        coolant_supply_temperature=[supply, supply + 5 * more, supply, supply],
        refrigerant_flow_share=[part, part, part * (1 + more), part],
        boiling_resistance=[0.008, 0.008, 0.008, 0.008 * (1 + more)],
    )
    for name in ("clock_fraction", "slowest_clock_fraction"):
        first, warm, rich, worse = found[name]
        assert warm <= first + 1e-9
        assert rich >= first - 1e-9
        assert worse <= first + 1e-9
    most = dry_out(np.array([part, part, part * (1 + more), part]))
    assert np.all(found["gpu_power"] <= most + 1e-6)


def test_float32_agrees_with_float64():
    lanes = {"refrigerant_flow_share": np.linspace(0.4, 1.2, 60)}
    exact, single = (cooled(**lanes, dtype=dtype) for dtype in (np.float64, np.float32))
    for name, close in {"clock_fraction": 2e-6, "slowest_clock_fraction": 1e-5}.items():
        np.testing.assert_allclose(single[name], exact[name], rtol=0, atol=close)
