"""Operating point of one GPU: what must hold at any chip, and its derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric_kernels.cooling import LIMITS
from fabric_kernels.cooling.chip import Limits, Medium
from fabric_kernels.cooling.electrothermal import operating_point
from fabric_kernels.inputs.power_law import Chip
from tests.kernels.thermal_cases import (
    CODE,
    SOME,
    Case,
    at,
    described,
    of_design,
    random_cases,
    solve,
)

# Laws: each case stands beside copies of itself that are changed the way their name says.
HARDER = ("temperature", "resistance", "idle_power", "leakage", "dynamic_power")
EASIER = ("power", "limit")
COUNT = 5000  # cases of one example; 20 examples are 100,000


def lanes(seed: int, change: float) -> Case:
    """[variant, case]: as drawn, five times harder, twice easier, and scaled."""
    one = random_cases(COUNT, seed)
    changed = [one]
    for name in HARDER:
        part = 2 if name in Medium._fields else 0
        more = {name: getattr(one[part], name) * (1 + change)}
        changed.append(tuple(x._replace(**more) if k == part else x for k, x in enumerate(one)))
    limits = one[1]
    changed.append((one[0], limits._replace(power=limits.power * (1 + change)), one[2]))
    warmer = limits._replace(
        temperature=limits.temperature + 10 * change,
        shutdown_temperature=limits.shutdown_temperature + 10 * change,
    )
    changed.append((one[0], warmer, one[2]))
    scaled = {n: getattr(one[0], n) * 3 for n in ("idle_power", "leakage", "dynamic_power")}
    changed.append(
        (
            one[0]._replace(**scaled),
            limits._replace(power=limits.power * 3),
            one[2]._replace(resistance=one[2].resistance / 3),
        )
    )
    return jax.tree.map(lambda *values: np.stack(values), *changed)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.floats(0.001, 0.3))
def test_laws(seed: int, change: float):
    chip, limits, medium = everything = lanes(seed, change)
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
        assert all(np.isfinite(x).all() for x in found)
        assert [LIMITS[int(code)] for code in found.reason[3:]] == ["trip"] * 3
        assert found.clock[2] == 1.0
    slopes = at(backward, (chip, limits, medium), np.float32)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(slopes))


def total(chip: Chip, limits: Limits, medium: Medium) -> jax.Array:
    point = operating_point(chip, limits, medium)
    return jnp.sum(point.clock * 1000 + point.temperature + point.power)


backward = jax.jit(jax.grad(total, (0, 1, 2)))


def difference(part: int, field: str) -> tuple[np.ndarray, np.ndarray]:
    """Central difference of (clock, temperature, power), and where one limit holds."""
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
    away = (fold - point.temperature > 1) | runaway | (point.reason == CODE["trip"])
    smooth = (np.abs(point.clock - knee) > 1e-4) & away
    assert set(point.reason[smooth]) == {CODE[n] for n in LIMITS} - {CODE["hbm"], CODE["dry_out"]}
    for part, field in PARAMETERS:
        rates = jax.tree.map(np.zeros_like, SOME)
        getattr(rates[part], field)[:] = 1.0
        slope = np.array(at(jacobian, (SOME, rates))[:3])
        expected, same = difference(part, field)
        assert (smooth & same).sum() > 250
        natural = np.array(point[:3]) / getattr(SOME[part], field)
        gap = np.abs(slope - expected) / (np.abs(expected) + 1e-3 * natural)
        assert gap[:, smooth & same].max() < 1e-3, field


def test_forward_and_reverse_mode_agree():
    forward = jax.jit(lambda case, rates: jax.jvp(total, case, rates)[1])
    onward = at(forward, (SOME, jax.tree.map(np.ones_like, SOME)))
    assert sum(x.sum() for x in jax.tree.leaves(at(backward, SOME))) == pytest.approx(onward)
