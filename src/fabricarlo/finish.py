"""From the ledger's summaries to the final arrays of `/` and `/histograms`."""

import json
import warnings
from typing import Any

import numpy as np
import zarr
from zarr.abc.store import Store

from fabricarlo.ledger import Ledger, Segment, Written
from fabricarlo.plan import Plan
from fabricarlo.store import SweepStore
from fabricarlo.summaries.bins import edges
from fabricarlo.summaries.estimate import Estimates, estimate
from fabricarlo.summaries.state import Part, merge
from fabricarlo.template import MISSING, attributes, write, write_axes

MANIFEST = "_run/finished.json"
Parts = dict[int, list[Part]]


def merged_parts(ledger: Ledger, plan: Plan) -> tuple[dict[int, Written], Parts]:
    """Finished blocks, and the summaries of exactly these by cell; every block counts once."""
    done: dict[int, Written] = {}
    parts: Parts = {}
    segments = sorted(ledger.segments(), key=lambda pair: (-len(pair[1].blocks), pair[0]))
    for _, segment in segments:
        # a block that was the short end of a shorter run is computed again in a longer one
        blocks = {n: b for b in segment.blocks if (n := _number(plan, b)) is not None}
        if blocks.keys() & done.keys():
            continue  # an overlap: what this segment has beyond it is computed again
        done |= blocks
        for (cell, short), part in segment.parts.items():
            if short in (0, plan.layout.samples):
                parts.setdefault(cell, []).append(part)
    return done, parts


def _number(plan: Plan, written: Written) -> int | None:
    """The block's number in this plan; None for one that is not whole here."""
    number = plan.layout.number(written.chunk, written.part)
    return number if number >= 0 and plan.layout.at(number).stop == written.stop else None


def finish(store: SweepStore, plan: Plan, parts: Parts, *, force: bool) -> bool:
    """Write the final arrays; False when they were there already, whole.

    A run that dies in here leaves the state "running", and the next one does it again.
    """
    root = zarr.open_group(store.target, mode="r+", use_consolidated=False)
    if not force and root.attrs.get("state") == "finished" and _is_whole(store):
        return False
    store.forget_consolidated(("", "samples/", "histograms/"))
    root = zarr.open_group(
        store.target, mode="r+", use_consolidated=False
    )  # anew: the old one remembers what it read
    cells = {cell: merge(found) for cell, found in parts.items()}
    _write_root(root, plan, cells)
    _write_histograms(root, plan, cells)
    _compact(store, plan)
    root.update_attributes({"state": "finished"})
    for group in ("samples", "histograms", ""):
        if not group or group in root:
            _consolidate(store.target, group)
    _write_manifest(store)
    return True


def not_finite(plan: Plan, parts: Parts) -> list[str]:
    """One line for every output with samples that are not finite, or flags without a meaning."""
    numbers = [n for n in plan.sweep.outputs if not plan.known[n].flags]
    found = dict.fromkeys(plan.sweep.outputs, 0)
    for part in (part for several in parts.values() for part in several):
        for name, count in zip(numbers, part.nonfinite.sum(axis=1), strict=True):
            found[name] += int(count)
        for name, counts in part.flags.items():
            found[name] += int(counts[:, -1].sum())
    total = plan.layout.cell_count * plan.layout.samples
    return [
        f"{name}: {count:,} of {total:,} samples are not finite: see {name}_nonfinite"
        for name, count in found.items()
        if count
    ]


def _consolidate(target: Store, group: str) -> None:
    """One metadata object a group, for readers far away; zarr warns that its v3 form may change."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zarr.consolidate_metadata(target, path=group or None)


def _is_whole(store: SweepStore) -> bool:
    """Whether every object written at the finish is there with its size."""
    data = store.objects.get(MANIFEST)
    if data is None:
        return False
    try:
        sizes = json.loads(data)
    except ValueError:
        return False  # damaged: written again
    return store.objects.sizes(list(sizes)) == list(sizes.values())


def _write_manifest(store: SweepStore) -> None:
    keys = [k for k in store.objects.keys("") if not k.startswith(("_run/", "samples/"))]
    sizes = dict(zip(keys, store.objects.sizes(keys), strict=True))
    store.objects.put(MANIFEST, json.dumps(sizes).encode())


def _compact(store: SweepStore, plan: Plan) -> None:
    """One segment instead of many, per process checkpoint."""
    segments = list(store.ledger.segments())
    if len(segments) < 2:
        return
    done, _ = merged_parts(store.ledger, plan)
    groups: dict[tuple[int, int], list[Part]] = {}
    counted: set[int] = set()
    for _, segment in sorted(segments, key=lambda pair: (-len(pair[1].blocks), pair[0])):
        numbers = {n for b in segment.blocks if (n := _number(plan, b)) is not None}
        if numbers & counted or len(numbers) < len(segment.blocks):
            return  # overlaps or short ends: left as they are, which is right but not compact
        counted |= numbers
        for key, part in segment.parts.items():
            groups.setdefault(key, []).append(part)
    merged = Segment(tuple(done[n] for n in sorted(done)), {k: merge(p) for k, p in groups.items()})
    store.ledger.compact(segments, merged)


# ---- the arrays of the root


def _write_root(root: zarr.Group, plan: Plan, cells: dict[int, Part]) -> None:
    quantiles = np.array(plan.sweep.keep.quantiles)
    write_axes(root, plan)
    write(root, "quantile", quantiles, ("quantile",), {"units": "1", "long_name": "probability"})
    ends = np.array(["low", "high"])
    write(root, "bound", ends, ("bound",), {"units": "1", "long_name": "end of a 95 % interval"})
    estimates = {cell: estimate(part, plan.sweep.keep.quantiles) for cell, part in cells.items()}
    numbers = [n for n in plan.sweep.outputs if not plan.known[n].flags]
    for k, name in enumerate(numbers):
        _write_output(root, plan, name, k, estimates)
    for name in plan.sweep.outputs:
        if plan.known[name].flags:
            _write_flag(root, plan, name, cells)


def _grid(plan: Plan, values: dict[int, Any]) -> np.ndarray:
    """[axes..., ...] of one value a cell."""
    stacked = np.stack([values[c] for c in range(plan.layout.cell_count)])
    return stacked.reshape((*plan.shape, *stacked.shape[1:]))


def _write_output(
    root: zarr.Group, plan: Plan, name: str, k: int, estimates: dict[int, Estimates]
) -> None:
    declared, axes = plan.known[name], tuple(a.name for a in plan.axes)
    kinds = {
        "": ("quantile", ("quantile",), "quantile over samples"),
        "_interval": (
            "quantile_interval", ("quantile", "bound"), "95 % interval of the quantile"
        ),
        "_mean": ("mean", (), "mean over samples"),
        "_mean_interval": ("mean_interval", ("bound",), "95 % interval of the mean"),
        "_std": ("std", (), "standard deviation over samples"),
        "_min": ("min", (), "smallest sample"),
        "_max": ("max", (), "largest sample"),
    }  # fmt: skip
    for suffix, (field, dims, text) in kinds.items():
        values = {c: getattr(e, field)[k] for c, e in estimates.items()}
        attrs = attributes(declared) | {"long_name": f"{declared.meaning}: {text}"}
        write(root, name + suffix, _grid(plan, values), (*axes, *dims), attrs)
    for field, text in (("count", "finite samples"), ("nonfinite", "samples that are not finite")):
        values = {c: getattr(e, field)[k] for c, e in estimates.items()}
        attrs = {"units": "1", "long_name": f"{declared.meaning}: {text}"}
        write(root, f"{name}_{field}", _grid(plan, values), axes, attrs)


def _write_flag(root: zarr.Group, plan: Plan, name: str, cells: dict[int, Part]) -> None:
    declared, axes = plan.known[name], tuple(a.name for a in plan.axes)
    flag = f"{name}_flag"
    codes = np.arange(len(declared.flags), dtype=np.int8)
    write(root, flag, codes, (flag,), attributes(declared))
    counts = {c: part.flags[name].sum(axis=0) for c, part in cells.items()}
    attrs = {"units": "1", "long_name": f"{declared.meaning}: share of samples"}
    shares = {c: (n[:-1] / max(1, n.sum())).astype(np.float64) for c, n in counts.items()}
    write(root, f"{name}_share", _grid(plan, shares), (*axes, flag), attrs)
    attrs = {"units": "1", "long_name": f"{declared.meaning}: samples without a valid code"}
    bad = {c: np.int64(n[-1]) for c, n in counts.items()}
    write(root, f"{name}_nonfinite", _grid(plan, bad), axes, attrs)


# ---- histograms


def _write_histograms(root: zarr.Group, plan: Plan, cells: dict[int, Part]) -> None:
    """Counts per occupied bin, and the largest and smallest samples, per replicate."""
    group = root.create_group("histograms", overwrite=True)
    write_axes(group, plan)
    replicates = np.arange(plan.sweep.replicates)
    attrs = {"units": "1", "long_name": "independent scramble of the points"}
    write(group, "replicate", replicates.astype(np.int32), ("replicate",), attrs)
    numbers = [n for n in plan.sweep.outputs if not plan.known[n].flags]
    for k, name in enumerate(numbers):
        _write_histogram(group, plan, name, k, cells)
        _write_extremes(group, plan, name, k, cells)


def _write_histogram(
    group: zarr.Group, plan: Plan, name: str, k: int, cells: dict[int, Part]
) -> None:
    declared, axes = plan.known[name], tuple(a.name for a in plan.axes)
    rows = {
        c: [p.histogram.row(k * p.replicates + r) for r in range(p.replicates)]
        for c, p in cells.items()
    }
    found = [bins for cell in rows.values() for bins, _ in cell]
    occupied = np.unique(np.concatenate(found)) if found else np.zeros(0, np.int32)
    low, high = edges(occupied)
    dim = f"{name}_bin"
    for suffix, values in (("low", low), ("high", high)):
        attrs = attributes(declared)
        attrs["long_name"] = f"{declared.meaning}: {suffix} edge of the bin"
        write(group, f"{dim}_{suffix}", np.asarray(values, np.float64), (dim,), attrs)
    attrs: dict[str, Any] = {
        "units": "1",
        "long_name": f"{declared.meaning}: samples in the bin",
        "_FillValue": MISSING,
    }
    shape = (*plan.shape, plan.sweep.replicates, len(occupied))
    chunks = (*(1 for _ in plan.shape), plan.sweep.replicates, max(1, len(occupied)))
    array = group.create_array(
        f"{name}_counts", shape=shape, chunks=chunks, dtype="int64", fill_value=MISSING,
        dimension_names=(*axes, "replicate", dim), attributes=attrs,
    )  # fmt: skip
    for cell, found in rows.items():
        counts = np.zeros((len(found), len(occupied)), np.int64)
        for r, (bins, number) in enumerate(found):
            counts[r, np.searchsorted(occupied, bins)] = number
        array[(*plan.where(cell), slice(None), slice(None))] = counts


def _write_extremes(
    group: zarr.Group, plan: Plan, name: str, k: int, cells: dict[int, Part]
) -> None:
    declared, axes = plan.known[name], tuple(a.name for a in plan.axes)
    dims = (*axes, "replicate", "rank")
    for end, pick in (("largest", "top"), ("smallest", "bottom")):
        kept = {c: getattr(p, pick) for c, p in cells.items()}
        attrs = attributes(declared)
        attrs["long_name"] = f"{declared.meaning}: {end} samples, in order"
        write(
            group,
            f"{name}_{end}",
            _grid(plan, {c: e.values[k] for c, e in kept.items()}),
            dims,
            attrs,
        )
        attrs = {"units": "1", "long_name": f"{declared.meaning}: numbers of the {end} samples"}
        numbers = _grid(plan, {c: e.samples[k] for c, e in kept.items()})
        write(group, f"{name}_{end}_sample", numbers, dims, attrs)
