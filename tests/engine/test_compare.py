"""Two stores against each other: what is chance, what is a shift, what must be the same bits."""

import dataclasses
import json
from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr

from fabricarlo import compare as comparing
from fabricarlo.compare import compare
from fabricarlo.errors import StoreError
from tests.analysis.stores import store
from tests.engine.test_cli import call


@pytest.fixture
def pair(monkeypatch):
    """Makes two names stand for two stores; `plan` says which promise they share."""

    def use(one: xr.DataTree, other: xr.DataTree, plan: str = "different") -> None:
        trees = {"a": one, "b": other}
        monkeypatch.setattr(comparing, "open_tree", lambda path: trees[str(path)])
        monkeypatch.setattr(
            comparing, "_plan", lambda path: ("p", "d" if plan == "same" else str(path))
        )

    return use


def test_a_store_is_equal_to_itself(pair):
    pair(store(1024), store(1024), plan="same")
    found = compare("a", "b")
    assert found.passed
    assert found.bitwise
    assert found.paired
    assert all(s.before == s.after for s in found.shifts)
    assert len(found.shifts) == 4 * 12 * 3


def test_another_seed_is_no_shift(pair):
    """Of pairs of equal laws none is called shifted: ALPHA is the chance of each."""
    for seed in range(2, 7):
        pair(store(512, seed=1), store(512, seed=seed, kept=False))
        found = compare("a", "b")
        assert not found.paired
        assert found.bitwise is None
        assert found.passed, [s for s in found.shifts if s.significant]


def test_a_shift_is_found_where_it_is(pair):
    """Compute takes 2 % longer: everything with compute in it shifts, jitter and loss do not."""
    pair(store(4096, kept=False), store(4096, kept=False, slower=1.02))
    found = compare("a", "b")
    assert not found.passed
    shifted = {s.variable for s in found.shifts if s.significant}
    assert shifted == {"step_time", "step_time_compute"}
    for s in found.shifts:
        if s.variable == "step_time_compute":
            assert s.significant
            assert abs(s.relative - 0.02) < 0.002
            assert s.low - 0.02 < 0.02 * s.before < s.high + 0.02


def test_a_shift_of_another_seed_is_found_too(pair):
    pair(store(4096, kept=False), store(4096, seed=9, kept=False, slower=1.05))
    found = compare("a", "b")
    assert not found.paired
    assert {s.variable for s in found.shifts if s.significant} >= {"step_time_compute"}


def test_the_last_bits_of_another_device_are_no_shift(pair):
    """Every value larger by 4e-7: significant by any test, and of no importance."""
    one, other = (store(1024, kept=False) for _ in range(2))
    grown = {
        n: v * (1 + 4e-7) for n, v in other["histograms"].to_dataset().items()
        if v.dtype.kind == "f"
    }  # fmt: skip
    other["histograms"] = xr.DataTree(other["histograms"].to_dataset().assign(grown))
    pair(one, other)
    assert compare("a", "b").passed
    assert not compare("a", "b", tolerance=0).passed


def changed(tree: xr.DataTree, change: Callable[[xr.Dataset], xr.Dataset]) -> xr.DataTree:
    tree["samples"] = xr.DataTree(change(tree["samples"].to_dataset().copy(deep=True)))
    return tree


def flip(samples: xr.Dataset) -> xr.Dataset:
    values = samples.step_time_loss.values
    values[0, 0, 0, 17] = np.nextafter(values[0, 0, 0, 17], np.float32(9))
    return samples


def test_one_bit_breaks_the_promise(pair):
    pair(store(256), changed(store(256), flip), plan="same")
    found = compare("a", "b")
    assert (found.bitwise, found.different_bits) == (False, ("step_time_loss",))
    assert not found.passed
    pair(store(256), changed(store(256), flip))
    assert compare("a", "b").bitwise is None, "another device promises nothing"


def test_summaries_alone_have_the_same_bits_too(pair):
    pair(store(256, kept=False), store(256, kept=False), plan="same")
    assert compare("a", "b").bitwise
    changed_counts = store(256, kept=False)
    counts = changed_counts["histograms"].step_time_loss_counts.values
    place = tuple(np.argwhere(counts > 0)[0])
    counts[place] += 1
    pair(store(256, kept=False), changed_counts, plan="same")
    assert compare("a", "b").different_bits == ("step_time_loss_counts",)


def test_a_longer_store_begins_with_the_same_bits(pair):
    pair(store(256), changed(store(256), lambda s: s.isel(sample=slice(0, 100))), plan="same")
    assert compare("a", "b").bitwise


def part(tree: xr.DataTree, **labels: object) -> xr.DataTree:
    return tree.map_over_datasets(lambda d: d.sel(labels) if "cooling" in d.coords else d)


def test_what_only_one_store_has_is_named(pair):
    other = part(store(256), cooling=["liquid"])
    outputs = [n for n in other.attrs["outputs"] if n != "step_time_loss"]
    other.attrs["outputs"] = outputs
    pair(store(256), other)
    found = compare("a", "b")
    assert found.only_in_one == ("step_time_loss (in A)", "cooling air (in A)")
    assert {s.cell["cooling"] for s in found.shifts} == {"liquid"}
    assert found.passed


def test_stores_without_a_common_cell_are_refused(pair):
    pair(part(store(256), cooling=["air"]), part(store(256), cooling=["liquid"]))
    with pytest.raises(StoreError, match="a and b have no variable and cell in common"):
        compare("a", "b")


def test_a_store_that_is_not_finished_is_refused(pair):
    half = store(256).to_dataset()
    half.attrs["state"] = "running"
    pair(store(256), xr.DataTree(half.drop_vars(list(half.data_vars))))
    with pytest.raises(StoreError, match="b: the sweep is not finished"):
        compare("a", "b")
    pair(store(256).filter(lambda node: node.name != "histograms"), store(256))
    with pytest.raises(StoreError, match="a has no histograms"):
        compare("a", "b")


def test_the_command_says_it_in_words_and_in_json(pair, capsys):
    pair(store(1024), store(1024), plan="same")
    code, out, _ = call("compare", "a", "b", capsys=capsys)
    assert code == 0
    assert "every bit that both kept is the same" in out
    assert "no significant shift" in out
    pair(store(1024), store(1024, slower=1.1))
    code, out, _ = call("compare", "a", "b", capsys=capsys)
    assert code == 1
    assert "SHIFTED" in out
    assert "significant" in out
    code, out, _ = call("compare", "a", "b", "--json", capsys=capsys)
    assert code == 1
    made = json.loads(out)
    assert made["passed"] is False
    assert set(made["shifts"][0]) == {
        *(f.name for f in dataclasses.fields(comparing.Shift)), "relative"
    }  # fmt: skip


def test_one_replicate_counts_by_size_alone(pair):
    one, other = (
        store(256, kept=False, slower=s).map_over_datasets(
            lambda d: d.isel(replicate=[0]) if "replicate" in d.dims else d
        )
        for s in (1.0, 1.1)
    )
    pair(one, one)
    assert compare("a", "b").passed
    pair(one, other)
    assert not compare("a", "b").passed
