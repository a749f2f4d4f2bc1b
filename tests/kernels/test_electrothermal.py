"""Operating point of one GPU: root finding, worked rows, laws, and the precision it is run in."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mpmath import mp

from fabric_kernels.cooling import LIMITS
from fabric_kernels.cooling.chip import Limits, Medium
from fabric_kernels.cooling.electrothermal import OperatingPoint, fast, robust
from fabric_kernels.inputs.power_law import power
from fabric_kernels.maths.lambert import feedback_growth
from fabric_kernels.maths.rare import unless
from tests.kernels.thermal_cases import (
    CODE,
    SOME,
    Case,
    at,
    joined,
    of_design,
    random_cases,
    solve,
    thermal_chip,
)
from tests.reference import thermal, thermal_points
from tests.tables import reference_table


def governed(case: Case) -> list[thermal.Point]:
    """The independent reference, one lane at a time."""
    points = []
    for c, limits, medium in zip(*(zip(*part, strict=True) for part in case), strict=True):
        part = thermal.Chip(
            c[0], c[1], c[4], *limits, reference=c[2], growth=c[3], voltage_floor=c[5],
            voltage_slope=c[6], clock_floor=c[7],
        )  # fmt: skip
        points.append(thermal.governed(part, thermal.Medium(*medium)))
    return points


def assert_is(point: OperatingPoint, truth: list[thermal.Point]) -> None:
    """float64 against root finding: 1e-12 of the clock, 1e-9 K, 0.02 K at the fold."""
    assert [LIMITS[int(code)] for code in point.reason] == [one.status for one in truth]
    np.testing.assert_allclose(point.clock, [one.clock for one in truth], rtol=0, atol=1e-12)
    at_fold = point.reason == CODE["runaway"]
    stable = point.reason != CODE["trip"]
    expected = np.array([one.temperature for one in truth])
    gap = np.abs(point.temperature - expected)[stable]
    assert np.all(gap <= np.where(at_fold, 0.02, 1e-9)[stable]), gap.max()
    # a watt at a fixed clock costs R kelvin and more, so the power is as good as the temperature
    drawn = np.array([one.power for one in truth])[stable & ~at_fold]
    np.testing.assert_allclose(point.power[stable & ~at_fold], drawn, rtol=1e-8)


TRUTH = governed(SOME)
MANY = joined(random_cases(2000, 4, hot=True), random_cases(18_000, 2))


def test_agrees_with_root_finding():
    assert {one.status for one in TRUTH} == set(LIMITS) - {"hbm", "dry_out"}
    assert_is(at(solve, SOME), TRUTH)


def test_the_robust_solution_agrees_with_root_finding_by_itself():
    assert_is(at(jax.jit(robust), SOME), TRUTH)


@pytest.mark.parametrize(
    ("field", "factor"), [("voltage_slope", 1 + 1e-9), ("leakage_coefficient", 1 - 1e-9)]
)
def test_root_finding_sees_a_chip_that_is_off_by_a_billionth(field: str, factor: float):
    chip, limits, medium = SOME
    wrong = chip._replace(**{field: getattr(chip, field) * factor})
    with pytest.raises(AssertionError):
        assert_is(at(solve, (wrong, limits, medium)), TRUTH)


@pytest.mark.parametrize("row", ["C12", "C13", "C14", "C19", "C45", "C46"])
def test_worked_rows(row: str):
    case = next(r for r in reference_table("thermal_cases.csv") if r["case_id"] == row)
    given, expected = json.loads(case["params_json"]), json.loads(case["expected_json"])
    if row == "C46":
        chip = thermal_chip(given["P0_W"], given["L0_W"], given["D_W"])
        drawn = at(power, (chip, given["T_C"], given["phi"]))
        assert drawn == pytest.approx(expected["P_W"], rel=1e-6)
    elif row == "C45":
        clock = at(solve, of_design(700.0, [given["T_in_lo"], given["T_in_hi"]], 0.058)).clock
        assert clock == pytest.approx([expected["phi_lo"], expected["phi_hi"]], rel=1e-6)
    else:
        point = at(solve, raw(given) if row == "C19" else of_row(given))
        assert point.clock == pytest.approx(expected["phi"], rel=1e-6)
        assert point.power == pytest.approx(expected["P_W"], rel=1e-6)
        assert point.temperature == pytest.approx(expected["T_j_C"], rel=1e-6)
        assert LIMITS[int(point.reason)] == expected["status"].lower()


def of_row(given: dict[str, float]) -> Case:
    return of_design(given["tdp_W"], given["T_in_C"], given["R_ji_K_per_W"])


def raw(given: dict[str, float]) -> Case:
    chip = thermal_chip(given["P0_W"], given["L0_W"], given["D_W"], given["beta"])
    limits = Limits(given["P_cap_W"], given["T_lim_C"], given["T_shut_C"])
    return chip, limits, Medium(given["T_in_C"], given["R_ji_K_per_W"])


def test_fast_and_robust_agree_and_only_the_fold_needs_the_robust_one():
    found, valid = at(jax.jit(fast), MANY)
    slow = at(jax.jit(robust), MANY)
    assert not valid[slow.reason == CODE["runaway"]].any()
    assert valid.mean() > 0.99
    np.testing.assert_array_equal(found.reason[valid], slow.reason[valid])
    np.testing.assert_allclose(found.clock[valid], slow.clock[valid], rtol=0, atol=1e-14)
    np.testing.assert_allclose(found.temperature[valid], slow.temperature[valid], atol=1e-9)


def assert_near(
    point: OperatingPoint, truth: thermal_points.Points, errors: tuple[float, float, float]
) -> None:
    """Same reasons, trips among them; clock, temperature and temperature at the fold within."""
    clock, temperature, at_fold = errors
    np.testing.assert_array_equal(np.array(LIMITS)[point.reason.astype(int)], truth.status)
    np.testing.assert_allclose(point.clock, truth.clock, rtol=0, atol=clock)
    gap = np.abs(point.temperature - truth.temperature)[truth.status != "trip"]
    folding = np.abs(truth.fold - truth.temperature) < 0.1
    allowed = np.where(folding, at_fold, temperature)[truth.status != "trip"]
    assert np.all(gap <= allowed), (gap / allowed).max()


@pytest.mark.parametrize(
    ("dtype", "errors"), [(np.float64, (1e-12, 1e-9, 0.02)), (np.float32, (1e-6, 1e-3, 0.06))]
)
def test_twenty_thousand_points_are_those_of_bisection(
    dtype: type, errors: tuple[float, float, float]
):
    rounded = jax.tree.map(lambda x: np.float32(x).astype(float), MANY)
    truth = thermal_points.governed(thermal_points.Gpus(*jax.tree.leaves(rounded)))
    assert min((truth.status == name).sum() for name in set(LIMITS) - {"hbm", "dry_out"}) > 50
    point = at(solve, rounded, dtype)
    assert_near(point, truth, errors)
    clock, temperature, _ = errors
    with pytest.raises(AssertionError):
        assert_near(point._replace(clock=point.clock + 2 * clock), truth, errors)
    with pytest.raises(AssertionError):
        assert_near(point._replace(temperature=point.temperature + 2 * temperature), truth, errors)


def test_a_lane_never_depends_on_its_neighbours():
    valid = at(jax.jit(fast), MANY, np.float32)[1]
    calm = jax.tree.map(lambda x: np.where(valid, x, x[valid][0]), MANY)
    assert 0 < (~valid).sum() < valid.sum()
    alone, beside = at(solve, calm, np.float32), at(solve, MANY, np.float32)
    for one, other in zip(alone, beside, strict=True):
        np.testing.assert_array_equal(one[valid], other[valid])


def test_feedback_growth_is_the_lambert_function():
    share = np.concatenate([np.linspace(0, 1, 101), 1 - np.logspace(-12, -3, 10)])
    feedback = share * np.exp(-1.0)
    with mp.workdps(40):
        limit = 1 / mp.e
        capped = [min(mp.mpf(float(c)), limit) for c in feedback]
        truth = np.array([float(mp.exp(-mp.lambertw(-c).real)) for c in capped])
    for dtype, loose, tight in ((np.float32, 2e-3, 5e-7), (np.float64, 1e-7, 1e-12)):
        with jax.enable_x64(dtype is np.float64):
            growth = np.asarray(feedback_growth(jnp.asarray(feedback, dtype)))
        error = np.abs(growth / truth - 1)
        assert error.max() < loose
        assert error[share <= 0.99].max() < tight


def test_the_rare_answer_is_computed_only_where_a_lane_needs_it():
    calls = []

    @jax.jit
    def half(x: jax.Array) -> jax.Array:
        def rare() -> jax.Array:
            jax.debug.callback(lambda: calls.append(1))
            return -x

        return unless(x > 0, x / 2, rare)

    np.testing.assert_array_equal(half(jnp.array([1.0, 2.0])), [0.5, 1.0])
    jax.effects_barrier()
    assert calls == []
    np.testing.assert_array_equal(half(jnp.array([1.0, -2.0])), [0.5, 2.0])
    jax.effects_barrier()
    assert calls == [1]
