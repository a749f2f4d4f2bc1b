"""What holds for every law: order, support, mean, one program a signature, columns of a tile."""

import math
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fabric_kernels.uniform import Uniform
from fabricarlo.laws import LAWS, Law, make
from tests.engine.law_cases import DEEP, IDS, ONE_OF_EACH, compiled, distances, drawn


def test_every_law_is_tested() -> None:
    assert {law.kind for law in ONE_OF_EACH} == set(LAWS)


@pytest.mark.parametrize("law", ONE_OF_EACH, ids=IDS)
def test_values_rise_with_u_inside_the_support(law: Law) -> None:
    distance = distances(law)
    values = np.concatenate([drawn(law, distance, upper=False), drawn(law, distance[::-1], True)])  # noqa: FBT003
    # the normal score may step back by one rounding, and a table by a few
    assert np.all(np.diff(values) >= -1e-6 * np.abs(values[1:]))
    low, high = np.float32(law.support)
    assert values.min() >= low
    assert values.max() <= high


# where the tail beyond the grid matters, the closed form is tested against scipy
LIGHT = [law for law in ONE_OF_EACH if not law.deep]


@pytest.mark.parametrize("law", LIGHT, ids=[f"{law.kind}{k}" for k, law in enumerate(LIGHT)])
def test_the_mean_is_the_integral_of_the_quantile(law: Law) -> None:
    distance = (np.arange(200_000) + 0.5) / 400_000
    both = (drawn(law, distance, upper=False).mean() + drawn(law, distance, upper=True).mean()) / 2
    spread = max(abs(law.reach[1] - law.reach[0]), abs(law.mean))
    assert both == pytest.approx(law.mean, abs=2e-5 * spread)


def test_spikes_are_rare_and_exponential() -> None:
    law = make("spikes", {"base": 1.0, "spike": 10.0, "probability": 1e-3})
    assert law.deep
    assert law.mean == 1.01
    distance = np.resize([0.5, 2e-3, 1e-3, 1e-3 / math.e, 1e-3 * math.exp(-5), DEEP], 800)
    got = drawn(law, distance, upper=True)[:6]
    # at survival p exp(-k) the value is base + k spike
    expected = [1, 1, 1, 11, 51, 1 + 10 * math.log(1e-3 / DEEP)]
    np.testing.assert_allclose(got, expected, rtol=2e-5)


def test_an_empirical_law_passes_through_its_points() -> None:
    probabilities = (0.0, 1e-6, 0.3, 0.5, 0.99, 1 - 2.0**-20, 1.0)
    values = (-3.0, -1.0, 0.0, 2.0, 2.5, 9.0, 100.0)
    law = make("empirical", {"probabilities": probabilities, "values": values})
    middles = [(a + b) / 2 for a, b in pairwise(probabilities)]
    for share in (*probabilities[1:-1], *middles):
        upper = share > 0.5
        distance = np.full(800, 1 - share if upper else share)
        expected = np.interp(share, probabilities, values)
        assert drawn(law, distance, upper)[0] == pytest.approx(expected, rel=2e-5, abs=1e-6)


@given(st.lists(st.floats(0.01, 10), min_size=1, max_size=9))
def test_discrete_numbers_have_their_shares(weights: list[float]) -> None:
    values = tuple(float(k) for k in range(len(weights)))
    law = make("discrete", {"values": values, "weights": tuple(weights)})
    distance = (np.arange(4000) + 0.5) / 8000
    got = np.concatenate([drawn(law, distance, False), drawn(law, distance, True)])  # noqa: FBT003
    for value, weight in zip(values, weights, strict=True):
        assert np.mean(got == value) == pytest.approx(weight / sum(weights), abs=2 / 8000)


def test_forms_of_one_law_are_one_law() -> None:
    by_p99 = make("lognormal", {"median": 2.0, "p99": 2.0 * math.exp(2.3263478740408408)})
    assert dict(by_p99.parameters) == pytest.approx({"median": 2.0, "sigma": 1.0})
    by_mean = make("lognormal", {"mean": 3.0, "cv": 0.7})
    assert by_mean.mean == pytest.approx(3.0)
    assert float(stats.lognorm(by_mean["sigma"], 0, by_mean["median"]).std()) == pytest.approx(2.1)
    assert make("weibull", {"shape": 2.0, "mean": 5.0}).mean == pytest.approx(5.0)
    assert make("discrete", {"values": (2.0, 1.0)}) == make(
        "discrete", {"values": (1.0, 2.0), "weights": (3.0, 3.0)}
    )


def test_depth_is_a_property_of_the_law() -> None:
    deep = {law.kind for law in ONE_OF_EACH if law.deep}
    assert deep == {"generalised_pareto", "spikes", "weibull"}
    assert not make("weibull", {"shape": 1.0, "scale": 1.0}).deep
    assert make("weibull", {"shape": 0.99, "scale": 1.0}).deep


def test_one_signature_is_one_program_for_any_numbers() -> None:
    laws = [
        make("gamma", {"shape": 4.0, "scale": 2.0}),
        make("beta", {"alpha": 2.0, "beta": 2.0, "low": 0.0, "high": 1.0}),
        make("pert", {"low": 1.0, "mode": 2.0, "high": 5.0}),
    ]
    assert len({law.signature for law in laws}) == 1
    assert len({frozenset(law.prepared()) for law in laws}) == 1
    shapes = {tuple(v.shape for v in law.prepared().values()) for law in laws}
    assert len(shapes) == 1
    three = make("discrete", {"values": (1.0, 2.0, 3.0)})
    four = make("discrete", {"values": (1.0, 2.0, 3.0, 4.0)})
    assert three.signature == four.signature


@pytest.mark.parametrize("law", ONE_OF_EACH, ids=IDS)
def test_columns_of_a_tile_are_the_law_of_each_column(law: Law) -> None:
    """As the engine calls it: numbers are [1, columns], tables [rows, knots] with a row each."""
    u = Uniform(
        jnp.asarray([[False, True, False], [True, True, False]]),
        jnp.asarray([[0.1, 0.2, 1e-7], [0.5, 1e-6, 0.3]], jnp.float32),
    )
    alone = {name: jnp.asarray(value) for name, value in law.prepared().items()}
    tile: dict[str, jax.Array] = {"row": jnp.asarray([[1, 0, 1]], jnp.int32)}
    for name, value in alone.items():
        # row 0 is another law's table: one that is read by mistake shows
        tile[name] = jnp.stack([value * 0, value]) if value.ndim else jnp.full((1, 3), value)
    got = compiled(law.signature, tile, u)
    assert got.shape == (2, 3)
    assert got.dtype == jnp.float32
    expected = compiled(law.signature, alone, u)
    reads = jnp.asarray([[True, False, True]]) if _has_table(law) else jnp.full((1, 3), True)  # noqa: FBT003
    np.testing.assert_array_equal(np.where(reads, got, 0), np.where(reads, expected, 0))


def _has_table(law: Law) -> bool:
    return any(value.ndim for value in law.prepared().values())
