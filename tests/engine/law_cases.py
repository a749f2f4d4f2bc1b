"""One or more laws of every kind, beside the same law in scipy, and how a program draws them."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from fabric_kernels.uniform import Uniform
from fabricarlo.laws import Law, make, quantile

SHALLOW, DEEP = 2.0**-33, 2.0**-65  # smallest distances of 31 and 63 bits

TRUNCATED = stats.truncnorm(-4, 1, 0.9, 0.1)
FAR = stats.truncnorm(4, 6)
LOG_SIGMA = math.log(1.5 / 0.6) / stats.norm.isf(0.01)

# kind, parameters, the same law in scipy, allowed relative error of the value
CASES: list[tuple[str, dict[str, float], Any, float]] = [
    ("uniform", {"low": 40, "high": 45}, stats.uniform(40, 5), 1e-6),
    ("loguniform", {"low": 1e-9, "high": 1e-5}, stats.loguniform(1e-9, 1e-5), 1e-6),
    ("normal", {"mean": 25, "deviation": 1}, stats.norm(25, 1), 1e-6),
    ("truncated_normal", {"mean": 0.9, "deviation": 0.1, "low": 0.5, "high": 1}, TRUNCATED, 1e-6),
    ("truncated_normal", {"mean": 0, "deviation": 1, "low": 4, "high": 6}, FAR, 1e-6),
    ("truncated_normal", {"mean": 0, "deviation": 1, "low": 2}, stats.truncnorm(2, np.inf), 1e-6),
    ("lognormal", {"median": 6e-7, "p99": 1.5e-6}, stats.lognorm(LOG_SIGMA, 0, 6e-7), 1e-6),
    ("lognormal", {"median": 2, "sigma": 1.2}, stats.lognorm(1.2, 0, 2), 2e-6),
    ("gamma", {"shape": 0.5, "scale": 2}, stats.gamma(0.5, 0, 2), 1.5e-5),
    ("gamma", {"shape": 4, "scale": 2}, stats.gamma(4, 0, 2), 2e-6),
    ("gamma", {"mean": 5, "cv": 0.01}, stats.gamma(1e4, 0, 5e-4), 1e-6),
    ("weibull", {"shape": 0.5, "scale": 1}, stats.weibull_min(0.5, 0, 1), 5e-6),
    ("weibull", {"shape": 2, "scale": 3}, stats.weibull_min(2, 0, 3), 1e-6),
    ("beta", {"alpha": 2, "beta": 5, "low": 0, "high": 1}, stats.beta(2, 5), 5e-6),
    ("beta", {"alpha": 0.5, "beta": 0.5, "low": 1, "high": 2}, stats.beta(0.5, 0.5, 1), 1e-6),
    ("pert", {"low": 1, "mode": 2, "high": 5}, stats.beta(2, 4, 1, 4), 1e-6),
    ("triangular", {"low": 1, "mode": 2, "high": 5}, stats.triang(0.25, 1, 4), 1e-6),
    ("triangular", {"low": 1, "mode": 1, "high": 5}, stats.triang(0, 1, 4), 1e-6),
    (
        "generalised_pareto",
        {"location": 1e-6, "scale": 1e-7, "shape": 0.3},
        stats.genpareto(0.3, 1e-6, 1e-7),
        2e-6,
    ),
    ("generalised_pareto", {"location": 0, "scale": 1, "shape": 0}, stats.expon(), 1e-6),
    ("generalised_pareto", {"location": 0, "scale": 1, "shape": -0.5}, stats.genpareto(-0.5), 1e-6),
    ("shifted_exponential", {"location": 1, "scale": 3}, stats.expon(1, 3), 1e-6),
]
NAMES = [f"{kind}-{'-'.join(f'{v:g}' for v in p.values())}" for kind, p, _, _ in CASES]

compiled = jax.jit(quantile, static_argnums=0)


def drawn(law: Law, distance: np.ndarray, upper: bool | np.ndarray) -> np.ndarray:  # noqa: FBT001
    """The law's value in float32, as a program gets it."""
    u = Uniform(
        jnp.broadcast_to(jnp.asarray(upper), distance.shape), jnp.asarray(distance, jnp.float32)
    )
    numbers = {name: jnp.asarray(value) for name, value in law.prepared().items()}
    return np.asarray(compiled(law.signature, numbers, u), np.float64)


def distances(law: Law) -> np.ndarray:
    """Distances of one length, so that each signature compiles once: both scales, both ends."""
    least = DEEP if law.deep else SHALLOW
    along = np.exp(np.linspace(math.log(least), math.log(0.5), 400))
    even = (np.arange(400) + 0.5) / 800
    return np.sort(np.float32(np.concatenate([along, even]))).astype(np.float64)


ONE_OF_EACH = [
    *(make(kind, parameters) for kind, parameters, _, _ in CASES),
    make("constant", {"value": 3.0}),
    make("spikes", {"base": 1e-6, "spike": 1e-4, "probability": 1e-3}),
    make("empirical", {"probabilities": (0.0, 0.2, 0.9, 1.0), "values": (1.0, 2.0, 3.0, 10.0)}),
    make("discrete", {"values": (3.0, 1.0, 7.0), "weights": (1.0, 2.0, 1.0)}),
]


IDS = [f"{law.kind}{k}" for k, law in enumerate(ONE_OF_EACH)]
