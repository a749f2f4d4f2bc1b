"""Summaries of a real store against its samples, and clear refusals of what is none."""

import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

import fabricarlo
from fabricarlo.analysis import (
    AnalysisError,
    draws_of,
    exceedance,
    histogram_exceedance,
    histogram_quantiles,
    independent_replicates,
    outputs_of,
    quantiles,
    replicate_quantiles,
    results_of,
    samples_of,
    stored_quantiles,
)
from fabricarlo.errors import StoreError
from tests.engine import small

KEPT = [0.01, 0.5, 0.9, 0.99, 0.999]


@pytest.fixture(scope="module")
def tree():
    base = [*small.SPEC["base"], "fabric/roce-800g"]
    return small.run(None, base=base, axes={"gpus": [8192, 16384]})


@pytest.mark.parametrize("name", small.SPEC["outputs"])
def test_histograms_give_the_quantiles_that_the_store_wrote(tree, name):
    found = histogram_quantiles(tree["/histograms"].to_dataset(), name, KEPT)
    stored = stored_quantiles(tree.to_dataset(), name)
    for end in ("estimate", "low", "high"):
        np.testing.assert_allclose(found[end], stored[end], rtol=1e-12, atol=0, err_msg=end)
    assert found.estimate.attrs["units"] == tree[name].attrs["units"]


def test_histograms_give_the_quantiles_of_the_samples(tree):
    samples = samples_of(tree, "allreduce_time")
    asked = [0.003, 0.2, 0.77, 0.9995]
    ours = histogram_quantiles(tree["/histograms"].to_dataset(), "allreduce_time", asked)
    theirs = quantiles(samples.allreduce_time, asked, replicates=8)
    np.testing.assert_allclose(ours.estimate, theirs.estimate, rtol=2**-11)
    np.testing.assert_allclose(ours.estimate[..., [0, 3]], theirs.estimate[..., [0, 3]], rtol=1e-12)


def test_replicates_have_quantiles_of_their_own(tree):
    samples = samples_of(tree).allreduce_time
    found = replicate_quantiles(tree["/histograms"].to_dataset(), "allreduce_time", [0.5, 0.99])
    assert found.dims == ("gpus", "quantile", "replicate")
    for r in range(8):
        own = quantiles(samples.isel(sample=slice(r, None, 8)), [0.5, 0.99]).estimate
        np.testing.assert_allclose(found.isel(replicate=r), own, rtol=2**-11)


def test_histograms_give_the_exceedance_of_the_samples(tree):
    samples = samples_of(tree).allreduce_time
    limits = np.quantile(samples, [0.1, 0.5, 0.97]).tolist()
    ours = histogram_exceedance(tree["/histograms"].to_dataset(), "allreduce_time", limits)
    theirs = exceedance(samples, limits, replicates=8)
    # the samples of the one bin that the limit cuts are taken as even in it
    counts = tree["/histograms"].to_dataset().allreduce_time_counts.sum("replicate")
    slack = float((counts.max() / 3000).item())
    assert np.all(abs(ours.estimate - theirs.estimate) <= slack)
    above = float(samples.max()) * 1.01
    none = histogram_exceedance(tree["/histograms"].to_dataset(), "allreduce_time", above)
    assert np.all(none.estimate == 0)
    assert np.all((none.high > 0) & (none.high < 0.001))


def test_exceedance_far_out_counts_the_kept_extremes(tree):
    samples = samples_of(tree).allreduce_time
    limit = float(np.sort(samples.isel(gpus=0))[-5])
    ours = histogram_exceedance(tree["/histograms"].to_dataset(), "allreduce_time", limit)
    assert float(ours.estimate[0, 0]) == 4 / 3000


def test_chunks_of_dask_stay_lazy(tree):
    dask = pytest.importorskip("dask.array")
    histograms = tree["/histograms"].to_dataset()
    lazy = histogram_quantiles(histograms.chunk({"gpus": 1}), "data_loss_stall", [0.5])
    assert isinstance(lazy.estimate.data, dask.Array)
    xr.testing.assert_identical(
        lazy.compute(), histogram_quantiles(histograms, "data_loss_stall", [0.5])
    )


def test_what_a_store_holds(tree):
    results = results_of(tree, "allreduce_time")
    assert outputs_of(results) == small.SPEC["outputs"]
    assert set(draws_of(results, samples_of(tree))) == set(small.SPEC["draws"])
    assert independent_replicates(results) == 8
    assert independent_replicates(results.assign_attrs(sampler="random")) == 1


def test_a_cell_that_is_not_complete_is_missing(tree):
    histograms = tree["/histograms"].to_dataset().copy(deep=True)
    histograms.allreduce_time_counts[0] = -1
    assert np.isnan(histogram_quantiles(histograms, "allreduce_time", 0.5).estimate[0]).all()
    assert np.isnan(histogram_exceedance(histograms, "allreduce_time", 1.0).estimate[0]).all()


def test_an_unknown_output_is_refused(tree):
    with pytest.raises(AnalysisError, match=r"no 'allreduce_tim'.*Did you mean allreduce_time\?"):
        results_of(tree, "allreduce_tim")
    with pytest.raises(AnalysisError, match="'histograms' has no 'pue'"):
        histogram_quantiles(tree["/histograms"].to_dataset(), "pue", 0.5)


def test_a_store_without_samples_is_refused(tree):
    with pytest.raises(AnalysisError, match=r"kept no samples: set 'keep: \{samples: true\}'"):
        samples_of(tree.filter(lambda node: node.name != "samples"))


def test_a_half_finished_store_is_refused(tree):
    bare = xr.Dataset(attrs=tree.attrs | {"state": "running"})
    with pytest.raises(AnalysisError, match=r"not finished \(state 'running'\)"):
        results_of(xr.DataTree(bare))


def test_a_foreign_store_is_refused(tmp_path):
    xr.Dataset({"temperature": ("x", np.arange(3.0))}).to_zarr(
        tmp_path / "other.zarr", zarr_format=2, consolidated=True
    )
    foreign = xr.open_datatree(tmp_path / "other.zarr", engine="zarr")
    with pytest.raises(AnalysisError, match="no store that fabricarlo wrote"):
        results_of(foreign)
    with pytest.raises(AnalysisError, match="the attribute 'sampler' is None"):
        independent_replicates(foreign)
    with pytest.raises(StoreError, match="no fabricarlo store"):
        fabricarlo.open(tmp_path / "other.zarr")


def test_the_analysis_imports_no_jax():
    code = "import sys, fabricarlo.analysis; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"jax", "jaxlib", "fabric_kernels", "zarr"} & set(done.stdout.split())
