"""What `show` prints: a table per output, and the shape of each distribution."""

import numpy as np
import pytest
import xarray as xr

from fabricarlo import show
from fabricarlo.errors import StoreError
from tests.analysis.stores import store
from tests.engine.test_cli import call


@pytest.fixture
def opened(monkeypatch):
    """The store that every path leads to."""

    def use(tree: xr.DataTree) -> None:
        monkeypatch.setattr(show, "open_tree", lambda _: tree)

    use(store(512))
    return use


def lines(capsys, *arguments: object) -> list[str]:
    code, out, err = call("show", "x.zarr", *arguments, capsys=capsys)
    assert (code, err) == (0, "")
    return out.splitlines()


def test_a_row_has_the_labels_the_shape_and_the_numbers(opened, capsys):
    tree = store(512)
    found = lines(capsys, "--output", "step_time")
    row = next(line for line in found if line.strip().startswith("liquid") and "16384" in line)
    cell = tree.to_dataset().isel(cooling=1, fabric=0, gpus=2)
    for text in ("roce", f"{float(cell.step_time_mean):.6g}", f"{float(cell.step_time[2]):.6g}"):
        assert text in row
    assert set(row) & set(show.BLOCKS[1:])
    assert "distribution" in "".join(found)
    assert not any("step_time_loss" in line for line in found)


def test_a_flag_has_its_shares(opened, capsys):
    text = "\n".join(lines(capsys, "--output", "limiting_reason"))
    assert "thermal" in text
    assert "%" in text


def bins(counts: list[list[int]]) -> xr.Dataset:
    """Cells over the bins [0, 1), [1, 2) ..."""
    low = np.arange(len(counts[0]), dtype=float)
    return xr.Dataset({
        "q_counts": (("cell", "replicate", "q_bin"), np.array(counts)[:, None]),
        "q_bin_low": ("q_bin", low), "q_bin_high": ("q_bin", low + 1),
    })  # fmt: skip


def test_the_shape_follows_the_counts():
    flat, peak, missing = show.shapes(bins([[5] * 24, [0] * 12 + [9] + [0] * 11, [-1] * 24]),
                                      "q").values()  # fmt: skip
    assert flat == "█" * 24
    assert peak == " " * 12 + "█" + " " * 11
    assert missing == " " * 24


def test_what_is_rare_is_seen_and_what_lies_beyond_is_at_the_end():
    row = show.shapes(bins([[1000] * 24 + [1] * 3]), "q")[(0,)]
    assert row[0] == "█"
    assert row[-1] != " "
    assert show.shapes(bins([[10_000, 1] + [10_000] * 22]), "q")[(0,)][1] == "▁"


def test_one_value_alone_is_one_block():
    assert show.shapes(bins([[0, 7, 0]]), "q")[(0,)] == "█"
    assert show.shapes(None, "q") == {}


def test_without_histograms_there_is_no_shape(opened, capsys):
    opened(store(512).filter(lambda node: node.name != "histograms"))
    assert "distribution" not in "".join(lines(capsys, "--output", "step_time"))


def test_an_unknown_output_is_refused(opened):
    with pytest.raises(StoreError, match="has no output step_tim; it has step_time, "):
        show.show_store("x.zarr", ["step_tim"])


def test_a_half_finished_store_says_so(opened):
    half = store(512).to_dataset()
    half.attrs["state"] = "running"
    opened(xr.DataTree(half.drop_vars(list(half.data_vars))))
    with pytest.raises(StoreError, match="the sweep is not finished, run it again to go on"):
        show.show_store("x.zarr", [])
