"""The numbers of a page: flat tables that charts read, with indices instead of repeated names."""

import dataclasses
from typing import Any

import numpy as np
import xarray as xr

from fabricarlo.analysis import (
    attribution,
    first_order_indices,
    histogram_quantiles,
    replicate_quantiles,
    sobol_indices,
)
from fabricarlo.analysis.replicates import t_interval
from fabricarlo.report.facts import MAIN, Facts

BUDGET = 30_000
"""Rows of one table: a page stays under 5 MB whatever the store."""
CALLS = 1200
"""First-order indices that are computed, of one draw in one cell each."""
_ENDS = (1e-4, 1e-3, 0.003, 0.01, 0.02, 0.05)
_MIDDLE = tuple(round(0.05 * k, 2) for k in range(2, 19))
LEVELS = (*_ENDS, *_MIDDLE, *(round(1 - p, 4) for p in reversed(_ENDS)))
"""Probabilities along a curve of exceedance."""
BINS = 40
KEY_QUANTILES = (0.5, 0.99)


@dataclasses.dataclass(frozen=True)
class Table:
    """Named columns, and rows of numbers and texts."""

    columns: tuple[str, ...]
    rows: list[list[Any]]

    def as_json(self) -> dict[str, Any]:
        """The table for the page; what is not finite is null."""
        rows = [[_plain(v) for v in row] for row in self.rows]
        return {"columns": list(self.columns), "rows": rows}


def _plain(value: Any) -> Any:
    if isinstance(value, float | np.floating):
        return float(f"{value:.5g}") if np.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value


def tables(facts: Facts) -> dict[str, Table]:
    """Every table that the store can fill; what it cannot has no rows."""
    made = {
        "summary": summary(facts),
        "curves": curves(facts),
        "densities": densities(facts),
        "parts": parts(facts),
        "differences": differences(facts),
        "indices": indices(facts),
        "shares": shares(facts),
        "samples": samples(facts),
    }
    return {name: table for name, table in made.items() if table.rows}


def key_of(level: str) -> str:
    """The column of a quantile: p99_9, for a dot in a name means a part to charts."""
    return level.replace(".", "_")


def summary(facts: Facts) -> Table:
    """A row per output and cell: mean, quantiles and the ends of their intervals."""
    ends = [f"{key_of(p)}{end}" for p in facts.levels for end in ("", "_low", "_high")]
    rows: list[list[Any]] = []
    for o, name in enumerate(facts.numbers):
        factor = facts.scale(name).factor
        mean, spread = facts.flat(f"{name}_mean"), facts.flat(f"{name}_mean_interval")
        middle, interval = facts.flat(name), facts.flat(f"{name}_interval")
        bad = facts.flat(f"{name}_nonfinite")
        for c in range(len(facts.cells)):
            three = np.concatenate([middle[c][:, None], interval[c]], axis=1).ravel()
            numbers = np.concatenate([[mean[c]], spread[c], three]) * factor
            rows.append([o, c, *numbers, int(bad[c])])
    return Table(("o", "c", "mean", "mean_low", "mean_high", *ends, "nonfinite"), rows)


def _within_budget(facts: Facts, each: int) -> list[tuple[int, str]]:
    """The outputs for which there is room, the main one first."""
    order = sorted(enumerate(facts.numbers), key=lambda found: found[1] != facts.main)
    room = max(1, BUDGET // max(1, each * len(facts.cells)))
    return order[:room] if each * len(facts.cells) <= 4 * BUDGET else []


def _stacked(array: xr.DataArray, facts: Facts) -> np.ndarray:
    values = array.transpose(*facts.axes, ...).values
    return values.reshape((len(facts.cells), *values.shape[facts.depth :]))


def curves(facts: Facts) -> Table:
    """Points (value, share of samples above it) of every cell, from the histograms."""
    rows: list[list[Any]] = []
    if facts.histograms is not None:
        for o, name in _within_budget(facts, len(LEVELS)):
            found = histogram_quantiles(facts.histograms, name, LEVELS).estimate
            values = _stacked(found, facts) * facts.scale(name).factor
            for c, row in enumerate(values):
                rows += [[o, c, v, 1 - p] for v, p in zip(row, LEVELS, strict=True)]
    return Table(("o", "c", "value", "above"), rows)


def densities(facts: Facts) -> Table:
    """Share of samples in each of some equal bins, of every cell; 0.1 % at each end is left out."""
    rows: list[list[Any]] = []
    if facts.histograms is None:
        return Table(("o", "c", "value", "share"), rows)
    for o, name in _within_budget(facts, BINS):
        ends = histogram_quantiles(facts.histograms, name, (1e-3, 1 - 1e-3)).estimate
        low, high = float(ends.min()), float(ends.max())
        if not np.isfinite(low + high) or high <= low:
            continue
        counts = facts.histograms[f"{name}_counts"].sum("replicate")
        middle = (facts.histograms[f"{name}_bin_low"] + facts.histograms[f"{name}_bin_high"]) / 2
        edges = np.linspace(low, high, BINS + 1)
        factor = facts.scale(name).factor
        for c, row in enumerate(_stacked(counts, facts)):
            share = np.histogram(middle.values, edges, weights=row)[0] / max(1, row.sum())
            centres = (edges[1:] + edges[:-1]) / 2 * factor
            rows += [[o, c, v, s] for v, s in zip(centres, share, strict=True)]
    return Table(("o", "c", "value", "share"), rows)


def parts(facts: Facts) -> Table:
    """Parts of the step time per cell: of its mean, and of quantiles where samples are kept."""
    rows: list[list[Any]] = []
    if not facts.parts:
        return Table(("c", "of", "part", "order", "value", "share"), rows)
    factor = facts.scale(MAIN).factor
    means = np.stack([facts.flat(f"{n}_mean") for n in facts.parts])
    short = [n.removeprefix(f"{MAIN}_") for n in facts.parts]
    for c in range(len(facts.cells)):
        for k, part in enumerate(short):
            value = means[k, c]
            rows.append([c, "mean", part, k, value * factor, value / means[:, c].sum()])
    if facts.samples is None or MAIN not in facts.samples:
        return Table(("c", "of", "part", "order", "value", "share"), rows)
    found = attribution(facts.samples, KEY_QUANTILES, replicates=facts.replicates)
    value, share = (_stacked(found[n], facts) for n in ("value", "share"))
    for c in range(len(facts.cells)):
        for q, p in enumerate(KEY_QUANTILES):
            for k, part in enumerate(short):
                row = [c, f"p{100 * p:g}", part, k, value[c, q, k] * factor, share[c, q, k]]
                rows.append(row)
    return Table(("c", "of", "part", "order", "value", "share"), rows)


def differences(facts: Facts) -> Table:
    """Shift of quantiles from the first label of each axis to each other, all else equal.

    Replicate by replicate, since cells share their scrambles.
    """
    columns = ("o", "axis", "label", "c", "of", "shift", "low", "high", "relative")
    rows: list[list[Any]] = []
    if facts.histograms is None:
        return Table(columns, rows)
    several = [(a, axis) for a, (axis, n) in enumerate(facts.shape) if n > 1]
    for o, name in _within_budget(facts, len(KEY_QUANTILES) * max(1, len(several))):
        own = _stacked(replicate_quantiles(facts.histograms, name, KEY_QUANTILES), facts)
        own = own.reshape((*(n for _, n in facts.shape), *own.shape[1:]))
        whole = histogram_quantiles(facts.histograms, name, KEY_QUANTILES).estimate
        whole = whole.transpose(*facts.axes, ...).values
        factor = facts.scale(name).factor
        cell = np.arange(len(facts.cells)).reshape(whole.shape[:-1])
        for a, _ in several:
            rows += _shifts(o, a, (own, whole, cell), factor)
    return Table(columns, rows)


def _shifts(
    o: int, a: int, arrays: tuple[np.ndarray, np.ndarray, np.ndarray], factor: float
) -> list[list[Any]]:
    own, whole, cell = (np.moveaxis(x, a, 0) for x in arrays)
    rows: list[list[Any]] = []
    for label in range(1, len(cell)):
        low, high = t_interval(own[label] - own[0], 0.95)
        shift = whole[label] - whole[0]
        for where in np.ndindex(cell.shape[1:]):
            for q, p in enumerate(KEY_QUANTILES):
                at = (*where, q)
                base = whole[(0, *at)]
                relative = shift[at] / abs(base) if base else np.nan
                ends = [x[at] * factor for x in (shift, low, high)]
                first = int(cell[(label, *where)])
                rows.append([o, a, label, first, f"p{100 * p:g}", *ends, relative])
    return rows


def indices(facts: Facts) -> Table:
    """Sobol' indices of what is drawn: by the design, or of first order from the samples."""
    columns = ("o", "c", "draw", "kind", "index", "low", "high")
    rows: list[list[Any]] = []
    if facts.samples is None or not facts.draws:
        return Table(columns, rows)
    order = sorted(enumerate(facts.numbers), key=lambda found: found[1] != facts.main)
    room = CALLS // (len(facts.draws) * len(facts.cells))
    for o, name in order[: max(1, room)] if len(facts.cells) <= CALLS else []:
        for kind, found in _indices(facts, name).items():
            arrays = [_stacked(found[n], facts) for n in ("index", "low", "high")]
            for c in range(len(facts.cells)):
                for k, draw in enumerate(found["parameter"].values):
                    rows.append([o, c, str(draw), kind, *(float(x[c, k]) for x in arrays)])
    return Table(columns, rows)


def _indices(facts: Facts, name: str) -> dict[str, xr.Dataset]:
    """Per kind a dataset of index, low and high over cells and draws."""
    if facts.design is not None:
        found = sobol_indices(facts.design[name], replicates=facts.replicates)
        kinds = ("first_order", "total")
    else:
        assert facts.samples is not None
        if facts.samples.sizes["sample"] < 512:
            return {}
        given = facts.samples[facts.draws]
        found = first_order_indices(facts.samples[name], given, replicates=facts.replicates)
        kinds = ("first_order",)
    return {
        kind.replace("_", " "): xr.Dataset(
            {"index": found[kind], "low": found[f"{kind}_low"], "high": found[f"{kind}_high"]}
        )
        for kind in kinds
    }


def shares(facts: Facts) -> Table:
    """Share of samples with every value of every flag."""
    rows: list[list[Any]] = []
    for name in facts.flags:
        meanings = str(facts.results[f"{name}_flag"].attrs["flag_meanings"]).split()
        found = facts.flat(f"{name}_share")
        seen = [k for k in range(len(meanings)) if found[:, k].max() > 0]
        for c in range(len(facts.cells)):
            rows += [[c, name, meanings[k], found[c, k]] for k in seen]
    return Table(("c", "flag", "value", "share"), rows)


FEW = 10


def samples(facts: Facts) -> Table:
    """Some samples: the first of every cell, and those with the largest main output."""
    if facts.samples is None or len(facts.cells) > 100:
        return Table((), [])
    names = [*facts.numbers, *facts.draws]
    kept = facts.samples
    step = int(kept[facts.main].attrs.get("every", 1))
    arrays = {n: kept[n].broadcast_like(kept[facts.main]) for n in names}
    main = _stacked(arrays[facts.main], facts)
    rows: list[list[Any]] = []
    order = np.argsort(np.where(np.isfinite(main), -main, np.inf), axis=1)[:, :FEW]
    flat = {n: _stacked(a, facts) for n, a in arrays.items()}
    for c in range(len(facts.cells)):
        first = [("first", i) for i in range(min(FEW, main.shape[1]))]
        for which, i in (*first, *(("largest", int(i)) for i in order[c])):
            rows.append([c, which, i * step, *(float(flat[n][c, i]) for n in names)])
    return Table(("c", "which", "sample", *names), rows)
