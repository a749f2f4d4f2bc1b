"""The arrays of `/` and `/histograms`, written a few cells at a time from their summaries."""

import dataclasses
import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from fabricarlo.derived import WEIGHT
from fabricarlo.index import Index
from fabricarlo.plan import Plan
from fabricarlo.summaries.bins import edges
from fabricarlo.summaries.estimate import Estimates, estimate
from fabricarlo.summaries.state import Part
from fabricarlo.template import MISSING, attributes, create, fill_of, write, write_axes
from fabricarlo.weighed import Weighed, weighed_estimates

SLAB = 256  # cells whose results are held at once
CHUNK = 2**19  # counts of a chunk of histograms
AS_DRAWN = ("min", "max", "count", "nonfinite")  # what weights do not change
FEW = 64  # summaries of cells kept between the two passes


@dataclasses.dataclass(frozen=True)
class Column:
    """One array of results: what it is, and its values for one cell."""

    name: str
    dims: tuple[str, ...]  # beyond the axes
    shape: tuple[int, ...]
    dtype: type
    attrs: dict[str, Any]
    value: Callable[[Part, Estimates], Any]


def slabs(
    shape: tuple[int, ...], room: int
) -> tuple[tuple[int, ...], Iterator[tuple[tuple[slice, ...], NDArray[np.int64]]]]:
    """Extents of boxes of at most `room` cells, and every box: its region and its cells."""
    extents: list[int] = []
    for size in reversed(shape):
        extents.insert(0, min(size, max(1, room)))
        room //= extents[0]

    def boxes() -> Iterator[tuple[tuple[slice, ...], NDArray[np.int64]]]:
        counts = [-(-n // e) for n, e in zip(shape, extents, strict=True)]
        for where in np.ndindex(*counts):
            region = tuple(
                slice(k * e, min((k + 1) * e, n))
                for k, e, n in zip(where, extents, shape, strict=True)
            )
            ranges = np.ix_(*(np.arange(s.start, s.stop) for s in region))
            cells = np.ravel_multi_index(ranges, shape).reshape(-1) if region else [0]
            yield region, np.asarray(cells, np.int64)

    return tuple(extents), boxes()


class Results:
    """Writes what is known of every cell; a cell that is not complete stays missing."""

    def __init__(self, root: zarr.Group, plan: Plan, index: Index) -> None:
        self.root, self.plan = root, plan
        self._part = lru_cache(maxsize=FEW)(index.part)
        self.numbers = [n for n in plan.outputs if not plan.known[n].flags]
        self.flags = [n for n in plan.outputs if plan.known[n].flags]
        self.axes = tuple(a.name for a in plan.axes)
        self.occupied = [np.zeros(0, np.int32) for _ in self.numbers]

    def write(self) -> None:
        """Everything, in two passes over the cells: the second knows which bins there are."""
        root, plan = self.root, self.plan
        write_axes(root, plan)
        quantiles = np.array(plan.sweep.keep.quantiles)
        attrs = {"units": "1", "long_name": "probability"}
        write(root, "quantile", quantiles, ("quantile",), attrs)
        ends, attrs = (
            np.array(["low", "high"]),
            {"units": "1", "long_name": "end of a 95 % interval"},
        )
        write(root, "bound", ends, ("bound",), attrs)
        for name in self.flags:
            codes = np.arange(len(plan.known[name].flags), dtype=np.int8)
            write(root, f"{name}_flag", codes, (f"{name}_flag",), attributes(plan.known[name]))
        group = root.create_group("histograms", overwrite=True)
        write_axes(group, plan)
        replicates = np.arange(plan.sweep.replicates, dtype=np.int32)
        attrs = {"units": "1", "long_name": "independent scramble of the points"}
        write(group, "replicate", replicates, ("replicate",), attrs)
        self._write_columns(group)
        if plan.sweep.tails:
            return  # counts of points that lie where they do not occur are no histogram
        for k, name in enumerate(self.numbers):
            self._write_bins(group, k, name)

    def part(self, cell: int) -> Part | None:
        """The summary of a complete cell. Raises Damaged."""
        found = self._part(cell)
        return found if found is not None and found.samples == self.plan.sweep.samples else None

    # ---- what has one value, or a fixed number of them, a cell

    def _write_columns(self, group: zarr.Group) -> None:
        extents, boxes = slabs(self.plan.shape, SLAB)
        columns = [(self.root, c) for c in self._columns()]
        kept = self._kept()
        columns += [(group, c) for k in range(len(self.numbers)) for c in self._extremes(k, kept)]
        arrays = [
            create(
                where, c.name, (*self.plan.shape, *c.shape), np.dtype(c.dtype),
                (*self.axes, *c.dims), c.attrs, (*extents, *c.shape),
            )
            for where, c in columns
        ]  # fmt: skip
        for region, cells in boxes:
            values = [
                np.full((len(cells), *c.shape), fill_of(np.dtype(c.dtype)), c.dtype)
                for _, c in columns
            ]
            for row, cell in enumerate(cells):
                if (part := self.part(int(cell))) is not None:
                    self._fill(row, part, self._estimates(int(cell), part), columns, values)
            size = tuple(s.stop - s.start for s in region)
            for array, found in zip(arrays, values, strict=True):
                array[region if region else ...] = found.reshape((*size, *found.shape[1:]))

    def _estimates(self, cell: int, part: Part) -> Estimates:
        """What a complete cell says; from its samples where they have weights."""
        sweep = self.plan.sweep
        if not sweep.tails:
            return estimate(part, sweep.keep.quantiles)

        def samples(name: str) -> NDArray[Any]:
            stored: Any = self.root[f"samples/{name}"]
            return np.asarray(stored[(*self.plan.where(cell), slice(None))])

        codes = {n: (samples(n), len(self.plan.known[n].flags)) for n in self.flags}
        numbers = [samples(n) for n in self.numbers]
        return weighed_estimates(
            numbers, codes, samples(WEIGHT), sweep.replicates, sweep.keep.quantiles
        )

    def _fill(
        self,
        row: int,
        part: Part,
        found: Estimates,
        columns: list[tuple[zarr.Group, Column]],
        values: list[Any],
    ) -> None:
        for (_, column), place in zip(columns, values, strict=True):
            place[row] = column.value(part, found)
        for k in range(len(self.numbers)):
            bins = self._rows(part, k)
            self.occupied[k] = np.unique(np.concatenate([self.occupied[k], *(b for b, _ in bins)]))

    def _rows(self, part: Part, k: int) -> list[tuple[NDArray[np.int32], NDArray[np.int64]]]:
        return [part.histogram.row(k * part.replicates + r) for r in range(part.replicates)]

    def _kept(self) -> int:
        """How many of the largest samples a summary keeps; the same for all cells."""
        for cell in range(self.plan.layout.cell_count):
            if (part := self._part(cell)) is not None:
                return part.top.values.shape[-1]
        return 0

    def _columns(self) -> Iterator[Column]:
        for k, name in enumerate(self.numbers):
            yield from self._number(k, name)
        for name in self.flags:
            yield from self._flag(name)

    def _number(self, k: int, name: str) -> Iterator[Column]:
        declared, quantiles = self.plan.known[name], len(self.plan.sweep.keep.quantiles)
        kinds = {
            "": ("quantile", ("quantile",), (quantiles,), "quantile over samples"),
            "_interval": (
                "quantile_interval", ("quantile", "bound"), (quantiles, 2),
                "95 % interval of the quantile",
            ),
            "_mean": ("mean", (), (), "mean over samples"),
            "_mean_interval": ("mean_interval", ("bound",), (2,), "95 % interval of the mean"),
            "_std": ("std", (), (), "standard deviation over samples"),
            "_min": ("min", (), (), "smallest sample"),
            "_max": ("max", (), (), "largest sample"),
            "_count": ("count", (), (), "finite samples"),
            "_nonfinite": ("nonfinite", (), (), "samples that are not finite"),
        }  # fmt: skip
        for suffix, (field, dims, shape, text) in kinds.items():
            counted = field in ("count", "nonfinite")
            attrs = {"units": "1"} if counted else attributes(declared)
            weighted = ", weighted" if self.plan.sweep.tails and field not in AS_DRAWN else ""
            attrs |= {"long_name": f"{declared.meaning}: {text}{weighted}"}

            def value(_: Part, found: Estimates, field: str = field) -> Any:
                return getattr(found, field)[k]

            kind = np.int64 if counted else np.float64
            yield Column(name + suffix, dims, shape, kind, attrs, value)

    def _flag(self, name: str) -> Iterator[Column]:
        declared = self.plan.known[name]

        def shares(part: Part, found: Estimates) -> Any:
            if isinstance(found, Weighed):
                return found.shares[name]
            counts = part.flags[name].sum(axis=0)
            return counts[:-1] / max(1, counts.sum())

        def invalid(part: Part, _: Estimates) -> Any:
            return part.flags[name][:, -1].sum()

        attrs = {"units": "1", "long_name": f"{declared.meaning}: share of samples"}
        codes = (len(declared.flags),)
        yield Column(f"{name}_share", (f"{name}_flag",), codes, np.float64, attrs, shares)
        attrs = {"units": "1", "long_name": f"{declared.meaning}: samples without a valid code"}
        yield Column(f"{name}_nonfinite", (), (), np.int64, attrs, invalid)

    def _extremes(self, k: int, kept: int) -> Iterator[Column]:
        name = self.numbers[k]
        declared, shape = self.plan.known[name], (self.plan.sweep.replicates, kept)
        dims = ("replicate", "rank")
        for end, pick in (("largest", "top"), ("smallest", "bottom")):

            def values(part: Part, _: Estimates, pick: str = pick) -> Any:
                return getattr(part, pick).values[k]

            def samples(part: Part, _: Estimates, pick: str = pick) -> Any:
                return getattr(part, pick).samples[k]

            text = f"{declared.meaning}: {end} samples, in order"
            attrs = attributes(declared) | {"long_name": text}
            yield Column(f"{name}_{end}", dims, shape, np.float32, attrs, values)
            text = f"{declared.meaning}: numbers of the {end} samples"
            attrs = {"units": "1", "long_name": text}
            yield Column(f"{name}_{end}_sample", dims, shape, np.int64, attrs, samples)

    # ---- histograms

    def _write_bins(self, group: zarr.Group, k: int, name: str) -> None:
        declared, dim, occupied = self.plan.known[name], f"{name}_bin", self.occupied[k]
        low, high = edges(occupied)
        for suffix, values in (("low", low), ("high", high)):
            text = f"{declared.meaning}: {suffix} edge of the bin"
            attrs = attributes(declared) | {"long_name": text}
            write(group, f"{dim}_{suffix}", np.asarray(values, np.float64), (dim,), attrs)
        inner = (self.plan.sweep.replicates, len(occupied))
        extents, boxes = slabs(self.plan.shape, max(1, CHUNK // max(1, math.prod(inner))))
        attrs = {"units": "1", "long_name": f"{declared.meaning}: samples in the bin"}
        array = create(
            group, f"{name}_counts", (*self.plan.shape, *inner), np.dtype(np.int64),
            (*self.axes, "replicate", dim), attrs, (*extents, *inner),
        )  # fmt: skip
        for region, cells in boxes:
            counts = np.full((len(cells), *inner), MISSING, np.int64)
            for row, cell in enumerate(cells):
                if (part := self.part(int(cell))) is not None:
                    counts[row] = 0
                    for r, (bins, number) in enumerate(self._rows(part, k)):
                        counts[row, r, np.searchsorted(occupied, bins)] = number
            size = tuple(s.stop - s.start for s in region)
            array[region if region else ...] = counts.reshape((*size, *inner))
