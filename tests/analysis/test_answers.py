"""Paired differences, attribution, the Pareto front and the question turned round."""

import math

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from fabricarlo.analysis import (
    AnalysisError,
    attribution,
    largest_within,
    paired_difference,
    pareto_front,
    quantiles,
)
from tests.analysis.laws import sampled, stratified

REPETITIONS = 4000


def pairs(common: np.ndarray, own: np.ndarray, shift: float) -> xr.DataArray:
    """Two designs under the same luck; the second is later by a shift and its own noise."""
    values = np.stack([common, common + shift + own])
    labels = {"cooling": ["air", "liquid"]}
    attrs = {"units": "degC", "long_name": "junction temperature"}
    return xr.DataArray(values, labels, ("cooling", "cell", "sample"), "heat", attrs)


@pytest.mark.parametrize("replicates", [1, 8])
def test_intervals_of_paired_differences_cover_as_they_say(replicates):
    rng = np.random.default_rng(21)
    if replicates == 1:
        common = math.sqrt(2) * rng.standard_normal((REPETITIONS, 800))
    else:
        common = stratified(REPETITIONS, 8, 100, seed=22)
    own = rng.standard_normal(common.shape)
    found = paired_difference(
        pairs(common, own, 0.3), "cooling", "air", "liquid", replicates=replicates,
        probabilities=[0.5, 0.8],
    )  # fmt: skip
    shift = 0.3 + (math.sqrt(3) - math.sqrt(2)) * stats.norm.ppf([0.5, 0.8])
    for name, truth in (
        ("mean_difference", 0.3),
        ("share_lower", stats.norm.cdf(-0.3)),
        ("quantile_difference", shift),
    ):
        inside = (found[f"{name}_low"] <= truth) & (truth <= found[f"{name}_high"])
        share = inside.mean("cell").values
        assert np.all((share > 0.94) & (share < 0.96)), (name, share)


def test_what_two_designs_share_cancels():
    rng = np.random.default_rng(23)
    values = pairs(100 * rng.standard_normal((1, 2000)), np.zeros((1, 2000)), -2.0)
    found = paired_difference(values, "cooling", "air", "liquid").isel(cell=0)
    for end in ("", "_low", "_high"):
        assert abs(float(found[f"mean_difference{end}"]) + 2) < 1e-9
    assert np.allclose(found.quantile_difference, -2)
    assert np.allclose(found.quantile_difference_high, -2)
    assert found.share_lower == 1
    assert found.mean_difference.attrs["units"] == "K", "a difference of temperatures is in kelvin"


def test_pairs_with_a_hole_are_left_out():
    row = np.arange(200.0)[None]
    values = pairs(row, 0 * row, 1.0)
    values[0, 0, 7] = np.nan
    values[1, 0, 9] = np.inf
    found = paired_difference(values, "cooling", "air", "liquid", replicates=4)
    assert float(found.mean_difference[0]) == 1
    assert float(found.quantile_difference[0, 0]) == 1


def test_an_unknown_label_is_refused():
    values = pairs(np.zeros((1, 9)), np.zeros((1, 9)), 1)
    with pytest.raises(AnalysisError, match=r"no label 'oil'; it has \['air', 'liquid'\]"):
        paired_difference(values, "cooling", "air", "oil")
    with pytest.raises(AnalysisError, match="no dimension 'fabric'"):
        paired_difference(values, "fabric", "a", "b")


def parts(rows: np.ndarray) -> xr.Dataset:
    """Parts of a step time [part, sample] and their sum."""
    names = ("step_time_compute", "step_time_jitter", "step_time_loss")
    found = {n: sampled(row) for n, row in zip(names, rows, strict=True)}
    return xr.Dataset(found | {"step_time": sampled(rows.sum(axis=0))})


@pytest.mark.parametrize("replicates", [1, 8])
def test_parts_of_a_quantile_of_normal_parts(replicates):
    """For normal parts E[part | total = q] = mean + variance / whole variance (q - mean)."""
    rng = np.random.default_rng(24)
    means, spreads = np.array([10.0, 2.0, 1.0]), np.array([0.3, 0.5, 1.0])
    rows = means[:, None] + spreads[:, None] * rng.standard_normal((3, 2**18))
    found = attribution(parts(rows), [0.5, 0.99], replicates=replicates, confidence=0.9999)
    whole = math.hypot(*spreads)
    for k, p in enumerate((0.5, 0.99)):
        above = stats.norm.ppf(p) * whole
        value = means + spreads**2 / whole**2 * above
        share = value / value.sum()
        at = found.isel(quantile=k)
        # the window around the quantile is not a point: 0.2 % is its curvature
        assert np.all((at.low - 0.002 <= share) & (share <= at.high + 0.002)), (p, at, share)
        assert np.all(at.high - at.low < 0.03)
        assert float(at.value.sum()) == pytest.approx(
            float(quantiles(parts(rows).step_time, p).estimate[0]), rel=1e-12
        )
    assert found.part.values.tolist() == ["compute", "jitter", "loss"]
    tail = found.share.sel(quantile=0.99) - found.share.sel(quantile=0.5)
    assert tail.sel(part="loss") > 0.1, "the part that makes the tail is larger there"
    assert tail.sel(part="compute") < -0.1


def test_parts_of_cells_in_chunks():
    dask = pytest.importorskip("dask.array")
    rows = np.random.default_rng(25).random((3, 4000)).astype(np.float32)
    one = parts(rows)
    both = xr.concat([one, one * 2], "gpus").assign_coords(gpus=[1, 2])
    lazy = attribution(both.chunk({"gpus": 1, "sample": 1000}), [0.9])
    assert isinstance(lazy.share.data, dask.Array)
    xr.testing.assert_allclose(lazy.isel(gpus=1, drop=True).share, attribution(one, [0.9]).share)
    assert lazy.value.attrs["units"] == "s"


def test_samples_without_parts_are_refused():
    with pytest.raises(AnalysisError, match=r"no parts of step_time.*step_time_compute"):
        attribution(xr.Dataset({"step_time": sampled(np.arange(9.0))}))
    with pytest.raises(AnalysisError, match="no 'step_time_heat'"):
        attribution(parts(np.ones((3, 9))), parts=["step_time_heat"])


@given(arrays(np.int8, st.tuples(st.integers(1, 12), st.just(3)), elements=st.integers(0, 4)))
def test_the_front_is_what_no_other_design_beats(costs):
    values = xr.Dataset({n: ("design", costs[:, k]) for k, n in enumerate("abc")})
    values["c"] = -values["c"]
    found = pareto_front(values, minimise=["a", "b"], maximise=["c"]).values
    for k, row in enumerate(costs):
        beaten = any(np.all(o <= row) and np.any(o < row) for o in costs)
        assert found[k] == (not beaten)


def test_the_front_over_several_axes_skips_holes():
    step = xr.DataArray([[3.0, 1.0], [np.nan, 2.0]], {"gpus": [1, 2]}, ("gpus", "fabric"))
    power = xr.DataArray([1.0, 2.0], {"gpus": [1, 2]}, ("gpus",))
    found = pareto_front(xr.Dataset({"step": step, "power": power}), minimise=["step", "power"])
    assert found.values.tolist() == [[False, True], [False, False]]
    with pytest.raises(AnalysisError, match="at least two goals"):
        pareto_front(xr.Dataset({"step": step}), minimise=["step"])
    with pytest.raises(AnalysisError, match="named twice"):
        pareto_front(xr.Dataset({"step": step}), minimise=["step"], maximise=["step"])


def curve(values: np.ndarray, half: float = 0.0) -> xr.Dataset:
    grid = {"gpus": np.arange(1.0, len(values) + 1)}
    ends = {"estimate": values, "low": values - half, "high": values + half}
    return xr.Dataset({n: ("gpus", v) for n, v in ends.items()}, grid)


@given(st.floats(0.5, 2.5), st.floats(0.05, 0.4))
def test_the_largest_x_on_a_smooth_curve(power, half):
    x = np.arange(1.0, 9.0)
    found = largest_within(curve(x**power, half), "gpus", below=5.3**power)
    error = float(found.interpolation_error) + 0.02
    assert abs(float(found.estimate) - 5.3) < error
    assert found.low < found.estimate < found.high
    # the ends are where the interval of the curve meets the limit
    assert abs(float(found.high) - (5.3**power + half) ** (1 / power)) < error


def test_the_largest_x_of_samples_is_where_the_promise_breaks():
    """Y = X E with E exponential: P(Y < y) >= q up to X = y / -log(1 - q)."""
    noise = np.random.default_rng(26).standard_exponential(200_000)
    x = np.arange(1.0, 8.0)
    rows = xr.DataArray(x[:, None] * noise, {"gpus": x}, ("gpus", "sample"), attrs={"units": "s"})
    slow = quantiles(rows, 0.95, confidence=0.999).sel(quantile=0.95)
    truth = 14.0 / -math.log(0.05)
    found = largest_within(slow, "gpus", below=14.0)
    assert found.low < truth < found.high
    assert found.high - found.low < 0.2
    assert not found.open
    logarithmic = largest_within(slow, "gpus", below=14.0, scale="log")
    assert abs(logarithmic.estimate - found.estimate) < 0.02


def test_the_last_crossing_counts_where_a_curve_turns_back():
    wave = curve(np.array([1.0, 3.0, 1.0, 3.0]))
    assert 3 < float(largest_within(wave, "gpus", below=2.0).estimate) < 4
    assert 3 < float(largest_within(curve(-wave.estimate.values), "gpus", above=-2.0).estimate) < 4


def test_a_promise_that_always_or_never_holds():
    always = largest_within(curve(np.arange(4.0)), "gpus", below=10.0)
    assert (float(always.estimate), bool(always.open)) == (4.0, True)
    never = largest_within(curve(np.arange(4.0)), "gpus", below=-1.0)
    assert np.isnan(never.estimate)
    assert not never.open


@pytest.mark.parametrize(
    ("change", "call", "text"),
    [
        (lambda c: c, {}, "exactly one of 'below' and 'above'"),
        (lambda c: c.assign_coords(gpus=list("abcd")), {"below": 1.0}, "has names, not numbers"),
        (lambda c: c.isel(gpus=[3, 2, 1, 0]), {"below": 1.0}, "must rise"),
        (lambda c: c.drop_vars("low"), {"below": 1.0}, "the curve has no 'low'"),
        (lambda c: c.isel(gpus=0), {"below": 1.0}, "no axis 'gpus'"),
    ],
)
def test_curves_that_say_nothing_are_refused(change, call, text):
    with pytest.raises(AnalysisError, match=text):
        largest_within(change(curve(np.arange(4.0))), "gpus", **call)
