"""The page says what the store says, and is as old as its sweep."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from docs.pages.choose_a_collective import at_one_gib, library_words, ring_words, winners
from docs.pages.listed import PAGES
from docs.pages.page import ROOT, stamp


@pytest.fixture
def root() -> xr.Dataset:
    """Two collectives, of which the ring wins for large payloads and the tree for small ones."""
    coords = {
        "collective": ["ring", "tree", "auto"],
        "gpus": [8.0, 65536.0],
        "payload": [2.0**16, 2.0**30],
        "quantile": [0.5],
    }
    dims = tuple(coords)
    time = np.array([[[2e-6, 1e-3], [1e-2, 2e-1]], [[1e-6, 2e-3], [5e-6, 3e-3]]])
    time = np.concatenate([time, time.min(axis=0, keepdims=True)])[..., None]
    parts = {"exchange_latency": 0.9, "fabric_transfer_time": 0.05}
    data = {"allreduce_time": (dims, time)}
    data |= {name: (dims, share * time) for name, share in parts.items()}
    data["fabric_hops"] = (dims, np.full_like(time, 16384.0))
    return xr.Dataset(data, coords=coords)


def test_the_winner_is_the_fastest_that_is_no_choice_of_others(root: xr.Dataset):
    rows = winners(root).splitlines()
    assert rows[2] == "| 64 KiB | tree, 1 us | tree, 5 us |"
    assert rows[3] == "| 1 GiB | ring, 1 ms | tree, 3 ms |"


def test_the_share_of_latency_is_shown_where_it_matters(root: xr.Dataset):
    assert "| `ring` | 1 ms, 90% latency | 200 ms, 90% latency |" in at_one_gib(root)


def test_the_words_on_the_ring_come_from_the_store(root: xr.Dataset):
    words = ring_words(root)
    assert "takes 200 ms for 1 GiB: 90% of it" in words
    assert "16,384 hops" in words
    assert "`tree` needs 3 ms" in words


def test_the_librarys_own_ring_is_all_latency():
    """872.6 ms, of which 867.0 ms latency: NCCL v2.30.7, src/graph/tuning.cc."""
    assert "its ring 873 ms, 99% of it latency" in library_words()


@pytest.mark.parametrize("name", PAGES)
def test_the_committed_page_is_of_the_sweeps_as_they_are(name: str):
    page = Path(ROOT / "docs" / f"{name}.md")
    assert page.read_text(encoding="utf-8").splitlines()[0] == stamp(PAGES[name])
