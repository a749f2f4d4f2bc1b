"""Poisson counts from one uniform: both tails, all rates, the largest of many."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import special, stats

from fabric_kernels.maths.poisson import largest_of, poisson_quantile
from fabric_kernels.uniform import Uniform
from tests.reference.packet_loss import largest_poisson

RATES = np.concatenate([10.0 ** np.linspace(-30, -13, 5), 10.0 ** np.linspace(-13, 6, 96)])
DISTANCES = np.concatenate([[0.5, 0.3], 10.0 ** -np.arange(0.7, 18, 0.29)])

Array64 = NDArray[np.float64]
quantile = jax.jit(poisson_quantile)
largest_quantile = jax.jit(lambda rate, count, u: poisson_quantile(rate, largest_of(count, u)))


def uniform(upper: bool, distance: Array64) -> Uniform:  # noqa: FBT001
    return Uniform(jnp.full(distance.shape, upper), jnp.asarray(distance, jnp.float32))


def grid() -> tuple[Array64, Array64]:
    """Rates and distances as float32 holds them."""
    rate, distance = np.meshgrid(RATES.astype(np.float32), DISTANCES.astype(np.float32))
    return rate.ravel().astype(float), distance.ravel().astype(float)


def stated_error(rate: Array64, distance: Array64, count: Array64) -> Array64:
    """The error that the docstring states for float32, before rounding down."""
    return 1e-3 + 3e-6 * np.sqrt(rate) * np.abs(special.ndtri(distance)) + 1e-7 * count


def misses(count: Array64, rate: Array64, distance: Array64, upper: bool) -> NDArray[np.bool_]:  # noqa: FBT001
    """Where `count` is not floor(x +- stated error), x the exact continuous quantile.

    P(count < k) = Q(k, rate), the regularised incomplete gamma function, also between integers,
    so x solves Q(x, rate) = u and x >= k exactly if Q(k, rate) <= u.
    """
    error = stated_error(rate, distance, count)
    least, most = np.maximum(count - error, 1e-300), count + 1 + error
    if upper:
        low = (special.gammainc(least, rate) >= distance * (1 - 1e-6)) | (count == 0)
        high = special.gammainc(most, rate) <= distance * (1 + 1e-6)
    else:
        low = (special.gammaincc(least, rate) <= distance * (1 + 1e-6)) | (count == 0)
        high = special.gammaincc(most, rate) >= distance * (1 - 1e-6)
    return ~(low & high)


@pytest.mark.parametrize("upper", [True, False])
def test_is_the_quantile_on_both_ends(upper: bool):  # noqa: FBT001
    rate, distance = grid()
    count = np.asarray(quantile(jnp.asarray(rate, jnp.float32), uniform(upper, distance)), float)
    assert np.isfinite(count).all()
    wrong = misses(count, rate, distance, upper)
    assert not wrong.any(), (rate[wrong][:5], distance[wrong][:5], count[wrong][:5])


@pytest.mark.parametrize("upper", [True, False])
def test_agrees_with_scipy_to_the_billionth(upper: bool):  # noqa: FBT001
    # scipy searches with 1 - distance, so its own deep tails are rounded
    rate, distance = grid()
    kept = (distance >= 1e-9) & (rate >= 1e-13)
    rate, distance = rate[kept], distance[kept]
    count = np.asarray(quantile(jnp.asarray(rate, jnp.float32), uniform(upper, distance)), float)
    law = stats.poisson(rate)
    exact = np.maximum(law.isf(distance) if upper else law.ppf(distance), 0)
    off = count != exact
    # off by one within the stated error of a boundary: rare, and only for large counts
    assert np.abs(count - exact).max() <= 1
    assert off.mean() < 0.01
    assert not (off & (exact < 100)).any()


def test_the_check_sees_a_normal_approximation():
    rate, distance = grid()
    normal = np.maximum(np.floor(rate - np.sqrt(rate) * special.ndtri(distance) + 0.5), 0)
    assert misses(normal, rate, distance, upper=True).mean() > 0.3


@pytest.mark.parametrize("rate", [1e-3, 0.3, 2.0, 7.9, 8.1, 30.0, 400.0])
def test_every_count_has_its_probability(rate: float):
    """Equally spaced u give every count within one step of its exact share."""
    steps = 2**14
    half = (np.arange(steps // 2) + 0.5) / steps
    counts = np.concatenate(
        [
            np.asarray(quantile(jnp.full(half.shape, rate, jnp.float32), uniform(upper, half)))
            for upper in (True, False)
        ]
    ).astype(int)
    seen = np.bincount(counts)
    exact = stats.poisson.pmf(np.arange(seen.size), np.float32(rate)) * steps
    # the ends of a count's interval move by one step each, and by the density times the error
    assert np.abs(seen - exact).max() <= 2 + 2e-3 * exact.max()


@given(
    st.floats(-13, 6).map(lambda x: 10.0**x),
    st.floats(-9, -0.302).map(lambda x: 10.0**x),
    st.floats(1.0, 2.0),
)
def test_grows_with_rate_and_uniform(rate: float, distance: float, factor: float):
    rates = jnp.asarray([rate, rate * factor, rate, rate], jnp.float32)
    distances = jnp.asarray([distance, distance, distance, distance / factor], jnp.float32)
    for upper in (True, False):
        count = np.asarray(quantile(rates, Uniform(jnp.full(4, upper), distances)))
        slack = 1 + 1e-6 * count[0]  # the stated error
        assert count[1] >= count[0] - slack
        assert (count[3] >= count[2] - slack) if upper else (count[3] <= count[2] + slack)


def test_largest_of_many_agrees_with_the_search():
    rate, groups, distance = (
        a.ravel()
        for a in np.meshgrid(
            np.float32([1e-13, 1e-6, 0.01, 0.7, 5.0, 40.0, 3000.0]).astype(float),
            [1.0, 64.0, 2.0**20],
            np.float32([0.5, 0.1, 1e-3, 1e-9]).astype(float),
        )
    )
    for upper in (True, False):
        count = np.asarray(
            largest_quantile(
                jnp.asarray(rate, jnp.float32),
                jnp.asarray(groups, jnp.float32),
                uniform(upper, distance),
            )
        )
        exact = np.array(
            [
                largest_poisson(r, g, upper=upper, distance=d)
                for r, g, d in zip(rate, groups, distance, strict=True)
            ]
        )
        assert np.abs(count - exact).max() <= 1
        assert (count == exact).mean() > 0.97
        assert (count == exact)[rate < 1].all()


def test_any_event_at_all_has_its_probability_at_every_rate():
    """n >= 1 exactly where the distance from 1 is below -expm1(-rate): no 0, no rounding to 1."""
    rate = np.float32(10.0 ** np.linspace(-13, np.log10(0.69), 200))
    chance = -np.expm1(-rate.astype(float))
    for factor, expected in ((1 - 3e-6, 1), (1 + 3e-6, 0)):
        count = np.asarray(
            quantile(jnp.asarray(rate), uniform(upper=True, distance=chance * factor))
        )
        assert np.array_equal(count > 0, np.full(rate.shape, expected == 1))


def test_is_finite_and_its_gradient_is_zero_everywhere():
    rate, distance = grid()
    rate = np.concatenate([rate, [0.0, 0.0, 1e20, 1e30]])
    distance = np.concatenate([distance, [0.5, 1e-19, 0.5, 1e-19]])
    for upper in (True, False):
        point = uniform(upper, distance)
        rates = jnp.asarray(rate, jnp.float32)
        assert np.isfinite(np.asarray(quantile(rates, point))).all()
        slope = jax.grad(lambda r, point=point: poisson_quantile(r, point).sum())(rates)
        assert not np.asarray(slope).any()
    assert float(quantile(jnp.float32(0), uniform(upper=True, distance=np.array(1e-19)))) == 0
