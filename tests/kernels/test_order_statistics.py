"""The level of the largest of N: two-sided accuracy, the law of the draw, and the naive form."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from fabric_kernels.maths.order_statistics import (
    complement,
    exponential_variate,
    level_of_exponent,
    level_of_hazard,
    level_of_largest,
    moments_of_largest,
    survival_at_largest,
    weighted_moments,
)
from fabric_kernels.maths.power_tail import largest_of_exponential, largest_of_pareto
from fabric_kernels.maths.root import increasing_root
from fabric_kernels.uniform import Uniform
from tests.agreement import assert_follows, assert_tails_reached
from tests.tables import reference_table

COUNTS = (1.0, 1024.0, 131072.0, 1e9)


def uniforms(count: int, seed: int) -> Uniform:
    """63-bit uniforms from NumPy's words, by the rule of the engine."""
    words = np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64)
    upper = words >> np.uint64(63) == 1
    rest = np.where(upper, ~words, words) & np.uint64(2**63 - 1)
    distance = (rest.astype(np.float64) + 0.5) * 2.0**-64
    return Uniform(jnp.asarray(upper), jnp.asarray(distance, jnp.float32))


def exact_hazards(rows: list[dict[str, str]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count, exponential variate, and survival at the largest, from the table's q and N."""
    with mpmath.workdps(40):
        variates = [float(-mpmath.log(mpmath.mpf(row["q"]))) for row in rows]
    return (
        np.array([float(row["N"]) for row in rows]),
        np.array(variates),
        np.array([float(row["survival_p"]) for row in rows]),
    )


def test_survival_at_the_largest_is_that_of_the_table():
    rows = [row for row in reference_table("maxn_quantiles.csv") if row["survival_p"]]
    counts, variates, survival = exact_hazards(rows)
    made, hazard = survival_at_largest(
        jnp.asarray(counts, jnp.float32), jnp.asarray(variates, jnp.float32)
    )
    np.testing.assert_allclose(made, survival, rtol=5e-7)
    np.testing.assert_allclose(hazard, -np.log(survival), rtol=1e-6, atol=1e-9)


def pointwise_error_of_largest(largest) -> float:
    """Largest relative error of the largest of 1024 exponentials over 13 variates."""
    variate = np.exp(np.linspace(-9, 2, 13))
    exact = -np.log(-np.expm1(-variate / 1024))
    made = np.asarray(largest(jnp.float32(1024), jnp.asarray(variate, jnp.float32)))
    return float(np.max(np.abs(made / exact - 1)))


def naive(count, variate):
    """The textbook form, the quantile at u^(1/N)."""
    return -jnp.log1p(-jnp.exp(jnp.log(jnp.exp(-variate)) / count))


def test_the_naive_form_is_wrong_at_single_values():
    assert pointwise_error_of_largest(lambda n, e: level_of_largest(n, e).hazard) < 1e-6
    assert pointwise_error_of_largest(naive) > 1e-4


@pytest.mark.parametrize("count", COUNTS)
def test_follows_the_law_of_the_largest(count):
    u = uniforms(200_000, seed=int(count) % 97)
    variate = exponential_variate(u)
    hazard = np.asarray(jax.jit(level_of_largest)(jnp.float32(count), variate).hazard, float)
    # F(M)^N and its complement, in double precision from the survival side
    exponent = -count * np.log1p(-np.exp(-hazard))
    assert_follows(np.exp(-exponent))
    assert_tails_reached(np.exp(-exponent), -np.expm1(-exponent))


def test_the_naive_form_does_not_follow_it():
    variate = exponential_variate(uniforms(200_000, seed=5))
    hazard = np.asarray(naive(jnp.float32(2**20), variate), float)
    with pytest.raises(AssertionError, match="not this law"):
        assert_follows(np.exp(2**20 * np.log1p(-np.exp(-hazard))))


def test_the_variate_falls_with_u_and_reaches_both_tails():
    distance = jnp.asarray([2.0**-65, 1e-9, 0.3, 0.5], jnp.float32)
    low = exponential_variate(Uniform(jnp.zeros(4, bool), distance))
    high = exponential_variate(Uniform(jnp.ones(4, bool), distance))
    np.testing.assert_allclose(low, -np.log(np.asarray(distance, float)), rtol=2e-7)
    np.testing.assert_allclose(high, -np.log1p(-np.asarray(distance, float)), rtol=2e-7)
    assert low[3] == high[3]
    assert np.all(np.diff(low) < 0)
    assert np.all(np.diff(high) > 0)


@given(st.floats(-80.0, 4.4))
def test_exponent_and_hazard_are_each_others_complement(logarithm):
    exponent = float(np.float32(np.exp(logarithm)))
    level = level_of_exponent(jnp.float32(exponent))
    with mpmath.workdps(60):
        exact = float(-mpmath.log(-mpmath.expm1(-mpmath.mpf(exponent))))
    assert float(level.hazard) == pytest.approx(exact, rel=1e-6)
    back = level_of_hazard(level.hazard)
    # what one ulp of the hazard is worth: near 1 it is all that is left of a small exponent
    worth = 1e-6 + 3e-7 * level.hazard
    assert float(back.exponent) == pytest.approx(exponent, rel=float(worth))
    assert float(level.survival) == pytest.approx(np.exp(-exact), rel=2e-6)


@given(st.floats(-70.0, 4.4), st.floats(1.0, 1e9))
def test_the_largest_grows_with_the_count_and_falls_with_the_variate(logarithm, count):
    variate = jnp.exp(jnp.float32(logarithm))
    level = level_of_largest(jnp.float32(count), variate)
    more = level_of_largest(jnp.float32(2 * count), variate)
    lower = level_of_largest(jnp.float32(count), 2 * variate)
    for one, other in ((more, level), (level, lower)):
        assert one.hazard >= other.hazard
        assert one.normal_score >= other.normal_score - 1e-6


def test_harmonic_numbers():
    counts = np.array([1, 2, 3, 10, 1000, 1e6, 1e9])
    mean, deviation = largest_of_exponential(jnp.asarray(counts, jnp.float32))
    np.testing.assert_allclose(mean, special.digamma(counts + 1) + np.euler_gamma, rtol=1e-6)
    variance = np.pi**2 / 6 - special.polygamma(1, counts + 1)
    np.testing.assert_allclose(deviation, np.sqrt(variance), rtol=1e-6)


@pytest.mark.parametrize("index", [-0.5, -0.1, 1e-3, 0.2, 0.45])
def test_pareto_moments_are_ratios_of_gamma_functions(index):
    counts = [1, 2, 9, 1024, 131072]
    exact = []
    for n in counts:
        with mpmath.workdps(60):
            first, second = (
                mpmath.gammaprod(
                    [1 - k * mpmath.mpf(index), n + 1], [n + 1 - k * mpmath.mpf(index)]
                )
                for k in (1, 2)
            )
            exact.append(((first - 1) / index, mpmath.sqrt(second - first**2) / abs(index)))
    mean, deviation = largest_of_pareto(
        jnp.asarray(counts, jnp.float32), jnp.full(len(counts), index, jnp.float32)
    )
    # the tail index itself is rounded: near 1/2 the deviation magnifies that
    np.testing.assert_allclose(mean, [float(m) for m, _ in exact], rtol=3e-6)
    np.testing.assert_allclose(deviation, [float(s) for _, s in exact], rtol=1e-5)


def test_quadrature_knows_the_law_of_gumbel():
    mean, deviation = moments_of_largest(lambda e: -jnp.log(e), jnp.zeros(1))
    assert float(mean[0]) == pytest.approx(np.euler_gamma, rel=1e-6)
    assert float(deviation[0]) == pytest.approx(np.pi / np.sqrt(6), rel=1e-6)
    looped = moments_of_largest(lambda e: -jnp.log(e), jnp.zeros(1), unrolled=False)
    np.testing.assert_allclose(looped, (mean, deviation), rtol=1e-6)


def test_moments_of_two_values():
    mean, deviation = weighted_moments([jnp.float32(1), jnp.float32(5)], [0.75, 0.25])
    assert (float(mean), float(deviation)) == pytest.approx((2.0, np.sqrt(3.0)))


@jax.jit
def kinked_root(goal: jax.Array, steepness: jax.Array) -> jax.Array:
    """Root of a line whose slope changes from 1/steepness to steepness at 0, from far away."""

    def kinked(x: jax.Array) -> jax.Array:
        return jnp.where(x > 0, steepness * x, x / steepness) - goal

    far = jnp.full_like(goal, 400.0)
    return increasing_root(kinked, (-far, far), far, 40)


@given(st.floats(-6.0, 6.0), st.floats(0.01, 50.0))
def test_the_root_survives_a_kink(goal, steepness):
    exact = goal / steepness if goal > 0 else goal * steepness
    # beyond the bracket there is no root: its end is the answer
    exact = min(max(exact, -400.0), 400.0)
    found = float(kinked_root(jnp.float32(goal), jnp.float32(steepness)))
    assert found == pytest.approx(exact, rel=1e-5, abs=2e-5)


def test_complement_has_a_finite_slope_at_both_ends():
    ends = jnp.asarray([1e-37, 1e-3, 0.7, 87.0], jnp.float32)
    slope = jax.vmap(jax.grad(complement))(ends)
    # -1 / expm1(y)
    np.testing.assert_allclose(slope, -1 / np.expm1(np.asarray(ends, float)), rtol=1e-5)


def test_the_median_of_the_largest_of_fifty():
    median = level_of_largest(jnp.float32(50.0), jnp.log(jnp.float32(2.0)))
    assert stats.norm.cdf(float(median.normal_score)) ** 50 == pytest.approx(0.5, rel=1e-5)
