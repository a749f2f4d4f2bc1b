"""Laws against scipy and mpmath in both tails, and the naive form that must fail."""

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import special, stats

from fabricarlo.laws import make
from tests.engine.law_cases import CASES, NAMES, SHALLOW, distances, drawn


@pytest.mark.parametrize(("kind", "parameters", "truth", "allowed"), CASES, ids=NAMES)
def test_both_tails_agree_with_scipy(
    kind: str, parameters: dict[str, float], truth: Any, allowed: float
) -> None:
    law = make(kind, parameters)
    distance = distances(law)
    for upper, exact in ((False, truth.ppf(distance)), (True, truth.isf(distance))):
        # what float32 cannot hold is zero there
        exact = np.where(np.abs(exact) < 1e-37, 0, exact)
        got = drawn(law, distance, upper)
        assert np.all(np.abs(got - exact) <= allowed * np.abs(exact) + 1e-37)


@pytest.mark.parametrize(("kind", "parameters", "truth", "_allowed"), CASES, ids=NAMES)
def test_mean_support_and_reach(
    kind: str, parameters: dict[str, float], truth: Any, _allowed: float
) -> None:
    law = make(kind, parameters)
    assert law.mean == pytest.approx(float(truth.mean()), rel=1e-9, abs=1e-12)
    assert law.support == pytest.approx(truth.support())
    assert law.reach == pytest.approx((float(truth.ppf(SHALLOW)), float(truth.isf(SHALLOW))))


# near a finite end float32 cannot tell the two apart
TAILED = [case for case in CASES if case[2].support()[1] == math.inf]


@pytest.mark.parametrize(("kind", "parameters", "truth", "_allowed"), TAILED)
def test_the_naive_form_fails_the_same_check(
    kind: str, parameters: dict[str, float], truth: Any, _allowed: float
) -> None:
    """Q(u) with u in one float32: at u = 1 - 2^-30 it is Q(1)."""
    distance = np.full(800, 2.0**-30)
    rounded = 1 - np.float32(1 - distance).astype(np.float64)
    got = drawn(make(kind, parameters), np.maximum(rounded, 1e-37), upper=True)
    assert np.all(np.abs(got / truth.isf(distance) - 1) > 1e-3)


MP_TAILS: dict[str, tuple[dict[str, float], Callable[[Any], Any]]] = {
    "gamma": (
        {"shape": 3.5, "scale": 1},
        lambda x: mpmath.gammainc(3.5, x) / mpmath.gamma(3.5),
    ),
    "lognormal": (
        {"median": 1, "sigma": 0.5},
        lambda x: mpmath.erfc(mpmath.log(x) / 0.5 / mpmath.sqrt(2)) / 2,
    ),
    "beta": (
        {"alpha": 3, "beta": 4, "low": 0, "high": 1},
        lambda x: mpmath.betainc(3, 4, x, 1, regularized=True),
    ),
}


@pytest.mark.parametrize("kind", MP_TAILS)
def test_survival_beyond_the_value_is_the_distance(kind: str) -> None:
    parameters, survival = MP_TAILS[kind]
    distance = np.float32(np.resize([0.4, 0.1, 1e-2, 1e-4, 1e-6], 800)).astype(np.float64)
    values = drawn(make(kind, parameters), distance, upper=True)
    for value, tail in zip(values[:5], distance[:5], strict=True):
        # an error of 3e-7 in the value is at most 30 times that in the tail of these laws
        assert float(survival(mpmath.mpf(value))) == pytest.approx(tail, rel=2e-5)


# what the docstring of the tabulated laws promises, by the first shape
STEEP = [(0.1, 2.5e-5), (0.5, 1e-5), (2.0, 3e-6), (5.0, 1.1e-6), (50.0, 1e-6)]


@pytest.mark.parametrize(("shape", "allowed"), STEEP)
@pytest.mark.parametrize("second", [0.5, 2.0, 50.0])
def test_tabulated_laws_are_as_good_as_promised(
    shape: float, allowed: float, second: float
) -> None:
    """The probability below the value, by the function that the table inverts, is the distance."""
    law = make("beta", {"alpha": shape, "beta": second, "low": 0.0, "high": 1.0})
    distance = distances(law)
    value = drawn(law, distance, upper=False)
    held = value > 1e-37  # what float32 cannot hold is zero
    value, distance = value[held], distance[held]
    reached = special.betainc(shape, second, value)
    # d log F / d log x: how a relative error of the value shows in the probability
    steepness = value * stats.beta.pdf(value, shape, second) / reached
    assert np.all(np.abs(reached / distance - 1) <= allowed * steepness + 1e-9)
