"""Opening a store: an xarray DataTree, right also while the sweep still runs."""

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
import zarr
from xarray.backends import BackendArray
from xarray.core import indexing
from zarr.abc.store import Store

from fabricarlo.errors import StoreError
from fabricarlo.ledger import Ledger
from fabricarlo.objects import Objects, is_url, open_store

GROUPS = ("samples", "histograms")


def open(path: str | Path | Store) -> xr.DataTree:
    """The store as a DataTree: `/` (summaries), `/samples` and `/histograms` where they are kept.

    Samples of blocks that are not finished read as NaN (flags as -1). Raises StoreError where
    there is no store.
    """
    if not isinstance(path, Store) and not is_url(path) and not Path(path).is_dir():
        raise StoreError(f"{path} is no store: there is no such directory.")
    target = path if isinstance(path, Store) else open_store(path)
    objects = Objects(target)
    if objects.get("_run/plan.json") is None:
        raise StoreError(f"{path} is no fabricarlo store: it has no _run/plan.json.")
    root = zarr.open_group(target, mode="r")
    groups = {"/": _dataset(target, "")}
    for group in GROUPS:
        if objects.get(f"{group}/zarr.json") is not None:
            groups[f"/{group}"] = _dataset(target, group)
    if root.attrs.get("state") != "finished" and "/samples" in groups:
        groups["/samples"] = _masked(groups["/samples"], root["samples"], Ledger(objects))
    return xr.DataTree.from_dict(groups)


def _dataset(target: Store, group: str) -> xr.Dataset:
    return xr.open_zarr(target, group=group, consolidated=False, chunks=None)


class _Finished(BackendArray):
    """A variable whose unfinished blocks read as missing, loaded lazily."""

    def __init__(self, array: zarr.Array, done: np.ndarray) -> None:
        self.array, self.done = array, done  # done: bool, one a chunk
        self.shape, self.dtype = array.shape, array.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.OUTER, self._load
        )

    def _load(self, key: tuple[Any, ...]) -> np.ndarray:
        values = np.asarray(self.array.oindex[key])
        chunks = [
            np.arange(n)[k] // c for n, k, c in zip(self.shape, key, self.array.chunks, strict=True)
        ]
        kept = [np.atleast_1d(c) for c in chunks]
        done = self.done[np.ix_(*kept)].reshape([len(c) for c in chunks if np.ndim(c)])
        return np.where(done, values, values.dtype.type(self.array.fill_value))


def _masked(samples: xr.Dataset, group: Any, ledger: Ledger) -> xr.Dataset:
    """Samples with unfinished blocks missing; blocks count in C order of an output's chunks."""
    output = max(samples.data_vars, key=lambda name: samples[name].ndim)
    dims, grid = samples[output].dims, _grid(group[output])
    finished = np.zeros(grid, bool).reshape(-1, grid[-1])
    for segment in ledger.segments():
        for chunk, start, stop in segment.entries[:, :3]:
            if chunk < len(finished):
                finished[chunk, start:stop] = True
    finished = finished.reshape(grid)
    for name in samples.data_vars:
        mine = samples[name].dims
        # draws that cells share are written by the first of these cells
        picked = finished[tuple(slice(None) if d in mine else 0 for d in dims)]
        lazy = indexing.LazilyIndexedArray(_Finished(group[name], picked))
        samples[name] = (mine, lazy, samples[name].attrs)
    return samples


def _grid(array: zarr.Array) -> tuple[int, ...]:
    return tuple(-(-n // c) for n, c in zip(array.shape, array.chunks, strict=True))
