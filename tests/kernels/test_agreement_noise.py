"""Hop noise against many-digit quantiles and quadrature."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.answers import hop_noise, precision
from tests.reference import order_statistics


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


def largest(name: str, given: dict[str, list[float]], dtype: Any) -> np.ndarray:
    """The product's largest, [law, count, variate]."""
    with precision(dtype):
        counts = jnp.asarray(np.array(COUNTS, float)[None, :, None], dtype)
        variates = jnp.asarray(np.array(VARIATES)[None, None, :], dtype)
        lanes = {k: np.array(v)[:, None, None] for k, v in given.items()}
        law = hop_noise(name, lanes, dtype)
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
    if law.answer == "lognormal":
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
    law = hop_noise(name, {k: np.array(v)[:, None] for k, v in given.items()}, np.float32)
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
