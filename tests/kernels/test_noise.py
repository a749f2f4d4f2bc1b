"""Hop noise: every law against tables of 40 digits, SciPy, and its own inverse."""

import re
from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from fabric_kernels.catalogue import ANSWERS
from fabric_kernels.maths.order_statistics import level_of_exponent
from fabric_kernels.noise import HopNoise
from fabric_kernels.noise.exponential import ExponentialNoise
from fabric_kernels.noise.gamma import GammaNoise
from fabric_kernels.noise.generalised_pareto import ParetoNoise
from fabric_kernels.noise.groups import largest_of_groups
from fabric_kernels.noise.lognormal import LognormalNoise
from fabric_kernels.noise.normal import NormalNoise
from fabric_kernels.noise.spikes import SpikyNoise
from fabric_kernels.noise.weibull import WeibullNoise
from fabric_kernels.quantity import quantities
from tests.tables import reference_table

LANES = 256


def number(parameters: str, name: str) -> float:
    found = re.search(rf"\b{name}=([-+.\de]+)", parameters)
    assert found, (name, parameters)
    return float(found[1])


def law_of(name: str, parameters: str) -> HopNoise:
    """The law of a row of the tables, in s, one lane."""
    values: dict[type, Callable[[], tuple[float, ...]]] = {
        LognormalNoise: lambda: (np.exp(number(parameters, "mu")), number(parameters, "sigma")),
        NormalNoise: lambda: (number(parameters, "sd"),),
        WeibullNoise: lambda: (number(parameters, "scale"), number(parameters, "k")),
        GammaNoise: lambda: (number(parameters, "scale"), number(parameters, "shape")),
        ParetoNoise: lambda: (number(parameters, "scale"), number(parameters, "xi")),
        SpikyNoise: lambda: (1.0, 0.25, number(parameters, "eps"), 3.0, 10.0),
        ExponentialNoise: lambda: (
            number(parameters, "shift") if "shift" in parameters else 0.0,
            number(parameters, "scale"),
        ),
    }
    kind = KINDS[name]
    return made(kind, *values[kind]())


KINDS = {
    "lognormal": LognormalNoise,
    "normal": NormalNoise,
    "weibull": WeibullNoise,
    "gamma": GammaNoise,
    "gpd": ParetoNoise,
    "mixture": SpikyNoise,
    "exp": ExponentialNoise,
    "shifted_exp": ExponentialNoise,
}


def made(kind: type, *values: float) -> HopNoise:
    lanes = (jnp.full(LANES, value, jnp.float32) for value in values)
    return kind(**dict(zip(quantities(kind), lanes, strict=True)))


@cache
def compiled(kind: type) -> Callable[..., jax.Array]:
    return jax.jit(lambda noise, count, variate: noise.largest(count, variate))


def lanes(values: list[float]) -> jax.Array:
    """The values, padded to the one shape of this file."""
    padded = np.ones(LANES)
    padded[: len(values)] = values
    return jnp.asarray(padded, jnp.float32)


def variate(probability: str) -> float:
    with mpmath.workdps(40):
        return float(-mpmath.log(mpmath.mpf(probability)))


def tables(name: str) -> dict[tuple[str, str], list[dict[str, str]]]:
    grouped: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in reference_table(name):
        grouped.setdefault((row["law"], row["params"]), []).append(row)
    return grouped


def error_of(name: str, parameters: str, rows: list[dict[str, str]], largest=None) -> float:
    """Largest relative error over the rows of one law; a value near 0 counts from 1e-2."""
    noise = law_of(name, parameters)
    largest = largest or compiled(type(noise))
    found = largest(
        noise, lanes([float(r["N"]) for r in rows]), lanes([variate(r["q"]) for r in rows])
    )
    exact = np.array([float(r["value"]) for r in rows])
    floor = 1e-2 if name == "normal" else 0.0  # the centred law passes through 0
    return float(
        np.max(np.abs(np.asarray(found)[: len(rows)] - exact) / np.maximum(np.abs(exact), floor))
    )


def test_the_largest_of_n_is_that_of_the_table():
    found = {
        k: error_of(*k, rows) for k, rows in tables("maxn_quantiles.csv").items() if k[0] in KINDS
    }
    assert len(found) >= 16
    assert max(found.values()) < 5e-6, found


def test_the_table_sees_the_textbook_form():
    rows = [r for r in tables("maxn_quantiles.csv")["exp", "scale=1"] if r["N"] == "1024"]

    def naive(_: HopNoise, count: jax.Array, e: jax.Array) -> jax.Array:
        return -jnp.log1p(-jnp.exp(-e / count))

    assert error_of("exp", "scale=1", rows) < 1e-6
    assert error_of("exp", "scale=1", rows, naive) > 1e-4


def test_the_largest_of_two_groups_is_that_of_the_table():
    [rows] = [v for (law, _), v in tables("maxn_quantiles.csv").items() if law == "two_groups"]
    assert rows[0]["params"] == "N1=1014 lognormal(0,0.25);N2=10 lognormal(0.2,0.25)"
    most, few = made(LognormalNoise, 1.0, 0.25), made(LognormalNoise, np.exp(0.2), 0.25)
    found = jax.jit(largest_of_groups)(
        (lanes([1014.0] * LANES), most), (lanes([10.0] * LANES), few),
        lanes([variate(r["q"]) for r in rows]),
    )  # fmt: skip
    np.testing.assert_allclose(found[: len(rows)], [float(r["value"]) for r in rows], rtol=5e-6)


def test_two_groups_of_one_law_are_one_group():
    pareto = made(ParetoNoise, 1.0, 0.25)
    variates = lanes(list(np.exp(np.linspace(-20, 2, LANES))))
    found = jax.jit(largest_of_groups)(
        (lanes([700.0] * LANES), pareto), (lanes([300.0] * LANES), pareto), variates
    )
    alone = pareto.largest(lanes([1000.0] * LANES), variates)
    np.testing.assert_allclose(found, alone, rtol=2e-6)


@pytest.mark.parametrize("name", ["exp", "lognormal", "normal", "weibull", "gamma", "gpd"])
def test_the_moments_of_the_largest_are_those_of_the_table(name):
    moments = jax.jit(lambda noise, count: noise.largest_moments(count))
    for (law, parameters), rows in tables("maxn_moments.csv").items():
        if law == name:
            count = lanes([float(r["N"]) for r in rows])
            mean, deviation = (
                np.asarray(x)[: len(rows)] for x in moments(law_of(law, parameters), count)
            )
            exact, spread = (np.array([float(r[k]) for r in rows]) for k in ("mean", "sd"))
            # quadrature with 8 nodes: 1e-4 for one draw, and falling
            assert np.max(np.abs(mean - exact) / spread) < 2e-4
            np.testing.assert_allclose(deviation, spread, rtol=2e-4)


ONE = [
    (LognormalNoise, (2.0, 0.7), stats.lognorm(0.7, scale=2)),
    (NormalNoise, (3.0,), stats.norm(scale=3)),
    (ExponentialNoise, (5.0, 0.5), stats.expon(5, 0.5)),
    (WeibullNoise, (2.0, 0.6), stats.weibull_min(0.6, scale=2)),
    (GammaNoise, (0.5, 7.0), stats.gamma(7, scale=0.5)),
    (ParetoNoise, (2.0, 0.3), stats.genpareto(0.3, scale=2)),
    (ParetoNoise, (2.0, -0.4), stats.genpareto(-0.4, scale=2)),
]


@pytest.mark.parametrize(("kind", "values", "law"), ONE)
def test_the_moments_of_one_draw_are_those_of_scipy(kind, values, law):
    mean, deviation = made(kind, *values).moments()
    assert float(mean[0]) == pytest.approx(law.mean(), rel=2e-6)
    assert float(deviation[0]) == pytest.approx(law.std(), rel=2e-6)


@pytest.mark.parametrize(("kind", "values", "law"), ONE)
def test_the_exponent_is_minus_the_logarithm_of_the_cdf(kind, values, law):
    value = np.linspace(law.ppf(0.01), law.isf(1e-5), LANES)
    found = jax.jit(lambda noise, x: noise.exponent(x))(
        made(kind, *values), jnp.asarray(value, jnp.float32)
    )
    exact = -np.log1p(-law.sf(value))
    # the value is rounded: half an ulp of it, by the slope of log(-log F), hazard * value
    slope = law.pdf(value) * np.abs(value) / law.cdf(value) / exact
    assert np.all(np.abs(found / exact - 1) < 2e-6 + 4 * 2.0**-24 * slope)


def test_gamma_quantiles_of_any_shape_are_those_of_scipy():
    random = np.random.default_rng(20)
    shape = np.exp(random.uniform(np.log(0.2), np.log(50), LANES)).astype(np.float32)
    exponent = np.exp(random.uniform(np.log(1e-15), np.log(12), LANES)).astype(np.float32)
    noise = GammaNoise(gamma_noise_scale=jnp.ones(LANES), gamma_noise_shape=jnp.asarray(shape))
    found = np.asarray(compiled(GammaNoise)(noise, jnp.ones(LANES), jnp.asarray(exponent)), float)
    y = exponent.astype(float)
    exact = np.where(
        y < 0.5, special.gammainccinv(shape, -np.expm1(-y)), special.gammaincinv(shape, np.exp(-y))
    )
    seen = exact > 1e-30  # below, float32 rounds to 0
    np.testing.assert_allclose(found[seen], exact[seen], rtol=1.2e-5)
    assert np.all(found >= 0)


def mixture_quantile(given: dict[str, np.ndarray], exponent: np.ndarray) -> np.ndarray:
    """Bisection in log(x / median) of the mixture's tail on its nearer side."""
    hazard, upper = -np.log(-np.expm1(-exponent)), exponent < 0.69
    share = given["spike_probability"]

    def excess(t: np.ndarray) -> np.ndarray:
        score = t / given["spiky_noise_sigma"]
        over = given["spiky_noise_median"] * np.exp(t) - given["spike_minimum"]
        spike = np.maximum(over, 0) / given["spike_scale"]
        survival = np.logaddexp(np.log1p(-share) + special.log_ndtr(-score), np.log(share) - spike)
        below = (1 - share) * special.ndtr(score) - share * np.expm1(-spike)
        return np.where(upper, -(survival + hazard), np.log(np.maximum(below, 1e-300)) + exponent)

    low, high = np.full(exponent.shape, -30.0), np.full(exponent.shape, 60.0)
    for _ in range(80):
        middle = (low + high) / 2
        right = excess(middle) > 0
        low, high = np.where(right, low, middle), np.where(right, middle, high)
    return given["spiky_noise_median"] * np.exp(low)


def spiky(seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    drawn = {
        "spiky_noise_median": 10 ** random.uniform(-8, -6, LANES),
        "spiky_noise_sigma": random.uniform(0.05, 1.5, LANES),
        "spike_probability": 10 ** random.uniform(-7, -1, LANES),
        "spike_minimum": 10 ** random.uniform(-6, -2, LANES),
        "spike_scale": 10 ** random.uniform(-6, -2, LANES),
    }
    return {name: value.astype(np.float32) for name, value in drawn.items()}


def test_spiky_quantiles_are_those_of_bisection():
    given, random = spiky(3), np.random.default_rng(4)
    exponent = np.exp(random.uniform(np.log(1e-15), np.log(10), LANES)).astype(np.float32)
    noise = SpikyNoise(**{k: jnp.asarray(v) for k, v in given.items()})
    found = compiled(SpikyNoise)(noise, jnp.ones(LANES), jnp.asarray(exponent))
    given = {k: v.astype(float) for k, v in given.items()}
    exact = mixture_quantile(given, exponent.astype(float))
    # at the knee p = eps the hazard less log eps is all rounding: an ulp of the hazard, in scales
    ulp = 2.0**-22 * np.abs(np.log(exponent.astype(float)))
    knee = ulp * given["spike_scale"] * (exact > given["spike_minimum"])
    assert np.all(np.abs(np.asarray(found) - exact) < 5e-6 * exact + knee)


def test_no_spikes_is_the_lognormal_law():
    quiet = made(SpikyNoise, 2.0, 0.5, 0.0, 1.0, 1.0)
    variates = lanes(list(np.exp(np.linspace(-20, 2, LANES))))
    found = compiled(SpikyNoise)(quiet, lanes([64.0] * LANES), variates)
    plain = made(LognormalNoise, 2.0, 0.5).largest(lanes([64.0] * LANES), variates)
    np.testing.assert_allclose(found, plain, rtol=2e-6)


def test_one_spiky_draw_has_the_moments_of_a_mixture():
    noise = made(SpikyNoise, 1.0, 0.25, 0.01, 3.0, 10.0)
    body, spike = stats.lognorm(0.25), stats.expon(3, 10)
    mean = 0.99 * body.mean() + 0.01 * spike.mean()
    square = 0.99 * body.moment(2) + 0.01 * spike.moment(2)
    for found in (noise.moments(), jax.jit(lambda n: n.largest_moments(jnp.ones(LANES)))(noise)):
        assert float(found[0][0]) == pytest.approx(mean, rel=2e-6)
        assert float(found[1][0]) == pytest.approx(np.sqrt(square - mean**2), rel=2e-6)


@given(st.sampled_from(ONE), st.floats(-30.0, 2.0))
def test_quantile_rises_with_the_level(one, logarithm):
    kind, values, _ = one
    exponent = jnp.exp(jnp.linspace(logarithm, logarithm + 1, LANES, dtype=jnp.float32))
    found = np.asarray(compiled(kind)(made(kind, *values), jnp.ones(LANES), exponent))
    # rounding may turn neighbours round by an ulp or two of the largest
    assert np.all(np.diff(found) <= 4e-6 * np.abs(found).max())


def test_an_infinite_mean_is_refused_by_the_bounds():
    assert quantities(ParetoNoise)["pareto_noise_tail_index"].bounds[1] < 1


@pytest.mark.parametrize("name", list(ANSWERS["noise"]))
def test_one_lane_of_a_law_broadcasts_over_replicates(name):
    [kind] = [k for n, k in ANSWERS["noise"][name].__annotations__.items() if n != "return"]
    one = {n: jnp.full((1, 1), q.default, jnp.float32) for n, q in quantities(kind).items()}
    shape = (2, 4)
    level = level_of_exponent(jnp.full(shape, 0.1, jnp.float32))
    found = jax.eval_shape(lambda noise: noise.quantile(level), kind(**one))
    assert found.shape == shape
    for moment in jax.eval_shape(
        lambda noise: noise.largest_moments(jnp.full(shape, 9.0, jnp.float32)), kind(**one)
    ):
        assert moment.shape == shape
