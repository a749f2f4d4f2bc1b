"""Estimates against NumPy on the samples themselves, and whether intervals keep their promise."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from fabricarlo.sampling.addresses import stream_keys
from fabricarlo.sampling.sobol import reversed_words
from fabricarlo.sampling.words import narrow_words
from fabricarlo.summaries.estimate import Estimates, estimate
from fabricarlo.summaries.packed import packed_parts
from fabricarlo.summaries.state import Part
from fabricarlo.summaries.summariser import Columns, Summariser

QUANTILES = (0.0, 0.001, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0)
REPLICATES, COLUMNS = 8, 2000
BOUND = 2.0**-11  # a whole bin: the order statistics lie anywhere in theirs


def part_of(*outputs: np.ndarray) -> Part:
    """One cell with these [replicates, columns] outputs."""
    replicates, columns = outputs[0].shape
    table = {str(k): values.astype(np.float32) for k, values in enumerate(outputs)}
    cell, index = np.zeros(columns, int), np.arange(columns)
    return packed_parts(table, {}, cell, index, replicates * columns, replicates)[0]


def laws(seed: int = 7) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    size = (REPLICATES, COLUMNS)
    stall = np.where(rng.random(size) < 0.02, rng.lognormal(-5, 1, size), 0.0)
    values = {
        "normal": rng.normal(0, 1, size),
        "lognormal": rng.lognormal(0, 3, size),
        "pue": rng.normal(1.08, 0.004, size),
        "stall": stall,
        "constant": np.full(size, 0.1),
        "negative": -rng.exponential(1, size),
    }
    return {name: v.astype(np.float32) for name, v in values.items()}


LAWS = laws()


@pytest.fixture(scope="module")
def estimates() -> Estimates:
    return estimate(part_of(*LAWS.values()), QUANTILES)


def by_numpy(values: np.ndarray) -> np.ndarray:
    return np.quantile(values.astype(np.float64), QUANTILES, axis=-1, method="median_unbiased")


@pytest.mark.parametrize("output", range(len(LAWS)), ids=LAWS)
def test_moments_and_ends_are_those_of_the_pooled_sample(estimates: Estimates, output: int) -> None:
    values = list(LAWS.values())[output].astype(np.float64).ravel()
    assert estimates.mean[output] == pytest.approx(values.mean(), rel=1e-12)
    assert estimates.std[output] == pytest.approx(values.std(ddof=1), rel=1e-10, abs=1e-15)
    assert (estimates.min[output], estimates.max[output]) == (values.min(), values.max())
    assert (estimates.count[output], estimates.nonfinite[output]) == (values.size, 0)


@pytest.mark.parametrize("output", range(len(LAWS)), ids=LAWS)
def test_quantiles_follow_the_median_unbiased_rule(estimates: Estimates, output: int) -> None:
    values = list(LAWS.values())[output]
    expected = by_numpy(values.ravel())
    found = estimates.quantile[output]
    assert np.all(np.abs(found - expected) <= BOUND * np.abs(expected) + 1e-300)
    # 16,000 values: ranks 1, 16, 15,984 and 16,000 are within the 64 kept at either end
    exact = [0, 1, 7, 8]
    np.testing.assert_allclose(found[exact], expected[exact], rtol=1e-12)


def test_another_rule_for_quantiles_would_be_seen() -> None:
    values = LAWS["lognormal"]
    wrong = np.quantile(values.astype(np.float64), 0.999)
    found = estimate(part_of(values), [0.999]).quantile[0, 0]
    assert abs(found / wrong - 1) > 1e-3


@pytest.mark.parametrize("output", range(len(LAWS)), ids=LAWS)
def test_intervals_are_t_intervals_over_the_replicates(estimates: Estimates, output: int) -> None:
    values = list(LAWS.values())[output].astype(np.float64)
    for each, interval, rel in (
        (values.mean(axis=1)[None], estimates.mean_interval[output][None], 1e-9),
        (by_numpy(values), estimates.quantile_interval[output], 2 * BOUND),
    ):
        half = stats.t.ppf(0.975, REPLICATES - 1) * each.std(axis=-1, ddof=1) / np.sqrt(REPLICATES)
        centre = each.mean(axis=-1)
        expected = np.stack([centre - half, centre + half], axis=-1)
        # an order statistic that is off by a bin moves either end by no more than three bins
        allowed = 3 * rel * np.abs(each).max(axis=-1)[:, None] + 1e-300
        assert np.all(np.abs(interval - expected) <= allowed)


def test_the_result_does_not_depend_on_which_replicate_has_which_values() -> None:
    values = LAWS["lognormal"]
    one, other = (estimate(part_of(v), QUANTILES) for v in (values, values[::-1]))
    np.testing.assert_array_equal(one.quantile, other.quantile)
    np.testing.assert_allclose(one.quantile_interval, other.quantile_interval, rtol=1e-12)


@pytest.mark.parametrize("columns", [1, 2, 5, 64, 65])
def test_few_samples_are_exact(columns: int) -> None:
    values = np.random.default_rng(8).normal(0, 1, (1, columns)).astype(np.float32)
    found = estimate(part_of(values), QUANTILES)
    np.testing.assert_allclose(found.quantile[0], by_numpy(values[0]), rtol=1e-12)
    assert np.all(np.isnan(found.mean_interval))
    assert np.all(np.isnan(found.quantile_interval))
    assert np.isnan(found.std[0]) == (columns == 1)


@pytest.mark.parametrize("columns", [1, 7, 64])
def test_a_cell_whose_samples_are_all_kept_is_exact(columns: int) -> None:
    values = np.random.default_rng(11).normal(0, 1, (REPLICATES, columns)).astype(np.float32)
    found = estimate(part_of(values), QUANTILES)
    np.testing.assert_allclose(found.quantile[0], by_numpy(values.ravel()), rtol=1e-12)


def test_one_more_sample_than_kept_leaves_the_middle_to_the_bins() -> None:
    values = np.random.default_rng(12).normal(1, 0.1, (REPLICATES, 65)).astype(np.float32)
    found = estimate(part_of(values), QUANTILES).quantile[0]
    expected = by_numpy(values.ravel())
    assert np.all(np.abs(found - expected) <= BOUND * np.abs(expected))
    assert np.any(found != expected)


def test_what_is_not_finite_is_counted_and_left_out() -> None:
    values = LAWS["normal"][:2].copy()
    values[0] = np.nan
    values[1, ::2] = np.inf
    nothing = np.full_like(values, np.nan)
    found = estimate(part_of(values, nothing), QUANTILES)
    kept = values[np.isfinite(values)]
    assert found.count.tolist() == [COLUMNS // 2, 0]
    assert found.nonfinite.tolist() == [2 * COLUMNS - COLUMNS // 2, 2 * COLUMNS]
    expected = by_numpy(kept)
    assert np.all(np.abs(found.quantile[0] - expected) <= BOUND * np.abs(expected))
    # a replicate without a value leaves no interval, an output without one nothing at all
    assert np.all(np.isnan(found.mean_interval))
    for field in ("mean", "std", "min", "max", "quantile"):
        assert np.all(np.isnan(getattr(found, field)[1]))


# ---- coverage: 1000 repetitions of 8 replicates of 8192 points, ten at a time as ten outputs

REPETITIONS, POINTS, TOGETHER = 1000, 8192, 10
# 2 + u + v of two uniforms: within one octave, so that a row occupies few bins and this is fast
MEAN, P99 = 3.0, 4 - np.sqrt(2 * 0.01)
SUMMARISER = Summariser(tuple(map(str, range(TOGETHER))), {}, REPLICATES, REPLICATES * POINTS)


def covered(values: Sequence[jax.Array]) -> np.ndarray:
    """[repetitions, 2]: whether the intervals of [replicates, POINTS] arrays hold mean and p99."""
    block = SUMMARISER.block()
    columns = Columns(np.zeros(POINTS, int), np.arange(POINTS))
    block.add(dict(zip(SUMMARISER.outputs, values, strict=True)), columns)
    found = estimate(block.finish()[0], [0.99])
    intervals = np.stack([found.mean_interval, found.quantile_interval[:, 0]], axis=1)
    true = np.array([MEAN, P99])
    return (intervals[..., 0] <= true) & (true <= intervals[..., 1])


def assert_covers(held: list[np.ndarray]) -> None:
    """0.93 to 0.97 of the repetitions: a right interval fails that with probability 4e-3 a key.

    A nominal 90 % or 99 % interval fails it with probability above 0.999.
    """
    every = np.concatenate(held)
    assert every.shape == (REPETITIONS, 2)
    share = every.mean(axis=0)
    assert np.all((share >= 0.93) & (share <= 0.97)), share


def test_intervals_cover_with_random_points() -> None:
    rng = np.random.default_rng(9)
    held = []
    for _ in range(REPETITIONS // TOGETHER):
        u = rng.random((TOGETHER, 2, REPLICATES, POINTS), np.float32)
        held.append(covered([jnp.asarray(2 + v[0] + v[1]) for v in u]))
    assert_covers(held)


@jax.jit
def triangular(index: jax.Array, keys: tuple[jax.Array, jax.Array]) -> jax.Array:
    """2 + u + v, each from its own scrambled Sobol' dimension."""
    points = reversed_words(index, np.arange(2))
    words = narrow_words("sobol", points, keys, index[None])
    u = (words >> jnp.uint32(8)).astype(jnp.float32) * 2.0**-24
    return 2.0 + u[0] + u[1]


def test_intervals_cover_with_scrambled_sobol_points() -> None:
    table = stream_keys(10, ["one", "two"], REPETITIONS * REPLICATES, 0)[..., None, :]
    index = jnp.arange(POINTS, dtype=jnp.uint32)
    held = []
    for some in np.split(table, REPETITIONS // TOGETHER, axis=1):
        values = np.asarray(triangular(index, (some[..., 0], some[..., 1])))
        held.append(covered([jnp.asarray(v) for v in np.split(values, TOGETHER)]))
    assert_covers(held)
