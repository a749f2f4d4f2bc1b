"""What plain xarray sees: names, dimensions, attributes, and values that can be trusted."""

import numpy as np
import pytest
import xarray as xr

import fabricarlo
from fabricarlo.samples import rounded
from tests.engine import small

OUTPUTS = [*small.SPEC["outputs"], "limiting_reason"]
COOLED = [*small.SPEC["base"], "cooling/single-phase-45c"]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("stores") / "s.zarr"
    small.run(path, samples=20_000, outputs=OUTPUTS, base=COOLED)
    return path


@pytest.mark.parametrize("group", [None, "samples", "histograms"])
def test_plain_xarray_opens_it_without_a_warning(store, group):
    # warnings are errors in this suite
    found = xr.open_zarr(store, group=group)
    assert found.data_vars
    for name, variable in found.variables.items():
        assert variable.attrs.get("long_name"), name
        assert variable.attrs.get("units"), name


def test_axes_of_the_sweep_are_dimensions(store):
    root, samples = xr.open_zarr(store), xr.open_zarr(store, group="samples")
    assert root.allreduce_time.dims == ("fabric", "gpus", "quantile")
    assert samples.allreduce_time.dims == ("fabric", "gpus", "sample")
    assert samples.payload_fraction.dims == ("sample",)
    assert samples.packet_loss_rate.dims == ("fabric", "sample")  # relative to the fabric's value
    assert root.fabric.values.tolist() == ["roce-800g", "infiniband-xdr"]
    assert root.sel(fabric="infiniband-xdr", gpus=16384).allreduce_time_mean > 0
    assert "sample" not in samples.coords
    tree = xr.open_datatree(store, engine="zarr")
    assert {"samples", "histograms"} <= set(tree.children)


def test_root_agrees_with_the_samples(store):
    root, samples = xr.open_zarr(store), xr.open_zarr(store, group="samples").load()
    for name in small.SPEC["outputs"]:
        values = samples[name].astype("f8")
        np.testing.assert_allclose(root[f"{name}_mean"], values.mean("sample"), rtol=1e-6)
        np.testing.assert_allclose(root[f"{name}_std"], values.std("sample", ddof=1), rtol=1e-5)
        np.testing.assert_array_equal(root[f"{name}_min"], values.min("sample"))
        np.testing.assert_array_equal(root[f"{name}_max"], values.max("sample"))
        np.testing.assert_array_equal(root[f"{name}_count"], 20_000)
        np.testing.assert_array_equal(root[f"{name}_nonfinite"], 0)
        exact = values.quantile(root["quantile"], "sample", method="median_unbiased")
        bound = 2.0**-11  # width of a bin
        np.testing.assert_allclose(
            root[name].transpose("quantile", ...), exact, rtol=bound, atol=1e-12
        )
        low, high = (root[f"{name}_mean_interval"].sel(bound=b) for b in ("low", "high"))
        assert (low <= high).all()


def test_flags_have_shares_and_meanings(store):
    root, samples = xr.open_zarr(store), xr.open_zarr(store, group="samples")
    reasons = samples.limiting_reason
    assert reasons.dtype == np.int8
    meanings = reasons.attrs["flag_meanings"].split()
    assert list(reasons.attrs["flag_values"]) == list(range(len(meanings)))
    for code in range(len(meanings)):
        share = (reasons == code).mean("sample")
        np.testing.assert_allclose(
            root.limiting_reason_share.isel(limiting_reason_flag=code), share
        )


def test_histograms_count_every_sample(store):
    histograms = xr.open_zarr(store, group="histograms")
    samples = xr.open_zarr(store, group="samples")
    counts = histograms.allreduce_time_counts
    assert (counts.sum(["replicate", "allreduce_time_bin"]) == 20_000).all()
    low, high = histograms.allreduce_time_bin_low, histograms.allreduce_time_bin_high
    one = samples.allreduce_time.isel(fabric=0, gpus=0).values
    edges = np.append(low.values, high.values[-1])
    kept = counts.isel(fabric=0, gpus=0).sum("replicate").values
    found = [
        ((one >= a) & (one < b)).sum() for a, b in zip(edges[:50], high.values[:50], strict=False)
    ]
    np.testing.assert_array_equal(kept[:50], found)
    largest = histograms.allreduce_time_largest.isel(fabric=0, gpus=0)
    numbers = histograms.allreduce_time_largest_sample.isel(fabric=0, gpus=0).astype(int)
    np.testing.assert_array_equal(largest, one[numbers.values])
    assert (numbers % 8 == histograms.replicate).all()


def test_provenance(store):
    attrs = xr.open_zarr(store).attrs
    assert attrs["spec"] == small.text(samples=20_000, outputs=OUTPUTS, base=COOLED)
    assert attrs["Conventions"].startswith("CF-")
    assert len(attrs["plan"]) == 64
    assert attrs["seed"] == 7
    assert "jax" in attrs["versions"]


def test_memory_and_directory_hold_the_same(store):
    tree = small.run(samples=20_000, outputs=OUTPUTS, base=COOLED)
    root = xr.open_zarr(store)
    for name, variable in tree["/"].to_dataset().variables.items():
        assert variable.dims == root[name].dims
        assert variable.values.tolist() == root[name].values.tolist() or np.array_equal(
            variable.values, root[name].values, equal_nan=True
        )


# ---- what is kept


def test_every_kth_sample():
    kept = small.samples(small.run(keep={"samples": {"every": 4}}))
    whole = small.samples(small.run())
    small.assert_same_bits(kept, {n: v[..., ::4] for n, v in whole.items()})


def test_summaries_alone():
    tree = small.run(keep={"samples": False})
    assert "samples" not in tree.children
    assert float(tree["/"].allreduce_time_mean[0, 0]) > 0


def test_a_codec_keeps_the_bits(tmp_path):
    squeezed = small.run(tmp_path / "s.zarr", keep={"samples": True, "codec": "blosc-zstd"})
    small.assert_same_bits(small.samples(squeezed), small.samples(small.run()))


def test_mantissa_bits_are_bounded_and_declared():
    tree = small.run(keep={"samples": True, "mantissa_bits": 10})
    whole = small.samples(small.run())
    for name, values in small.samples(tree).items():
        error = np.abs(values.astype("f8") - whole[name])
        assert (error <= 2.0**-11 * np.abs(whole[name])).all()
        assert tree["/samples"][name].attrs["mantissa_bits"] == 10


def test_rounding_reaches_its_bound_and_leaves_the_rest_alone():
    values = np.float32([1 + 2.0**-11, 1 + 3 * 2.0**-11, -np.inf, np.nan, 0.0, 3e38])
    found = rounded(values, 10)
    assert found[0] == 1.0  # a tie goes to even
    assert found[1] == 1 + 2 * 2.0**-10
    assert np.isneginf(found[2])
    assert np.isnan(found[3])
    assert found[4] == 0.0


# ---- a store that is not finished


def test_unfinished_blocks_read_as_missing(tmp_path):
    """Half of the blocks are there; a chunk of another is torn. Only the ledger's are shown."""
    path = tmp_path / "s.zarr"
    sweep = small.sweep(samples=100_000)
    fabricarlo.run(sweep, path, block=2**15, process=(0, 2))
    torn = path / "samples" / "data_loss_stall" / "c" / "1" / "2" / "3"
    torn.parent.mkdir(parents=True, exist_ok=True)
    torn.write_bytes(b"\0" * 4 * 2**15)
    tree = fabricarlo.open(path)
    stall = tree["/samples"].data_loss_stall
    assert np.isfinite(stall[0]).all()
    assert np.isnan(stall[1]).all()
    assert np.isfinite(stall[0, 1, 40_000:70_000:7]).all()
    assert np.isnan(tree["/samples"].packet_loss_rate[1, 5])
    assert np.isfinite(tree["/samples"].payload_fraction).all()
    finished = fabricarlo.run(sweep, path, block=2**15)
    assert np.isfinite(finished["/samples"].data_loss_stall).all()


@pytest.mark.parametrize("kind", ["missing", "foreign"])
def test_what_is_no_store_is_said(tmp_path, kind):
    path = tmp_path / "x"
    if kind == "foreign":
        xr.Dataset({"a": ("x", [1.0])}).to_zarr(path, consolidated=False)
    with pytest.raises(fabricarlo.errors.StoreError, match=r"is no (fabricarlo )?store"):
        fabricarlo.open(path)
