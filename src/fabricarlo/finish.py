"""Closing a store: final arrays from the ledger's summaries, and a record of what was written."""

import itertools
import json
import warnings
from collections.abc import Iterator
from typing import Any

import google_crc32c
import numpy as np
import zarr
from zarr.abc.store import Store

from fabricarlo.compaction import LARGE
from fabricarlo.index import Index
from fabricarlo.objects import Objects
from fabricarlo.plan import Plan
from fabricarlo.results import Results
from fabricarlo.store import SweepStore

MANIFEST = "_run/finished.json"
FINISHED, INCOMPLETE = "finished", "finished with failed blocks"
_BATCH = 64


def is_finished(store: SweepStore) -> bool:
    """Whether the final arrays are there, whole."""
    return _open(store).attrs.get("state") == FINISHED and _is_whole(store)


def finish(store: SweepStore, plan: Plan, index: Index, *, process: str, state: str) -> None:
    """Write the final arrays; cells that are not complete stay missing. Raises Damaged.

    A run that dies in here leaves the state "running", and the next one does it again.
    """
    store.forget_consolidated(("", "samples/", "histograms/"))
    # opened anew: a group remembers what it has read
    Results(_open(store), plan, index).write()
    if state == FINISHED:
        _compact(store, index, process)
    root = _open(store)
    root.update_attributes({"state": state})
    for group in ("samples", "histograms", ""):
        if not group or group in root:
            _consolidate(store.target, group)
    _write_manifest(store)


def _open(store: SweepStore) -> zarr.Group:
    return zarr.open_group(store.target, mode="r+", use_consolidated=False)


def not_finite(store: SweepStore, plan: Plan) -> list[str]:
    """One line for every output with samples that are not finite, or flags without a meaning."""
    root, lines = _open(store), []
    total = plan.layout.cell_count * plan.layout.samples
    for name in plan.outputs:
        stored: Any = root[f"{name}_nonfinite"]
        counts = np.asarray(stored[...])
        if count := int(counts[counts > 0].sum()):
            text = f"{count:,} of {total:,} samples are not finite: see {name}_nonfinite"
            lines.append(f"{name}: {text}")
    return lines


def _consolidate(target: Store, group: str) -> None:
    """One metadata object a group, for readers far away; zarr warns that its v3 form may change."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zarr.consolidate_metadata(target, path=group or None)


def _compact(store: SweepStore, index: Index, process: str) -> None:
    """Few segments instead of many, one a process and checkpoint."""
    small = {s.key for s in index.segments if s.record.size < LARGE}
    if len(small) > 1:
        rows = [row for row in index.rows() if row[0].key in small]
        store.ledger.replace(process, rows, sorted(small))


# ---- what was written at the finish


def _is_whole(store: SweepStore) -> bool:
    """Whether every object written at the finish is there with its size."""
    manifest = read_manifest(store.objects)
    if manifest is None:
        return False
    sizes = [size for size, _ in manifest.values()]
    return store.objects.sizes(list(manifest)) == sizes


def read_manifest(objects: Objects) -> dict[str, tuple[int | None, int]] | None:
    """Size and CRC-32C of every final object; None where there is no readable list."""
    data = objects.get(MANIFEST)
    try:
        found = json.loads(data) if data else None
        return None if found is None else {k: (size, crc) for k, (size, crc) in found.items()}
    except (ValueError, TypeError, AttributeError):
        return None


def _write_manifest(store: SweepStore) -> None:
    manifest, keys = {}, list(_final_keys(store))
    for first in range(0, len(keys), _BATCH):
        some = keys[first : first + _BATCH]
        for key, data in zip(some, store.objects.get_all(some), strict=True):
            size = None if data is None else len(data)
            manifest[key] = (size, google_crc32c.value(data or b""))
    store.objects.put(MANIFEST, json.dumps(manifest).encode())


def _final_keys(store: SweepStore) -> Iterator[str]:
    """Keys of every group's and array's metadata, and of every chunk that is no sample."""
    root = _open(store)
    yield "zarr.json"
    for group in ("", "samples/", "histograms/"):
        if group and group.rstrip("/") not in root:
            continue
        found: Any = root[group.rstrip("/")] if group else root
        if group:
            yield f"{group}zarr.json"
        for name, array in found.arrays():
            yield f"{group}{name}/zarr.json"
            if (array.metadata.dimension_names or ())[-1:] == ("sample",):
                continue  # the ledger has the checksums of samples
            counts = [-(-n // c) for n, c in zip(array.shape, array.chunks, strict=True)]
            for where in itertools.product(*map(range, counts)):
                yield "/".join([f"{group}{name}/c", *map(str, where)])
