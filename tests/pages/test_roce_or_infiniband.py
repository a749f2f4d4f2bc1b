"""The differences of the page are those of its store, pair by pair."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from docs.pages.fabrics import Cells, deciding, difference, pairs, rate_of
from docs.pages.page import spec_path
from docs.pages.roce_or_infiniband import attributed, hash_words, parts, regimes, sprayed, write
from fabricarlo.catalog import presets
from fabricarlo.spec import load_spec

ROCE, INFINIBAND = "roce-trimming-400g", "infiniband-ndr"
REPLICATES, SAMPLES = 8, 4096
SAVED = 0.25


@pytest.fixture
def cell() -> Cells:
    """Common luck, and an InfiniBand that saves a quarter second and half of what is drawn."""
    random = np.random.default_rng(5)
    luck = random.exponential(size=SAMPLES)
    drawn = random.uniform(size=SAMPLES)
    step = np.stack([5 + luck + drawn, 5 + luck - SAVED + 0.5 * drawn])
    dims = ("fabric", "sample")
    coords = {"fabric": [ROCE, INFINIBAND]}
    every = {"every": 16}  # as kept by the sweep: all of one replicate
    data = {"step_time": (dims, step, every), "step_time_compute": (dims, np.full_like(step, 4.0))}
    data |= {f"step_time_{n}": (dims, (step - 4) * share) for n, share in SHARES.items()}
    data["collision_efficiency"] = (dims, np.ones_like(step))
    regime = {"flag_meanings": "quiet fixed_point", "flag_values": [0, 1]}
    data["congestion_regime"] = (dims, np.ones_like(step), regime)
    data |= {"hot_share": ("sample", drawn), "other": ("sample", random.uniform(size=SAMPLES))}
    samples = xr.Dataset(data, coords)
    outputs = [n for n in data if n not in ("hot_share", "other")]
    middle = {n: (("fabric", "quantile"), np.full((2, 3), v)) for n, v in MIDDLE.items()}
    root = xr.Dataset(
        middle, coords | {"quantile": [0.5, 0.99, 0.999], "gpus": 64.0}, {"outputs": outputs}
    )
    return Cells(root, samples, histogram(step, coords), REPLICATES)


def hashed() -> xr.Dataset:
    """What a hash leaves with 1, 16 and 128 flows."""
    dims = ("gpus", "flows_per_port", "quantile")
    left = np.array([0.1, 0.4, 0.7])[None, :, None] + np.zeros((2, 1, 3))
    coords = {"gpus": [32.0, 64.0], "flows_per_port": [1.0, 16.0, 128.0]}
    return xr.Dataset(
        {"collision_efficiency": (dims, left)}, coords | {"quantile": [0.01, 0.5, 0.99]}
    )


SHARES = {"bandwidth": 0.5, "latency": 0.2, "congestion": 0.1, "jitter": 0.1, "loss": 0.1}
MIDDLE = {
    "collision_efficiency": 0.5, "congestion_efficiency": 0.9, "queueing_delay": 2e-6,
    "step_time": 6.0, "allreduce_time": 2.0,
}  # fmt: skip


def histogram(step: np.ndarray, coords: dict[str, list[str]]) -> xr.Dataset:
    """Bins of the kind that a store has, a thousandth of a second wide."""
    edges = np.arange(4.0, 25.0, 1e-3)
    counts = np.stack([
        [np.histogram(row[r::REPLICATES], edges)[0] for r in range(REPLICATES)] for row in step
    ])  # fmt: skip
    ranked = np.stack([[np.sort(row[r::REPLICATES]) for r in range(REPLICATES)] for row in step])
    dims = ("fabric", "replicate")
    return xr.Dataset(
        {
            "step_time_counts": ((*dims, "step_time_bin"), counts),
            "step_time_bin_low": ("step_time_bin", edges[:-1]),
            "step_time_bin_high": ("step_time_bin", edges[1:]),
            "step_time_smallest": ((*dims, "rank"), ranked[..., :64]),
            "step_time_largest": ((*dims, "rank"), ranked[..., :-65:-1]),
        },
        coords,
    )


def test_the_paired_difference_is_that_of_the_samples(cell: Cells):
    found = difference(cell, ROCE, INFINIBAND)
    exact = np.diff(cell.samples.step_time.values, axis=0)[0].mean()
    mean, low, high = found["mean_difference"]
    assert mean == pytest.approx(exact, abs=1e-9)
    assert low < exact < high
    # luck in common cancels: 0.5 x deviation of a uniform over the root of the samples, t of 95 %
    assert high - low == pytest.approx(2 * 1.96 * 0.5 / np.sqrt(12 * SAMPLES), rel=0.05)
    assert found["share_lower"][0] == 1.0


def test_the_shift_of_the_median_is_that_of_all_samples(cell: Cells):
    median, low, high = difference(cell, ROCE, INFINIBAND)["p50"]
    exact = np.diff(np.median(cell.samples.step_time.values, axis=1))[0]
    assert median == pytest.approx(exact, abs=0.03)  # mean of eight medians, not the median
    assert low < median < high


def test_what_is_turned_round_changes_its_sign(cell: Cells):
    there, back = difference(cell, ROCE, INFINIBAND), difference(cell, INFINIBAND, ROCE)
    assert there["mean_difference"][0] == -back["mean_difference"][0]
    assert there["p99"][0] == pytest.approx(-back["p99"][0])


def test_the_input_that_decides_is_named(cell: Cells):
    found = deciding(cell, ROCE, INFINIBAND)
    assert str(found.parameter.values[0]) == "hot_share"
    assert float(found.first_order[0]) == pytest.approx(1, abs=0.02)
    assert abs(float(found.first_order.sel(parameter="other"))) < 0.02


def test_the_words_have_the_difference_and_its_rate(cell: Cells):
    mean = difference(cell, ROCE, INFINIBAND)["mean_difference"][0]
    words = sprayed(cell)
    assert f"`{INFINIBAND}` instead of `{ROCE}` changes the mean step by {mean:+.3f} s" in words
    assert "the variance of that difference have `hot_share` 98%." in words


def test_parts_add_up_to_the_quantile(cell: Cells):
    found = parts(cell)
    whole = np.quantile(cell.samples.step_time, 0.99, axis=1, method="median_unbiased")
    np.testing.assert_allclose(found.sel(quantile=0.99).sum("part"), whole, rtol=1e-3)
    assert f"| `{ROCE}` |" in attributed(found)


def test_the_regime_is_named(cell: Cells):
    assert f"| `{ROCE}` | 50% | 90.0% | 2 us | fixed point (100%) |" in regimes(cell)


def test_the_hash_is_read_off_its_store():
    assert "10% with 1, 40% with 16, 70% with 128 flows" in hash_words(hashed(), 64.0)


def test_the_page_builds_from_its_stores(cell: Cells, tmp_path: Path):
    tree = xr.DataTree(cell.root.expand_dims(gpus=[32.0, 64.0]))
    tree["samples"] = xr.DataTree(cell.samples.expand_dims(gpus=[32.0, 64.0]))
    tree["histograms"] = xr.DataTree(cell.histograms.expand_dims(gpus=[32.0, 64.0]))
    tree.attrs |= {"sampler": "sobol", "replicates": REPLICATES, "samples": SAMPLES}
    page = write({"roce_vs_infiniband": tree, "hashed_flows": xr.DataTree(hashed())}, tmp_path)
    assert "4,096 samples a cell" in page
    mean = difference(cell, ROCE, INFINIBAND)["mean_difference"][0]
    assert f"| `{INFINIBAND}` - `{ROCE}` | {mean:+.3f} (" in page
    assert f"| `{INFINIBAND}` - `{ROCE}` | `hot_share` 98% |" in page
    assert (tmp_path / "roce_or_infiniband.png").stat().st_size > 10_000
    assert "nan" not in page


def test_every_fabric_of_the_sweep_has_the_rate_of_its_preset():
    known = presets()
    for label in load_spec(spec_path("roce_vs_infiniband")).axes[0].labels:
        rate = known[f"fabric/{label}"].settings.values["link_rate"] * 8e-9
        assert rate == pytest.approx(rate_of(str(label)))


def test_pairs_are_of_one_rate_where_there_is_one():
    labels = ["roce-pfc-400g", "roce-pfc-1600g", "infiniband-ndr", "infiniband-xdr"]
    assert pairs(labels) == [
        ("roce-pfc-400g", "infiniband-ndr"), ("roce-pfc-1600g", "infiniband-xdr")
    ]  # fmt: skip
