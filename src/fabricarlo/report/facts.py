"""What a page is made from: the groups of a store, its cells and outputs, ready to be asked."""

import dataclasses
import itertools
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from fabricarlo.analysis import (
    draws_of,
    independent_replicates,
    outputs_of,
    parts_of,
    results_of,
    samples_of,
)
from fabricarlo.errors import StoreError
from fabricarlo.units import UNITS, readable

MAIN = "step_time"
PREFIX = 2**16
"""Samples that questions about single samples look at: a prefix of Sobol' points is one too."""
MORE_IS_BETTER = ("bandwidth", "clock_fraction", "efficiency", "per_joule", "per_second")
MORE_IS_BETTER += ("utilisation",)
LESS_IS_BETTER = ("B", "J", "K", "W", "degC", "s")


@dataclasses.dataclass(frozen=True)
class Scale:
    """How an output is written for people: its values times `factor`, in `symbol`."""

    factor: float
    symbol: str


@dataclasses.dataclass(frozen=True)
class Facts:
    """One store. Under `design: sensitivity` everything but the indices is of matrix A."""

    name: str
    results: xr.Dataset
    histograms: xr.Dataset | None
    samples: xr.Dataset | None
    design: xr.Dataset | None  # the samples with all matrices, if there is a design

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes of the store."""
        return {str(k): v for k, v in self.results.attrs.items()}

    @cached_property
    def numbers(self) -> list[str]:
        """Outputs that are numbers, as far as they were summarised."""
        return [n for n in outputs_of(self.results) if f"{n}_mean" in self.results]

    @cached_property
    def flags(self) -> list[str]:
        """Outputs that are flags."""
        return [n for n in outputs_of(self.results) if f"{n}_share" in self.results]

    @cached_property
    def main(self) -> str:
        """The output that the answer is about: the step time, or the first that was asked for."""
        return MAIN if MAIN in self.numbers else self.numbers[0]

    @cached_property
    def axes(self) -> list[str]:
        """Axes of the sweep."""
        return [str(d) for d in self.results[f"{self.main}_mean"].dims]

    @cached_property
    def labels(self) -> dict[str, list[str]]:
        """The labels of every axis, as text."""
        return {axis: [_label(self.results[axis], k) for k in range(n)] for axis, n in self.shape}

    @property
    def shape(self) -> list[tuple[str, int]]:
        """Axes and their lengths."""
        return [(axis, self.results.sizes[axis]) for axis in self.axes]

    @cached_property
    def cells(self) -> list[tuple[int, ...]]:
        """Positions of every cell, in C order."""
        return list(itertools.product(*(range(n) for _, n in self.shape)))

    def cell_name(self, cell: int) -> str:
        """The labels of a cell in one text."""
        where = zip(self.axes, self.cells[cell], strict=True)
        return " · ".join(self.labels[axis][k] for axis, k in where) or "the only cell"

    @cached_property
    def quantiles(self) -> list[float]:
        """Probabilities of the kept quantiles."""
        return [float(q) for q in self.results["quantile"].values]

    @property
    def levels(self) -> list[str]:
        """Names of the kept quantiles: p99.9."""
        return [f"p{100 * q:g}" for q in self.quantiles]

    def nearest(self, probability: float) -> int:
        """Position of the kept quantile nearest to a probability."""
        return int(np.argmin([abs(q - probability) for q in self.quantiles]))

    def flat(self, name: str) -> np.ndarray:
        """A result with its cells in C order on the first axis."""
        values = self.results[name].transpose(*self.axes, ...).values
        return np.asarray(values, np.float64).reshape(
            (len(self.cells), *values.shape[self.depth :])
        )

    @property
    def depth(self) -> int:
        """Number of axes."""
        return len(self.axes)

    @cached_property
    def replicates(self) -> int:
        """How samples may be counted."""
        return independent_replicates(self.results)

    @cached_property
    def draws(self) -> list[str]:
        """Random quantities with kept samples."""
        return [] if self.samples is None else draws_of(self.results, self.samples)

    @cached_property
    def parts(self) -> list[str]:
        """Parts of the step time that were asked for."""
        return parts_of(self.numbers) if MAIN in self.numbers else []

    def scale(self, name: str) -> Scale:
        """The unit in which an output is shown."""
        unit = str(self.results[f"{name}_mean"].attrs.get("units", "1"))
        means = np.abs(self.flat(f"{name}_mean"))
        usual = float(np.nanmedian(means)) if np.isfinite(means).any() else 0.0
        if unit == "1":
            return Scale(1.0, "")
        symbol = readable(usual, unit).partition(" ")[2]
        factor = 1 / float(UNITS[symbol].factor) if symbol in UNITS else 1.0
        return Scale(factor, symbol)

    def meaning(self, name: str) -> str:
        """What an output is."""
        key = f"{name}_mean" if name in self.numbers else f"{name}_share"
        return str(self.results[key].attrs.get("long_name", name)).rpartition(":")[0] or name

    def better(self, name: str) -> int:
        """+1 where more is better, -1 where less is, 0 where one cannot say."""
        if any(word in name for word in MORE_IS_BETTER):
            return 1
        unit = self.results[f"{name}_mean"].attrs.get("units")
        return -1 if unit in LESS_IS_BETTER or name == "pue" else 0


def facts_of(tree: xr.DataTree, name: str) -> Facts:
    """What a store holds. Raises StoreError where there is nothing to report."""
    results = results_of(tree)
    if not any(f"{n}_mean" in results for n in outputs_of(results)):
        raise StoreError(f"{name} has flags only: ask for an output that is a number.")
    weighted = bool(results.attrs.get("tail"))
    histograms = tree["histograms"].to_dataset() if "histograms" in tree.children else None
    if histograms is not None and not any(str(n).endswith("_counts") for n in histograms):
        histograms = None
    samples = samples_of(tree) if "samples" in tree.children and not weighted else None
    if samples is not None:
        samples = samples.isel(sample=slice(0, PREFIX))
    design = samples if samples is not None and "design" in results.dims else None
    pick = {"design": 0} if "design" in results.dims else {}
    groups = [None if g is None else g.isel(pick, missing_dims="ignore", drop=True)
              for g in (results, histograms, samples)]  # fmt: skip
    assert groups[0] is not None
    return Facts(name, groups[0].load(), groups[1], groups[2], design)


def _label(axis: xr.DataArray, k: int) -> str:
    value = axis.values[k]
    if axis.dtype.kind not in "fiu":
        return str(value)
    if axis.attrs.get("units", "1") == "1" and float(value) == round(float(value)):
        return f"{int(value):,}"
    return readable(float(value), str(axis.attrs.get("units", "1")))
