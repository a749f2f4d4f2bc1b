"""Hop noise and the barrier against many-digit quantiles, quadrature and plain sampling."""

import inspect
import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fabric_kernels.catalogue import ANSWERS
from tests.agreement import FALSE_ALARM
from tests.answers import answer, precision, record_of
from tests.reference import event_ring, order_statistics


@dataclass(frozen=True)
class Law:
    """Laws as the product and as the reference spell them, one a lane."""

    answer: str
    given: dict[str, list[float]]
    reference: str
    parameters: list[dict[str, float]]


LAWS = [
    Law("exponential", {"exponential_noise_minimum": [5.0], "exponential_noise_scale": [0.5]},
        "shifted_exp", [{"shift": 5.0, "scale": 0.5}]),
    Law("weibull", {"weibull_noise_scale": [1.0] * 2, "weibull_noise_shape": [0.5, 1.5]},
        "weibull", [{"scale": 1.0, "k": 0.5}, {"scale": 1.0, "k": 1.5}]),
    Law("gamma", {"gamma_noise_scale": [1.0] * 2, "gamma_noise_shape": [0.5, 4.0]},
        "gamma", [{"scale": 1.0, "shape": shape} for shape in (0.5, 4.0)]),
    Law("lognormal", {"lognormal_noise_median": [1.0] * 2, "lognormal_noise_sigma": [0.5, 1.5]},
        "lognormal", [{"mu": 0.0, "sigma": 0.5}, {"mu": 0.0, "sigma": 1.5}]),
    Law("normal", {"normal_noise_deviation": [1.0]}, "normal", [{"mean": 0.0, "sd": 1.0}]),
    Law("generalised_pareto",
        {"pareto_noise_scale": [1.0] * 2, "pareto_noise_tail_index": [0.25, -0.25]},
        "gpd", [{"scale": 1.0, "xi": 0.25}, {"scale": 1.0, "xi": -0.25}]),
]  # fmt: skip
SPIKES = {
    "spiky_noise_median": [1.0], "spiky_noise_sigma": [0.25], "spike_probability": [2.0**-10],
    "spike_minimum": [3.0], "spike_scale": [10.0],
}  # fmt: skip
SPIKY = {"mu": 0.0, "sigma": 0.25, "eps": 2.0**-10, "shift": 3.0, "scale": 10.0}
COUNTS = (1, 8, 1024, 10**9)
VARIATES = (2.0**-30, 2.0**-10, 0.6875, 2.0, 13.5)  # exact in float32


def noise(name: str, given: dict[str, Any], dtype: Any) -> Any:
    """The hop noise that the product makes of these quantities."""
    stage = ANSWERS["noise"][name]
    [kind] = (v for k, v in inspect.get_annotations(stage, eval_str=True).items() if k != "return")
    return stage(record_of(kind, given, dtype))


def largest(name: str, given: dict[str, list[float]], dtype: Any) -> np.ndarray:
    """The product's largest, [law, count, variate]."""
    with precision(dtype):
        counts = jnp.asarray(np.array(COUNTS, float)[None, :, None], dtype)
        variates = jnp.asarray(np.array(VARIATES)[None, None, :], dtype)
        lanes = {k: np.array(v)[:, None, None] for k, v in given.items()}
        law = noise(name, lanes, dtype)
        return np.asarray(jax.jit(lambda n, c, e: n.largest(c, e))(law, counts, variates))


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.answer)
def test_largest_has_the_exact_quantiles(law: Law) -> None:
    exact = [
        [
            [
                order_statistics.largest_of_exponential(law.reference, parameters, n, repr(e))
                for e in VARIATES
            ]
            for n in COUNTS
        ]
        for parameters in law.parameters
    ]
    # the accuracy that the design asks of float32; a centred law may pass through zero
    near_zero = 5e-7 if law.answer == "normal" else 0.0
    made = largest(law.answer, law.given, np.float32)
    np.testing.assert_allclose(made, exact, rtol=5e-6, atol=near_zero)
    if law.answer in ("lognormal", "weibull"):
        double = largest(law.answer, law.given, np.float64)
        np.testing.assert_allclose(double, exact, rtol=1e-8)


def test_largest_of_spiky_hops_has_the_exact_quantiles() -> None:
    [made] = largest("spikes", SPIKES, np.float32)
    for row, count in zip(made, COUNTS, strict=True):
        for value, variate in zip(row, VARIATES, strict=True):
            probability = order_statistics.mpmath.nstr(order_statistics.mpmath.exp(-variate), 40)
            exact = order_statistics.largest_spiked_quantile(SPIKY, count, probability)
            assert value == pytest.approx(exact, rel=2e-5), (count, variate)


def moments(name: str, given: dict[str, list[float]]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of the largest in float32, [law, count]."""
    law = noise(name, {k: np.array(v)[:, None] for k, v in given.items()}, np.float32)
    counts = jnp.asarray([COUNTS], jnp.float32)
    mean, deviation = jax.jit(lambda n, c: n.largest_moments(c))(law, counts)
    return np.asarray(mean), np.asarray(deviation)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.answer)
def test_moments_of_the_largest_are_those_of_quadrature(law: Law) -> None:
    mean, deviation = moments(law.answer, law.given)
    exact = np.array([
        [order_statistics.largest_moments(law.reference, parameters, n) for n in COUNTS]
        for parameters in law.parameters
    ])  # fmt: skip
    # the barrier's mean is S times this one; a part in a thousand is far below what is known of
    # any hop's noise
    np.testing.assert_allclose(mean, exact[..., 0], rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(deviation, exact[..., 1], rtol=5e-3)


def test_moments_of_spiky_hops_are_those_of_quadrature() -> None:
    [mean], [deviation] = moments("spikes", SPIKES)
    exact = [order_statistics.spiked_moments(SPIKY, n) for n in COUNTS]
    np.testing.assert_allclose(mean, [m for m, _ in exact], rtol=1e-3)
    np.testing.assert_allclose(deviation, [s for _, s in exact], rtol=5e-3)


EXCHANGE = {
    "data_parallel": 16.0, "concurrent_groups": 1.0, "payload": 1e9, "tokens_per_step": 1e6,
    "full_clock_compute_time": 1.0, "bubble_share": 0.0, "nvlink_transfer_time": 0.0,
    "fabric_transfer_time": 1.0, "exchange_latency": 1e-3, "fabric_hops": 30.0,
    "fabric_steps": 30.0, "fabric_messages": 16.0, "message_payload": 1e6,
}  # fmt: skip
POINTS = (np.arange(1000) + 0.5) / 1000


def barrier(law: Law, exchange: dict[str, float], points: np.ndarray) -> np.ndarray:
    """The product's stall at each point of (0, 1), under the first of these laws."""
    upper = points > 0.5
    given = {k: np.full(points.shape, v) for k, v in (EXCHANGE | exchange).items()}
    with precision(float):
        hop = noise(
            law.answer, {k: np.full(points.shape, v[0]) for k, v in law.given.items()}, float
        )
    uniforms = {"slowest": (upper, np.where(upper, 1 - points, points))}
    made = answer("jitter", "barrier", given, uniforms=uniforms, records={"noise": hop})
    return made["jitter_stall"]


EXPONENTIAL, LOGNORMAL, PARETO = LAWS[0], LAWS[3], LAWS[5]


@pytest.mark.parametrize("groups", [1, 64])
def test_a_single_step_waits_for_the_largest(groups: int) -> None:
    single = {"fabric_steps": 1.0, "fabric_messages": 1024.0, "concurrent_groups": groups * 1.0}
    points = POINTS[::50]
    variates = [-math.log(point) / groups for point in points]
    exact = order_statistics.sampled_largest("lognormal", LOGNORMAL.parameters[0], 1024, variates)
    np.testing.assert_allclose(barrier(LOGNORMAL, single, points), exact, rtol=5e-6)


def sampled_barrier(law: Law, steps: int, messages: int, groups: int, count: int) -> np.ndarray:
    """Stalls of `count` exchanges, hop by hop."""
    generator = np.random.default_rng(30)
    distribution = order_statistics.distribution(law.reference, law.parameters[0])
    hops = distribution.rvs((count * groups, steps, messages), random_state=generator)
    return event_ring.barrier_stalls(hops.max(axis=2), groups)


@pytest.mark.parametrize(
    ("law", "steps", "groups", "allowed"),
    [
        (EXPONENTIAL, 100, 1, 0.005),
        (LOGNORMAL, 100, 1, 0.005),
        (LOGNORMAL, 30, 4, 0.01),
        (LOGNORMAL, 4, 1, 0.02),
        (EXPONENTIAL, 2, 1, 0.03),
        (PARETO, 100, 1, 0.03),
    ],
    ids=lambda value: getattr(value, "reference", str(value)),
)
def test_barrier_has_the_law_of_sampled_steps(
    law: Law, steps: int, groups: int, allowed: float
) -> None:
    count = 2000
    stalls = np.sort(sampled_barrier(law, steps, 16, groups, count))
    exchange = {"fabric_steps": steps * 1.0, "concurrent_groups": groups * 1.0}
    made = barrier(law, exchange, POINTS)
    assert np.all(np.diff(made) > 0)
    reached = np.searchsorted(stalls, made) / count
    noise_of_sampling = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * count))
    # `allowed`: how far a sum matched by two moments may lie from the true law, in probability
    assert np.abs(reached - POINTS).max() < allowed + noise_of_sampling


def test_barrier_is_never_below_the_ring_that_it_bounds() -> None:
    generator = np.random.default_rng(31)
    hops = generator.lognormal(0.0, 0.5, (1000, 30, 16))
    ring = np.sort(event_ring.ring_finish(hops))
    made = barrier(LOGNORMAL, {}, POINTS)
    assert np.all(made > ring)  # at every quantile
    mean, _ = order_statistics.largest_moments("lognormal", LOGNORMAL.parameters[0], 16)
    assert made.mean() == pytest.approx(30 * mean, rel=1e-3)


def test_nothing_waits_where_nothing_crosses_the_fabric() -> None:
    idle = {"fabric_steps": 0.0, "fabric_messages": 0.0, "fabric_hops": 0.0}
    assert np.all(barrier(LOGNORMAL, idle, POINTS[::50]) == 0)


def test_sum_of_means_is_caught() -> None:
    stalls = np.sort(sampled_barrier(LOGNORMAL, 30, 16, 1, 500))
    mean, deviation = order_statistics.largest_moments("lognormal", LOGNORMAL.parameters[0], 1)
    wrong = 30 * mean + math.sqrt(30) * deviation * np.linspace(-3, 3, 500)
    gap = np.abs(np.searchsorted(stalls, wrong) / 500 - POINTS[1::2]).max()
    assert gap > 0.5
