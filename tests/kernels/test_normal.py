"""The normal score, against SciPy's in double precision and against its own inverse."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.scipy.special import ndtri
from scipy import special

from fabric_kernels.maths.normal import log_survival, normal_quantile, normal_score_of_tail
from fabric_kernels.uniform import Uniform
from tests.answers import precision

TAILS = np.concatenate(
    [np.exp(np.linspace(np.log(1.2e-38), np.log(0.5), 60_001)), np.linspace(1e-3, 0.5, 60_000)]
)


def truth(tail: np.ndarray) -> np.ndarray:
    """Score of an upper tail probability; SciPy works from the logarithm in the far tail."""
    return np.where(tail > 0.1, -special.ndtri(tail), -special.ndtri_exp(np.log(tail)))


def error(made: np.ndarray, exact: np.ndarray) -> float:
    """Largest error, absolute for |z| < 1 and relative beyond."""
    return float(np.max(np.abs(made - exact) / np.maximum(np.abs(exact), 1.0)))


@pytest.mark.parametrize(("dtype", "bound"), [(np.float32, 3e-7), (np.float64, 3e-12)])
def test_agrees_with_scipy(dtype, bound):
    with precision(dtype):
        tail = TAILS.astype(dtype)
        made = np.asarray(jax.jit(normal_score_of_tail)(tail))
    assert made.dtype == dtype
    assert error(made, truth(tail.astype(float))) < bound


def test_the_check_sees_the_score_of_one_minus_the_tail():
    tail = TAILS[TAILS > 1e-7].astype(np.float32)
    made = np.asarray(ndtri(1 - tail))  # rounds the tail to a multiple of 2^-24
    assert error(made, truth(tail.astype(float))) > 1e-3


def test_both_ends_of_a_uniform():
    distance = jnp.asarray([2.0**-65, 2.0**-33, 0.25, 0.5], jnp.float32)
    low, high = (normal_quantile(Uniform(jnp.full(4, upper), distance)) for upper in (False, True))
    np.testing.assert_array_equal(low, -high)
    np.testing.assert_allclose(high, truth(np.asarray(distance, float)), rtol=3e-7, atol=1e-7)
    assert high[-1] == 0


def test_a_tail_of_zero_stays_finite():
    assert np.isfinite(normal_score_of_tail(jnp.zeros(1)))


@given(st.floats(-9.0, 9.0))
def test_log_survival_is_that_of_scipy(score):
    made = float(log_survival(jnp.float32(score)))
    exact = special.log_ndtr(-float(np.float32(score)))
    # rounding z / sqrt(2) moves the logarithm of a tail by z^2 2^-24
    assert made == pytest.approx(exact, rel=5e-7 + 1.5 * score * score * 2.0**-24)


@given(st.floats(-80.0, -0.7))
def test_score_and_survival_are_inverse(log_tail):
    tail = jnp.exp(jnp.float32(log_tail))
    back = float(log_survival(normal_score_of_tail(tail)))
    # an error of 3e-7 in z is one of z^2 3e-7 in the logarithm, which is about z^2 / 2
    assert back == pytest.approx(float(jnp.log(tail)), rel=2e-6)


def test_slope_is_the_inverse_density():
    tail = jnp.asarray([0.3, 0.07, 1e-4, 1e-12], jnp.float32)
    slope = jax.vmap(jax.grad(normal_score_of_tail))(tail)
    density = np.exp(-(truth(np.asarray(tail, float)) ** 2) / 2) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(slope, -1 / density, rtol=2e-4)
