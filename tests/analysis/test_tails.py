"""Quantiles and exceedance: the estimates, and how often their intervals hold the truth."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fabricarlo.analysis import AnalysisError, exceedance, quantiles
from fabricarlo.analysis.tails import interval_ranks
from tests.analysis.laws import sampled, stratified

REPETITIONS = 4000
"""The share that a 95 % interval covers then has a standard error of 0.34 %."""
PROBABILITIES = (0.5, 0.9, 0.99)


def covered(found: xr.Dataset, truth: np.ndarray) -> np.ndarray:
    """Share of cells whose interval holds the truth, per column."""
    return ((found.low <= truth) & (truth <= found.high)).mean("cell").values


@pytest.fixture(scope="module")
def plain():
    return np.random.default_rng(1).standard_exponential((REPETITIONS, 600))


@pytest.fixture(scope="module")
def scrambled():
    return stratified(REPETITIONS, replicates=8, points=512, seed=2)


def test_plain_intervals_of_quantiles_cover_as_they_say(plain):
    found = quantiles(sampled(plain), PROBABILITIES)
    share = covered(found, stats.expon.ppf(PROBABILITIES))
    assert np.all((share > 0.94) & (share < 0.96)), share


def test_replicate_intervals_of_quantiles_cover_as_they_say(scrambled):
    found = quantiles(sampled(scrambled), PROBABILITIES, replicates=8)
    share = covered(found, stats.norm.ppf(PROBABILITIES, scale=np.sqrt(2)))
    assert np.all((share > 0.94) & (share < 0.96)), share


def test_plain_intervals_of_exceedance_cover_as_they_say(plain):
    found = exceedance(sampled(plain), [0.7, 1.6, 3.0])
    share = covered(found, stats.expon.sf([0.7, 1.6, 3.0]))
    assert np.all((share > 0.94) & (share < 0.96)), share


def test_replicate_intervals_of_exceedance_cover_as_they_say(scrambled):
    limits = [0.1, 1.5, 2.5]
    found = exceedance(sampled(scrambled), limits, replicates=8)
    share = covered(found, stats.norm.sf(limits, scale=np.sqrt(2)))
    assert np.all((share > 0.94) & (share < 0.96)), share


def test_the_check_of_coverage_sees_a_wrong_interval(plain, scrambled):
    """Too narrow for a confidence of 90 %; too wide where scrambles are taken for plain samples."""
    found = quantiles(sampled(plain[:, :200]), PROBABILITIES, confidence=0.9)
    assert np.all(covered(found, stats.expon.ppf(PROBABILITIES)) < 0.94)
    found = quantiles(sampled(scrambled), [0.5])
    assert np.all(covered(found, np.zeros(1)) > 0.96)


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=40))
def test_quantiles_are_numpy_s_median_unbiased_ones(values):
    row = np.array(values)
    expected = np.quantile(row, PROBABILITIES, method="median_unbiased")
    found = quantiles(sampled(row), PROBABILITIES).estimate
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize(("n", "p"), [(50, 0.5), (1000, 0.9), (100_000, 0.999)])
def test_ranks_of_the_interval_enclose_the_quantile_as_the_binomial_law_says(n, p):
    """Between the ranks the law jumps over 2.5 %: rounding outward covers more, inward less."""
    for rank, side in zip(interval_ranks(n, p, 0.95), ("low", "high"), strict=True):
        law = stats.binom(n, p)
        inner, outer = np.ceil(rank), np.floor(rank)
        if side == "low":
            missed = law.cdf(outer - 1), law.cdf(inner - 1)
        else:
            missed = law.sf(inner - 1), law.sf(outer - 1)
        assert missed[0] <= 0.025 <= missed[1]


def test_an_end_that_too_few_samples_reach_is_missing():
    found = quantiles(sampled(np.arange(100.0)), [0.5, 0.99])
    assert np.isfinite(found.low).all()
    assert np.isfinite(found.high[0])
    assert np.isnan(found.high[1])


def test_values_that_are_not_finite_are_left_out():
    row = np.random.default_rng(3).random(500)
    holes = np.insert(row, [0, 100, 400], [np.nan, np.inf, -np.inf])
    for kept, whole in (
        (quantiles(sampled(holes), [0.5, 0.9]), quantiles(sampled(row), [0.5, 0.9])),
        (exceedance(sampled(holes), 0.3), exceedance(sampled(row), 0.3)),
    ):
        xr.testing.assert_equal(kept, whole)
    empty = quantiles(sampled(np.full(9, np.nan)), [0.5])
    assert np.isnan(empty.estimate).all()


def test_replicates_that_all_agree_leave_the_plain_interval():
    found = exceedance(sampled(np.arange(800.0)), [900.0, -1.0], replicates=8)
    assert found.estimate.values.tolist() == [0, 1]
    assert found.low[0] == 0
    assert 0 < float(found.high[0]) < 0.01
    assert found.high[1] == 1
    assert 0.99 < float(found.low[1]) < 1


def test_every_kth_sample_falls_into_fewer_replicates():
    whole = stratified(1, replicates=8, points=64, seed=4)[0]
    thinned = sampled(whole[::2], every=2)
    own = [np.quantile(whole[r::8], 0.5, method="median_unbiased") for r in (0, 2, 4, 6)]
    half = stats.t.ppf(0.975, 3) * np.std(own, ddof=1) / 2
    found = quantiles(thinned, 0.5, replicates=8)
    np.testing.assert_allclose(found.low[0], np.mean(own) - half, rtol=1e-12)
    alone = quantiles(sampled(whole[::8], every=8), 0.5, replicates=8)
    assert np.isfinite(alone.low).all(), "one replicate is left: its samples count as plain ones"


def test_attributes_say_what_a_number_is():
    found = quantiles(sampled(np.arange(100.0), every=1), [0.5])
    assert found.estimate.attrs == {
        "units": "s", "long_name": "time of a step: quantile over samples"
    }  # fmt: skip
    assert "low end of the 0.95 interval" in found.low.attrs["long_name"]
    shares = exceedance(sampled(np.arange(100.0)), 3.0)
    assert shares.estimate.attrs["units"] == "1"
    assert shares.threshold.attrs["units"] == "s"


def test_chunks_of_dask_stay_lazy_and_give_the_same():
    dask = pytest.importorskip("dask.array")
    rows = np.random.default_rng(5).random((3, 4000)).astype(np.float32)
    lazy = sampled(rows).chunk({"cell": 1, "sample": 1000})
    for made, plain in (
        (quantiles(lazy, [0.5, 0.99], replicates=8), quantiles(sampled(rows), [0.5, 0.99],
                                                               replicates=8)),
        (exceedance(lazy, 0.5), exceedance(sampled(rows), 0.5)),
    ):  # fmt: skip
        assert all(isinstance(v.data, dask.Array) for v in made.data_vars.values())
        xr.testing.assert_identical(made.compute(), plain)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda v: quantiles(v, [0.5], dim="point"), "no dimension 'point'; it has sample"),
        (lambda v: quantiles(v, [50]), r"probabilities are \[50\]; each must lie between 0 and 1"),
        (lambda v: quantiles(v, [0.5], confidence=95), "confidence is 95"),
        (lambda v: quantiles(v, [0.5], replicates=0), "replicates is 0"),
        (lambda v: exceedance(v, [[1.0]]), "give a number or a list"),
    ],
)
def test_wrong_questions_are_refused_in_words(call, text):
    with pytest.raises(AnalysisError, match=text):
        call(sampled(np.arange(10.0)))
