"""Operating point of one GPU: root finding, worked rows, laws, and the precision it is run in."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp

from fabric_kernels.cooling import LIMITS
from fabric_kernels.cooling.chip import Chip, Limits, Medium, fold_temperature, power
from fabric_kernels.cooling.electrothermal import OperatingPoint, fast, operating_point, robust
from fabric_kernels.maths.lambert import feedback_growth
from fabric_kernels.maths.rare import unless
from tests.reference import thermal
from tests.tables import reference_table

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


def at(function, case: Case, dtype: type = np.float64) -> OperatingPoint:
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


def joined(*parts: Case) -> Case:
    return jax.tree.map(lambda *values: np.concatenate(values), *parts)


SOME = joined(random_cases(250, 1), random_cases(50, 3, hot=True))
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
        with jax.enable_x64(True):
            drawn = power(*cast((chip, given["T_C"], given["phi"]), np.float64))
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


def thermal_chip(idle: float, leakage: float, dynamic: float, growth: float = 0.02) -> Chip:
    return Chip(idle, leakage, 65.0, growth, dynamic, 0.72, 0.8, 0.2)


def of_design(design: float, inlet: float | list[float], resistance: float) -> Case:
    """A chip of the default shares of its design power."""
    chip = thermal_chip(0.15 * design, 0.1 * design, 0.85 * design)
    return chip, Limits(design, 87.0, 95.0), Medium(np.asarray(inlet), resistance)


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


def test_float32_is_close_everywhere_and_trips_the_same_lanes():
    rounded = jax.tree.map(np.float32, MANY)
    (exact, _, fold), single = at(described, rounded), at(solve, rounded, np.float32)
    np.testing.assert_array_equal(single.reason, exact.reason)
    np.testing.assert_allclose(single.clock, exact.clock, rtol=0, atol=1e-6)
    allowed = np.where(np.abs(fold - exact.temperature) < 0.1, 0.06, 1e-3)
    assert np.all(np.abs(single.temperature - exact.temperature) <= allowed)


def test_a_lane_never_depends_on_its_neighbours():
    valid = at(jax.jit(fast), MANY, np.float32)[1]
    calm = jax.tree.map(lambda x: np.where(valid, x, x[valid][0]), MANY)
    assert 0 < (~valid).sum() < valid.sum()
    alone, beside = at(solve, calm, np.float32), at(solve, MANY, np.float32)
    for one, other in zip(alone, beside, strict=True):
        np.testing.assert_array_equal(one[valid], other[valid])


# Laws: one lane is the case itself, each other lane changes it the way its name says.
HARDER = ("temperature", "resistance", "idle_power", "leakage", "dynamic_power")
EASIER = ("power", "limit")
share = st.floats(0, 1, allow_subnormal=False)


def within(low: float, high: float) -> st.SearchStrategy[float]:
    return share.map(lambda u: low + u * (high - low))


cases = st.tuples(
    st.tuples(
        within(20, 200), within(10, 300), st.just(65.0), within(0.005, 0.035), within(100, 1500),
        within(0.6, 0.9), within(0.3, 0.95), within(0.1, 0.4),
    ),
    st.tuples(within(150, 1500), within(75, 100), within(3, 15)),
    st.tuples(within(15, 60), within(np.log(0.015), np.log(1.5)).map(np.exp)),
)  # fmt: skip


def lanes(case: tuple, change: float) -> Case:
    chip, (cap, limit, margin), medium = case
    one = Chip(*chip), Limits(cap, limit, limit + margin), Medium(*medium)
    changed = [one]
    for name in HARDER:
        part = 2 if name in Medium._fields else 0
        more = {name: getattr(one[part], name) * (1 + change)}
        changed.append(tuple(x._replace(**more) if k == part else x for k, x in enumerate(one)))
    changed.append((one[0], one[1]._replace(power=cap * (1 + change)), one[2]))
    warmer = one[1]._replace(
        temperature=limit + 10 * change, shutdown_temperature=limit + margin + 10 * change
    )
    changed.append((one[0], warmer, one[2]))
    scaled = {n: getattr(one[0], n) * 3 for n in ("idle_power", "leakage", "dynamic_power")}
    changed.append(
        (
            one[0]._replace(**scaled),
            one[1]._replace(power=cap * 3),
            one[2]._replace(resistance=medium[1] / 3),
        )
    )
    return jax.tree.map(lambda *values: np.array(values), *changed)


@given(cases, within(0.001, 0.3))
def test_laws(case: tuple, change: float):
    chip, limits, medium = everything = lanes(case, change)
    found, drawn, fold = at(described, everything)
    assert all(np.isfinite(x).all() for x in found)
    clock, trip = found.clock, found.reason == CODE["trip"]
    floor = found.reason == CODE["floor"]
    settled = ~trip
    balance = found.temperature - medium.temperature - medium.resistance * drawn
    assert np.all(np.abs(balance)[settled] <= 2e-6)
    np.testing.assert_allclose(found.power[settled], drawn[settled], rtol=1e-6)
    held = settled & ~floor
    ceiling = np.minimum(limits.temperature, medium.temperature + medium.resistance * limits.power)
    assert np.all((found.temperature <= ceiling + 1e-9)[held])
    assert np.all((found.power <= limits.power * (1 + 1e-12))[held])
    assert np.all((found.temperature <= limits.shutdown_temperature)[settled])
    assert np.all((found.temperature <= fold + 1e-6)[settled])  # stable
    inside = held & (clock > chip.minimum_clock) & (clock < 1)
    active = np.minimum(ceiling, fold) - found.temperature
    assert np.all(np.abs(active)[inside] <= 1e-9)
    assert np.all(clock[1:6] <= clock[0] + 1e-12)
    assert np.all(trip[1:6] >= trip[0])
    assert np.all(clock[6:8] >= clock[0] - 1e-12)
    assert np.all(trip[6:8] <= trip[0])
    np.testing.assert_allclose(clock[8], clock[0], atol=1e-12)
    np.testing.assert_allclose(found.temperature[8], found.temperature[0], atol=1e-6)


def test_extremes_have_an_answer_and_a_gradient():
    chip, limits, medium = of_design(1000.0, [45.0] * 6, 0.03)
    chip = jax.tree.map(lambda x: np.full(6, x), chip)
    limits = jax.tree.map(lambda x: np.full(6, x), limits)
    medium = Medium(medium.temperature.copy(), np.full(6, 0.03))
    chip.leakage[0] = 0.0
    chip.leakage_coefficient[1] = 0.0
    chip.dynamic_power[2] = 0.0
    medium.temperature[3] = 99.0  # above shutdown
    medium.resistance[4] = 10.0
    chip.leakage_coefficient[5], chip.leakage[5] = 0.1, 900.0
    for dtype in (np.float32, np.float64):
        found = at(solve, (chip, limits, medium), dtype)
        slopes = at(jax.jit(jax.grad(total, (0, 1, 2))), (chip, limits, medium), dtype)
        assert all(np.isfinite(x).all() for x in jax.tree.leaves((found, slopes)))
        assert [LIMITS[int(code)] for code in found.reason[3:]] == ["trip"] * 3
        assert found.clock[2] == 1.0


def total(chip: Chip, limits: Limits, medium: Medium) -> jax.Array:
    point = operating_point(chip, limits, medium)
    return jnp.sum(point.clock * 1000 + point.temperature + point.power)


def difference(part: int, field: str) -> tuple[np.ndarray, np.ndarray]:
    """Central difference of (clock, temperature, power), and where one limit holds on both sides."""
    value = getattr(SOME[part], field)
    sides = []
    for step in (-1e-6, 1e-6):
        moved = SOME[part]._replace(**{field: value * (1 + step)})
        sides.append(at(solve, tuple(moved if k == part else x for k, x in enumerate(SOME))))
    low, high = sides
    slopes = [(b - a) / (2e-6 * value) for a, b in zip(low[:3], high[:3], strict=True)]
    return np.array(slopes), low.reason == high.reason


PARAMETERS = [(part, field) for part, one in enumerate(SOME) for field in one._fields]


def test_derivatives_are_those_of_the_solution():
    jacobian = jax.jit(lambda case, rates: jax.jvp(operating_point, case, rates)[1])
    point, _, fold = at(described, SOME)
    chip = SOME[0]
    knee = 1 - (1 - chip.minimum_voltage) / chip.voltage_slope
    runaway = point.reason == CODE["runaway"]
    smooth = (np.abs(point.clock - knee) > 1e-4) & ((fold - point.temperature > 1) | runaway)
    assert set(point.reason[smooth]) == {CODE[n] for n in LIMITS} - {CODE["hbm"], CODE["dry_out"]}
    for part, field in PARAMETERS:
        rates = jax.tree.map(np.zeros_like, SOME)
        getattr(rates[part], field)[:] = 1.0
        with jax.enable_x64(True):
            slope = np.array(jacobian(cast(SOME, np.float64), cast(rates, np.float64))[:3])
        expected, same = difference(part, field)
        assert (smooth & same).sum() > 250
        natural = np.array(point[:3]) / getattr(SOME[part], field)
        gap = np.abs(slope - expected) / (np.abs(expected) + 1e-3 * natural)
        assert gap[:, smooth & same].max() < 1e-3, field


def test_forward_and_reverse_mode_agree():
    backward = jax.jit(jax.grad(total, (0, 1, 2)))
    forward = jax.jit(lambda case, rates: jax.jvp(total, case, rates)[1])
    with jax.enable_x64(True):
        case = cast(SOME, np.float64)
        slopes = jax.tree.leaves(backward(*case))
        onward = forward(case, jax.tree.map(jnp.ones_like, case))
    assert sum(float(jnp.sum(x)) for x in slopes) == pytest.approx(float(onward))


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
