"""Uniform, mixed, measured and endless hop noise against SciPy and their own inverse."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from fabric_kernels.maths.order_statistics import level_of_exponent
from fabric_kernels.noise import HopNoise
from fabric_kernels.noise.empirical import HAZARDS, EmpiricalNoise
from fabric_kernels.noise.generalised_pareto import ParetoNoise
from fabric_kernels.noise.mixture import MixedNoise
from fabric_kernels.noise.uniform import UniformNoise
from fabric_kernels.quantity import quantities

LANES = 256
MEASURED = (20.0, 50.0, 100.0, 200.0, 350.0, 600.0, 1000.0)
MIXED = (1.0, 0.25, 0.05, 6.0, 0.5)


def made(kind: type, *values: float) -> HopNoise:
    lanes = (jnp.full(LANES, value, jnp.float32) for value in values)
    return kind(**dict(zip(quantities(kind), lanes, strict=True)))


LAWS = [(UniformNoise, (2.0, 3.0)), (MixedNoise, MIXED), (EmpiricalNoise, MEASURED)]
EXPONENTS = np.exp(np.linspace(np.log(1e-8), np.log(12), LANES))


def quantiles(noise: HopNoise) -> np.ndarray:
    level = level_of_exponent(jnp.asarray(EXPONENTS, jnp.float32))
    return np.asarray(jax.jit(lambda n: n.quantile(level))(noise), float)


@pytest.mark.parametrize(("kind", "values"), LAWS)
def test_the_exponent_is_the_inverse_of_the_quantile(kind: type, values: tuple[float, ...]):
    noise = made(kind, *values)
    found = quantiles(noise)
    assert np.all(np.diff(found) <= 0)
    back = np.asarray(noise.exponent(jnp.asarray(found, jnp.float32)), float)
    moderate = EXPONENTS > 1e-5 if kind is UniformNoise else EXPONENTS > 0
    np.testing.assert_allclose(back[moderate], EXPONENTS[moderate], rtol=3e-2)


@pytest.mark.parametrize(("kind", "values"), LAWS)
def test_moments_are_integrals_of_the_quantile(kind: type, values: tuple[float, ...]):
    noise = made(kind, *values)
    u = (np.arange(2**20) + 0.5) / 2**20
    level = level_of_exponent(jnp.asarray(-np.log(u), jnp.float32))
    one = jax.tree.map(lambda x: x[:1], noise)
    draws = np.asarray(jax.jit(lambda n: n.quantile(level))(one), float)
    mean, deviation = (float(x[0]) for x in noise.moments())
    assert mean == pytest.approx(draws.mean(), rel=1e-4)
    assert deviation == pytest.approx(draws.std(), rel=3e-3)


def test_uniform_maxima_have_their_closed_form():
    count = 9.0
    mean, deviation = made(UniformNoise, 2.0, 3.0).largest_moments(jnp.full(LANES, count))
    exact = stats.beta(count, 1)
    assert float(mean[0]) == pytest.approx(2 + 3 * exact.mean(), rel=1e-6)
    assert float(deviation[0]) == pytest.approx(3 * exact.std(), rel=1e-6)


def test_the_mixture_is_the_mixture():
    noise = made(MixedNoise, *MIXED)
    found, parts = quantiles(noise), (stats.lognorm(0.25), stats.lognorm(0.5, scale=6.0))
    survival = 0.95 * parts[0].sf(found) + 0.05 * parts[1].sf(found)
    np.testing.assert_allclose(-np.log1p(-survival), EXPONENTS, rtol=2e-4)


def test_measured_percentiles_are_met():
    level = level_of_exponent(jnp.asarray(-np.log1p(-np.exp(-np.array(HAZARDS[1:]))), jnp.float32))
    one = jax.tree.map(lambda x: x[:1], made(EmpiricalNoise, *MEASURED))
    np.testing.assert_allclose(np.asarray(one.quantile(level)), MEASURED[1:], rtol=2e-6)


def test_a_percentile_below_the_one_before_counts_as_that_one():
    noise = made(EmpiricalNoise, 20.0, 50.0, 40.0, 200.0, 350.0, 600.0, 1000.0)
    assert np.all(np.diff(quantiles(noise)) <= 0)
    assert np.all(np.isfinite(np.asarray(noise.moments())))


@pytest.mark.parametrize("index", [0.5, 0.6, 0.9])
def test_an_endless_variance_leaves_quantiles_and_the_mean(index: float):
    noise = made(ParetoNoise, 1.0, index)
    exact = stats.genpareto(index)
    np.testing.assert_allclose(quantiles(noise), exact.isf(-np.expm1(-EXPONENTS)), rtol=1e-4)
    mean, deviation = noise.moments()
    assert float(mean[0]) == pytest.approx(1 / (1 - index), rel=1e-5)
    assert np.isfinite(float(deviation[0]))
    largest, _ = noise.largest_moments(jnp.full(LANES, 10.0))
    # E p^(-x) of the least of ten uniforms is a ratio of gamma functions
    power = special.gamma(11) * special.gamma(1 - index) / special.gamma(11 - index)
    assert float(largest[0]) == pytest.approx((power - 1) / index, rel=1e-4)
