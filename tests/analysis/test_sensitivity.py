"""Sobol' indices: closed forms, SALib on the same design, and the engine's own design."""

import numpy as np
import pytest
import xarray as xr

from fabricarlo.analysis import AnalysisError, first_order_indices, sobol_indices
from fabricarlo.report.facts import facts_of
from fabricarlo.report.tables import tables
from tests.analysis.laws import CASES, DIM, design, points
from tests.engine import small

SURE = 0.999
"""Confidence of an interval that must hold the closed form."""


def assert_inside(found: xr.Dataset, kind: str, truth: list[float]) -> None:
    low, high = found[f"{kind}_low"].values, found[f"{kind}_high"].values
    assert np.all((low <= truth) & (truth <= high)), (low, truth, high)
    assert np.all(high - low < 0.35), "an interval this wide says nothing"


@pytest.mark.parametrize("replicates", [1, 8])
@pytest.mark.parametrize("case", CASES)
def test_indices_agree_with_the_closed_forms(case, replicates):
    function, dimensions, (first, total) = CASES[case]
    values = design(function, dimensions, replicates, 2**14 if replicates == 1 else 2**11)
    found = sobol_indices(values, replicates=replicates, confidence=SURE)
    assert_inside(found, "first_order", first)
    assert_inside(found, "total", total)


def test_the_check_sees_indices_of_the_wrong_kind():
    function, dimensions, (first, _) = CASES["ishigami"]
    found = sobol_indices(design(function, dimensions, 8, 2**11), replicates=8, confidence=SURE)
    with pytest.raises(AssertionError):
        assert_inside(found, "total", first)


@pytest.mark.parametrize("case", CASES)
def test_indices_equal_those_of_salib_on_the_same_design(case):
    sobol = pytest.importorskip("SALib.analyze.sobol")
    function, dimensions, _ = CASES[case]
    values = design(function, dimensions, 1, 2**10)
    names = [f"x{k}" for k in range(dimensions)]
    problem = {"num_vars": dimensions, "names": names, "bounds": [[0, 1]] * dimensions}
    order = ["A", *(f"AB_{n}" for n in names), "B"]
    theirs = sobol.analyze(
        problem, values.sel(design=order).values.T.ravel(), calc_second_order=False,
        num_resamples=2, seed=1,
    )  # fmt: skip
    ours = sobol_indices(values)
    np.testing.assert_allclose(ours.first_order, theirs["S1"], rtol=0, atol=1e-10)
    np.testing.assert_allclose(ours.total, theirs["ST"], rtol=0, atol=1e-10)


@pytest.mark.parametrize("replicates", [1, 8])
@pytest.mark.parametrize("case", CASES)
def test_given_samples_agree_with_the_closed_forms(case, replicates):
    function, dimensions, (first, _) = CASES[case]
    x = points(dimensions, replicates, 2**17 // replicates, seed=9)
    draws = xr.Dataset({f"x{k}": (DIM, x[:, k]) for k in range(dimensions)})
    values = xr.DataArray(function(x), dims=DIM)
    found = first_order_indices(values, draws, replicates=replicates, confidence=SURE)
    truth = np.array(first)
    # what varies inside a bin is missed: for a smooth function about (bin width)^2 of the index
    slack = 0.01 * truth
    assert np.all(found.first_order_low - slack <= truth), (found.first_order_low, truth)
    assert np.all(truth <= found.first_order_high + slack), (truth, found.first_order_high)
    assert np.all(found.first_order_high - found.first_order_low < 0.1)


def test_chance_gives_no_index():
    """Means of 48 bins of 4096 samples vary by 1 % of the whole, though nothing is explained."""
    rng = np.random.default_rng(11)
    values = xr.DataArray(rng.standard_normal((200, 4096)), dims=("cell", DIM))
    draws = xr.Dataset({"x": (("cell", DIM), rng.random((200, 4096)))})
    found = first_order_indices(values, draws, bins=48)
    # a product of two independent means of 48 bins each, over 120 pairs of 16 groups
    spread = np.sqrt(48 / 120) * 16 / 4096
    assert abs(float(found.first_order.mean())) < 4.9 * spread / np.sqrt(200)
    inside = (found.first_order_low < 0) & (found.first_order_high > 0)
    assert float(inside.mean()) > 0.9


def test_few_values_of_a_draw_are_bins_of_their_own():
    rng = np.random.default_rng(12)
    x = rng.choice([0.067, 1.07, 4.29], 60_000, p=[0.3, 0.3, 0.4])
    noise = rng.standard_normal(len(x))
    share = np.var(x) / (np.var(x) + 1)
    found = first_order_indices(xr.DataArray(x + noise, dims=DIM), xr.Dataset({"x": (DIM, x)}))
    assert found.first_order_low[0] < share < found.first_order_high[0]


def test_what_does_not_vary_has_no_index():
    function, dimensions, _ = CASES["g"]
    values = design(function, dimensions, 1, 64) * 0 + 3.0
    found = sobol_indices(values)
    assert all(np.isnan(v).all() for v in found.data_vars.values())


def test_cells_and_chunks_make_no_difference():
    dask = pytest.importorskip("dask.array")
    function, dimensions, _ = CASES["ishigami"]
    one = design(function, dimensions, 8, 256)
    both = xr.concat([one, 2 * one + 5], "cell").assign_coords(cell=["a", "b"])
    lazy = sobol_indices(both.chunk({"cell": 1, DIM: 512}), replicates=8)
    assert isinstance(lazy.total.data, dask.Array)
    found = lazy.compute()
    alone = sobol_indices(one, replicates=8)
    xr.testing.assert_allclose(found.isel(cell=0, drop=True), alone, rtol=1e-12)
    xr.testing.assert_allclose(found.isel(cell=1, drop=True), alone, rtol=1e-9)


def test_a_sweep_with_the_design_says_what_matters(tmp_path):
    """Without jitter and loss the rate is the product of what is drawn: indices have closed forms.

    transfer time = S / (link_rate payload_fraction routing_efficiency ...), so its variance is the
    product of those of 1/x; the bit error rate matters not at all.
    """
    law = {"uniform": {"low": 0.5, "high": 1.0}}
    tree = small.run(
        None,
        samples=4096,
        design="sensitivity",
        axes={"gpus": [8192]},
        base=[*small.SPEC["base"], "fabric/roce-800g"],
        draws={"payload_fraction": law, "routing_efficiency": law, "switch_latency": "1 us"}
        | {"switch_latency": {"uniform": {"low": "1 us", "high": "2 us"}}},
        outputs=["fabric_transfer_time"],
    )
    values = tree["/samples"].to_dataset().fabric_transfer_time.isel(gpus=0)
    found = sobol_indices(values, replicates=8, confidence=SURE).sel(
        parameter=["payload_fraction", "routing_efficiency", "switch_latency"]
    )
    # 1/x of x uniform on (1/2, 1): mean 2 ln 2, mean square 2
    each = 2 / (2 * np.log(2)) ** 2 - 1
    whole = (1 + each) ** 2 - 1
    first, total = each / whole, each * (1 + each) / whole
    assert_inside(found, "first_order", [first, first, 0.0])
    assert_inside(found, "total", [total, total, 0.0])

    made = tables(facts_of(tree, "small"))["indices"].rows
    assert {row[3] for row in made} == {"first order", "total"}
    assert {row[1] for row in made} == {0}, "matrix A alone is the design of the report"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda v: v.drop_sel(design="B"), "must have A, B and AB_x"),
        (lambda v: v.isel(design=0), "no dimension 'design'"),
    ],
)
def test_a_store_without_the_design_is_refused(change, text):
    values = design(CASES["g"][0], 4, 1, 16)
    with pytest.raises(AnalysisError, match=text):
        sobol_indices(change(values))


def test_too_few_samples_are_refused():
    x = np.arange(40.0)
    with pytest.raises(AnalysisError, match="40 samples in 16 groups are too few for 4 bins"):
        first_order_indices(xr.DataArray(x, dims=DIM), xr.Dataset({"x": (DIM, x)}))
