"""The barrier against plain sampling of every hop."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from fabric_kernels.pattern import Barrier, Traffic
from tests.agreement import FALSE_ALARM
from tests.answers import CLEAN, answer, hop_noise, precision
from tests.reference import event_ring, order_statistics


@dataclass(frozen=True)
class Law:
    """A law as the product and as the reference spell it."""

    answer: str
    given: dict[str, float]
    reference: str
    parameters: dict[str, float]


EXPONENTIAL = Law(
    "exponential", {"exponential_noise_minimum": 5.0, "exponential_noise_scale": 0.5},
    "shifted_exp", {"shift": 5.0, "scale": 0.5},
)  # fmt: skip
LOGNORMAL = Law(
    "lognormal", {"lognormal_noise_median": 1.0, "lognormal_noise_sigma": 0.5},
    "lognormal", {"mu": 0.0, "sigma": 0.5},
)  # fmt: skip
PARETO = Law(
    "generalised_pareto", {"pareto_noise_scale": 1.0, "pareto_noise_tail_index": 0.25},
    "gpd", {"scale": 1.0, "xi": 0.25},
)  # fmt: skip
POINTS = (np.arange(250) + 0.5) / 250


def barrier(
    law: Law, points: np.ndarray, *, steps: float = 30.0, messages: float = 16.0, groups: float = 1
) -> np.ndarray:
    """The product's stall of the data exchange at each point of (0, 1)."""
    upper = points > 0.5
    with precision(float):
        hop = hop_noise(law.answer, law.given, float)
    rounds = Barrier(messages, steps, 1e6, 1.0)  # pyright: ignore
    slowest = (upper, np.where(upper, 1 - points, points))
    uniforms = {"data": slowest, "experts": (False, 0.25), "stages": (False, 0.25)}
    made = answer(
        "jitter", "barrier", CLEAN, uniforms=uniforms, records={"noise": hop},
        traffic={"collective": Traffic((rounds,), groups)},  # pyright: ignore
    )  # fmt: skip
    assert np.array_equal(made["jitter_stall"], made["data_jitter_stall"])
    return made["data_jitter_stall"]


@pytest.mark.parametrize("groups", [1, 64])
def test_a_single_step_waits_for_the_largest(groups: int) -> None:
    points = POINTS[::25]
    variates = [-math.log(point) / groups for point in points]
    exact = order_statistics.sampled_largest("lognormal", LOGNORMAL.parameters, 1024, variates)
    made = barrier(LOGNORMAL, points, steps=1, messages=1024, groups=groups)
    np.testing.assert_allclose(made, exact, rtol=5e-6)


def sampled_barrier(law: Law, steps: int, messages: int, groups: int, count: int) -> np.ndarray:
    """Stalls of `count` exchanges, hop by hop."""
    generator = np.random.default_rng(30)
    distribution = order_statistics.distribution(law.reference, law.parameters)
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
        (PARETO, 10, 1, 0.03),
        (PARETO, 100, 1, 0.03),
    ],
    ids=lambda value: getattr(value, "reference", str(value)),
)
def test_barrier_has_the_law_of_sampled_steps(
    law: Law, steps: int, groups: int, allowed: float
) -> None:
    count = 2000
    stalls = np.sort(sampled_barrier(law, steps, 16, groups, count))
    made = barrier(law, POINTS, steps=steps, groups=groups)
    assert np.all(np.diff(made) > 0)
    reached = np.searchsorted(stalls, made) / count
    noise_of_sampling = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * count))
    # `allowed`: how far a sum matched by two moments may lie from the true law, in probability
    assert np.abs(reached - POINTS).max() < allowed + noise_of_sampling


def test_barrier_is_never_below_the_ring_that_it_bounds() -> None:
    generator = np.random.default_rng(31)
    hops = generator.lognormal(0.0, 0.5, (250, 30, 16))
    ring = np.sort(event_ring.ring_finish(hops))
    made = barrier(LOGNORMAL, POINTS)
    assert np.all(made > ring)  # at every quantile
    mean, _ = order_statistics.largest_moments("lognormal", LOGNORMAL.parameters, 16)
    assert made.mean() == pytest.approx(30 * mean, rel=1e-3)


def test_nothing_waits_where_nothing_crosses_the_fabric() -> None:
    assert np.all(barrier(LOGNORMAL, POINTS[::25], steps=0, messages=0) == 0)


def test_sum_of_means_is_caught() -> None:
    stalls = np.sort(sampled_barrier(LOGNORMAL, 30, 16, 1, 500))
    mean, deviation = order_statistics.largest_moments("lognormal", LOGNORMAL.parameters, 1)
    wrong = 30 * mean + math.sqrt(30) * deviation * np.linspace(-3, 3, POINTS.size)
    gap = np.abs(np.searchsorted(stalls, wrong) / 500 - POINTS).max()
    assert gap > 0.5
