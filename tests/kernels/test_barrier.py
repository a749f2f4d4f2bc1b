"""The barrier: sums of per-step maxima against exact convolutions, closed forms and sampling."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from fabric_kernels.catalogue import ANSWERS
from fabric_kernels.collective import Collective
from fabric_kernels.expert import Expert
from fabric_kernels.jitter.barrier import barrier, sum_of_largest
from fabric_kernels.model import Stage
from fabric_kernels.noise import HopNoise
from fabric_kernels.noise.exponential import ExponentialNoise
from fabric_kernels.noise.generalised_pareto import ParetoNoise
from fabric_kernels.noise.lognormal import LognormalNoise
from fabric_kernels.noise.normal import NormalNoise
from fabric_kernels.noise.weibull import WeibullNoise
from fabric_kernels.pattern import Barrier, Traffic
from fabric_kernels.pipeline import Pipeline
from fabric_kernels.quantity import quantities
from fabric_kernels.uniform import Uniform
from tests.agreement import assert_follows, assert_quantile, assert_tails_reached

LANES = 16
LEVELS = np.array([0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999, 0.99999])
VARIATES = -np.log(LEVELS)


def exact_quantiles(law: stats.rv_continuous, count: int, steps: int) -> np.ndarray:
    """Quantiles at LEVELS of the sum of `steps` maxima of `count` draws: powers of a transform.

    The CDF of one maximum on a grid of 2^18 cells, rounded to their middles.
    """
    cells = 2**18
    one = law.isf(-np.expm1(np.log(0.5) / count))
    end = law.isf(1e-8 / (count * steps)) + steps * 4.0 * one
    edges = np.arange(1, cells + 1) * (end / cells)
    cumulative = np.exp(count * np.log1p(-np.minimum(law.sf(edges), 1 - 1e-16)))
    mass = np.diff(cumulative, prepend=0.0)
    total = np.fft.irfft(np.fft.rfft(mass) ** steps, cells)
    middle = edges - end / cells / 2
    # the sum of steps middles is at middle[k] + (steps - 1) / 2 cells
    at = middle + (steps - 1) * end / cells / 2
    below, above = np.cumsum(total), np.cumsum(total[::-1])[::-1]
    half = end / cells / 2
    low = np.interp(LEVELS, below, at + half)
    high = np.interp(-(1 - LEVELS), -above, at - half)
    return np.where(LEVELS < 0.5, low, high)


def lane(value: float) -> jax.Array:
    return jnp.full(LANES, value, jnp.float32)


def padded(values: np.ndarray) -> jax.Array:
    return jnp.asarray(np.resize(values, LANES), jnp.float32)


def made(kind: type, *values: float) -> HopNoise:
    return kind(**dict(zip(quantities(kind), map(lane, values), strict=True)))


summed = jax.jit(sum_of_largest)


def kernel(noise: HopNoise, count: float, steps: float) -> np.ndarray:
    found = summed(noise, lane(count), lane(steps), padded(VARIATES))
    return np.asarray(found, float)[: len(LEVELS)]


LIGHT = [
    (made(ExponentialNoise, 0.0, 1.0), stats.expon()),
    (made(LognormalNoise, 1.0, 0.5), stats.lognorm(0.5)),
    (made(WeibullNoise, 1.0, 0.5), stats.weibull_min(0.5)),
]
HEAVY = [
    (made(LognormalNoise, 1.0, 1.0), stats.lognorm(1.0)),
    (made(ParetoNoise, 1.0, 0.25), stats.genpareto(0.25)),
]
# what the docstring of sum_of_largest promises from 1024 messages on; for heavy laws the body is
# lower than the bulk of their variance suggests, and the first percentile is what it costs
LIGHT_BOUND = np.full(len(LEVELS), 0.04)
HEAVY_BOUND = np.where(LEVELS < 0.5, 0.12, 0.03)


def excess(found: np.ndarray, exact: np.ndarray, bound: np.ndarray) -> float:
    """Largest error in units of its bound."""
    return float(np.max(np.abs(found / exact - 1) / bound))


@pytest.mark.parametrize("steps", [2, 5, 20, 100])
@pytest.mark.parametrize("count", [1024, 100_000])
def test_agrees_with_the_exact_convolution(count, steps):
    for noise, law in LIGHT:
        exact = exact_quantiles(law, count, steps)
        assert excess(kernel(noise, count, steps), exact, LIGHT_BOUND) < 1
    for noise, law in HEAVY:
        exact = exact_quantiles(law, count, steps)
        assert excess(kernel(noise, count, steps), exact, HEAVY_BOUND) < 1


def test_the_check_sees_a_sum_of_quantiles_and_a_normal_sum():
    noise, law = HEAVY[1]
    exact = exact_quantiles(law, 1024, 5)
    steps, count = lane(5.0), lane(1024.0)
    sum_of_quantiles = 5 * np.asarray(noise.largest(count, padded(VARIATES)), float)
    assert excess(sum_of_quantiles[: len(LEVELS)], exact, HEAVY_BOUND) > 5
    mean, deviation = noise.largest_moments(count)
    normal_sum = steps * mean + jnp.sqrt(steps) * deviation * padded(special.ndtri(LEVELS))
    assert excess(np.asarray(normal_sum)[: len(LEVELS)], exact, HEAVY_BOUND) > 5


def test_the_convolution_of_exponentials_is_a_gamma_law():
    # the reference itself: the sum of S standard exponentials is a gamma law of shape S
    for steps in (2, 20):
        exact = stats.gamma(steps).ppf(LEVELS)
        np.testing.assert_allclose(exact_quantiles(stats.expon(), 1, steps), exact, rtol=2e-3)


def test_samples_of_the_sum_have_the_quantiles_of_the_kernel_at_many_steps():
    # 300 steps of 64 exponentials: the form has converged, so the statistics are sharp
    random = np.random.default_rng(12)
    hazards = -np.log(-np.expm1(-random.exponential(size=(20_000, 300)) / 64))
    sums = hazards.sum(axis=1)
    found = kernel(LIGHT[0][0], 64, 300)
    for level, value in zip(LEVELS[:7], found[:7], strict=True):
        assert_quantile(sums, level, value)
    with pytest.raises(AssertionError):
        assert_quantile(sums, 0.5, found[3] * 1.005)


@pytest.mark.parametrize("noise", [LIGHT[1][0], HEAVY[1][0], made(NormalNoise, 1.0)])
def test_one_step_is_exact(noise):
    found = summed(noise, lane(4096.0), lane(1.0), padded(VARIATES))
    alone = noise.largest(lane(4096.0), padded(VARIATES))
    np.testing.assert_allclose(found, alone, rtol=3e-6)


def test_many_steps_are_the_central_limit():
    noise, _ = LIGHT[0]
    mean = special.digamma(1025.0) + np.euler_gamma
    spread = np.sqrt(np.pi**2 / 6 - special.polygamma(1, 1025.0))
    limit = 3e5 * mean + np.sqrt(3e5) * spread * special.ndtri(LEVELS)
    # the skewness term, about one deviation of one step, is all that is left
    np.testing.assert_allclose(kernel(noise, 1024, 3e5), limit, rtol=5e-6)


def stage(
    noise: HopNoise, u: Uniform, *, messages: jax.Array, steps: jax.Array, groups: jax.Array
) -> jax.Array:
    """Stall of a data exchange of rounds; the others send nothing."""
    one, zero = jnp.ones_like(steps), jnp.zeros_like(steps)
    traffic = Traffic((Barrier(messages, steps, one, one),), groups)
    sent = {Collective: (traffic,), Expert: (), Pipeline: ()}
    made = (k(**dict.fromkeys(quantities(k), zero), traffic=t) for k, t in sent.items())
    return barrier(*made, noise, u, u, u).data_jitter_stall


stall = jax.jit(stage)


def test_the_slowest_of_the_groups_follows_its_law():
    # one step: the largest of groups x messages, in closed form
    size = 100_000
    random = np.random.default_rng(8)
    u = Uniform(
        jnp.asarray(random.random(size) < 0.5), jnp.asarray(random.random(size) / 2, jnp.float32)
    )
    noise = jax.tree.map(lambda x: jnp.full(size, x[0]), LIGHT[0][0])
    ones = jnp.ones(size)
    found = stall(noise, u, messages=512 * ones, steps=ones, groups=64 * ones)
    exponent = -512 * 64 * np.log1p(-np.exp(-np.asarray(found, float)))
    assert_follows(np.exp(-exponent))
    assert_tails_reached(np.exp(-exponent), -np.expm1(-exponent))
    without = stall(noise, u, messages=512 * ones, steps=ones, groups=ones)
    with pytest.raises(AssertionError, match="not this law"):
        assert_follows(np.exp(-(-512 * 64 * np.log1p(-np.exp(-np.asarray(without, float))))))


def test_no_steps_no_stall_and_no_negative_stall():
    u = Uniform(jnp.zeros(LANES, bool), lane(1e-6))
    for noise in (LIGHT[1][0], HEAVY[1][0], made(NormalNoise, 1.0)):
        none = stall(noise, u, messages=lane(0.0), steps=lane(0.0), groups=lane(1.0))
        np.testing.assert_array_equal(none, 0.0)
    low = stall(made(NormalNoise, 1.0), u, messages=lane(1.0), steps=lane(3.0), groups=lane(1.0))
    np.testing.assert_array_equal(low, 0.0)


def test_the_ends_of_the_bounds_stay_finite():
    ends = Uniform(
        jnp.asarray([False, True] * (LANES // 2)),
        jnp.asarray([2.0**-65, 2.0**-65] * 8, jnp.float32),
    )
    for noise in (made(LognormalNoise, 1.0, 2.0), made(ParetoNoise, 1e-12, 0.49), LIGHT[0][0]):
        found = np.asarray(
            stall(noise, ends, messages=lane(1e9), steps=lane(3e5), groups=lane(1e6))
        )
        assert np.all(np.isfinite(found))
        assert np.all(found[1::2] > found[::2])


@given(
    st.sampled_from([noise for noise, _ in LIGHT + HEAVY]),
    st.floats(1.0, 1e6), st.floats(1.0, 1e5), st.floats(-20.0, 2.5),
)  # fmt: skip
def test_the_sum_rises_with_level_steps_and_messages(noise, count, steps, logarithm):
    variates = jnp.exp(jnp.linspace(logarithm, logarithm + 0.5, LANES, dtype=jnp.float32))
    found = np.asarray(summed(noise, lane(count), lane(steps), variates), float)
    slack = 3e-6 * np.abs(found).max()
    assert np.all(np.diff(found) <= slack)
    if logarithm + 0.5 < np.log(np.log(2)):  # above the median, where sums cannot shrink
        more = np.asarray(summed(noise, lane(count), lane(2 * steps), variates), float)
        assert np.all(more >= found - slack)
        wider = np.asarray(summed(noise, lane(2 * count), lane(steps), variates), float)
        assert np.all(wider >= found - slack)


def test_is_wired_by_its_annotations():
    wired = Stage.of(barrier)
    streams = [slot.stream for slot in wired.slots.values()]
    assert streams == [f"jitter.{e}.slowest" for e in ("data", "expert", "pipeline")]
    assert HopNoise in wired.needs.values()


def lowered(noise: HopNoise) -> Callable[..., jax.Array]:
    return lambda u, x: stage(noise, u, messages=x, steps=x, groups=x)


@pytest.mark.parametrize("name", list(ANSWERS["noise"]))
def test_lowers_for_every_platform(name):
    kind = next(k for n, k in ANSWERS["noise"][name].__annotations__.items() if n != "return")
    noise = kind(**{n: lane(q.default) for n, q in quantities(kind).items()})
    u = Uniform(jnp.zeros(LANES, bool), lane(0.25))
    exported = jax.export.export(jax.jit(lowered(noise)), platforms=("cpu", "cuda", "tpu"))(
        u, lane(8.0)
    )
    assert exported.platforms == ("cpu", "cuda", "tpu")
    assert "mulhi" not in exported.mlir_module()
