"""Quantiles and exceedance from the histograms of a store: no samples are needed."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from fabricarlo.analysis.checks import need_confidence, need_names, probabilities_of
from fabricarlo.analysis.labelled import as_triple, described, row_wise
from fabricarlo.analysis.replicates import Floats, t_interval
from fabricarlo.analysis.tails import share_interval


def histogram_quantiles(
    histograms: xr.Dataset,
    name: str,
    probabilities: float | Sequence[float],
    *,
    confidence: float = 0.95,
) -> xr.Dataset:
    """Any quantile from a store's histograms: `estimate`, `low`, `high` along `quantile`.

    The rule of the store itself: median-unbiased, exact among the 64 smallest and largest samples
    of a replicate, else linear in a bin, so at most 2^-11 of its value away. The interval is the t
    interval over replicates, NaN for a single one.
    """
    need_confidence(confidence)
    asked, arrays = probabilities_of(probabilities), _histogram(histograms, name)

    def kernel(*rows: NDArray) -> Floats:
        return _over_cells(_Quantiles(asked, confidence), *rows)

    added = {"part_of_triple": 3, "quantile": len(asked)}
    found = row_wise(kernel, arrays, _core(name), added)
    attrs = {"units": "1", "long_name": "probability"}
    found = found.assign_coords(quantile=("quantile", asked, attrs))
    return as_triple(found, _meaning(histograms, name), "quantile over samples", confidence)


def replicate_quantiles(
    histograms: xr.Dataset, name: str, probabilities: float | Sequence[float]
) -> xr.DataArray:
    """The quantiles of every replicate, along `quantile` and `replicate`.

    Cells of one sweep, and sweeps of one seed, share their scrambles: the differences of these
    quantiles, replicate by replicate, are independent draws of a difference.
    """
    asked, arrays = probabilities_of(probabilities), _histogram(histograms, name)

    def kernel(*rows: NDArray) -> Floats:
        return _over_cells(_Own(asked), *rows)

    added = {"quantile": len(asked), "replicate": histograms.sizes["replicate"]}
    core = [["given" if d == "replicate" else d for d in dims] for dims in _core(name)]
    given = [a.rename(replicate="given") if "replicate" in a.dims else a for a in arrays]
    found = row_wise(kernel, given, core, added)
    found = found.assign_coords(quantile=asked)
    found.attrs = described(_meaning(histograms, name), "quantile over samples of a replicate")
    return found.rename(name)


def histogram_exceedance(
    histograms: xr.Dataset,
    name: str,
    thresholds: float | Sequence[float],
    *,
    confidence: float = 0.95,
) -> xr.Dataset:
    """P(value > threshold) from a store's histograms, along `threshold`; linear within a bin.

    Intervals as of `exceedance` with replicates.
    """
    need_confidence(confidence)
    limits = np.atleast_1d(np.asarray(thresholds, np.float64))
    arrays = _histogram(histograms, name)

    def kernel(*rows: NDArray) -> Floats:
        return _over_cells(_Exceedance(limits, confidence), *rows)

    added = {"part_of_triple": 3, "threshold": len(limits)}
    found = row_wise(kernel, arrays, _core(name), added)
    units = _meaning(histograms, name).get("units", "1")
    attrs = {"units": units, "long_name": "threshold"}
    found = found.assign_coords(threshold=("threshold", limits, attrs))
    return as_triple(found, {"units": "1"}, "share of samples above the threshold", confidence)


def _histogram(histograms: xr.Dataset, name: str) -> list[xr.DataArray]:
    parts = (f"{name}_counts", f"{name}_bin_low", f"{name}_bin_high")
    parts = (*parts, f"{name}_smallest", f"{name}_largest")
    known = [str(n)[: -len("_counts")] for n in histograms.data_vars if str(n).endswith("_counts")]
    need_names([name], known, "the group 'histograms'")
    need_names(parts, histograms.variables, "the group 'histograms'")
    return [histograms[n] for n in parts]


def _core(name: str) -> list[list[str]]:
    bins = f"{name}_bin"
    return [["replicate", bins], [bins], [bins], ["replicate", "rank"], ["replicate", "rank"]]


def _meaning(histograms: xr.Dataset, name: str) -> dict[str, str]:
    attrs = histograms[f"{name}_bin_low"].attrs
    meaning = str(attrs.get("long_name", name)).removesuffix(": low edge of the bin")
    return {"units": attrs.get("units", "1"), "long_name": meaning}


def _over_cells(question: "_Quantiles | _Own | _Exceedance", *arrays: NDArray) -> Floats:
    counts, low, high, smallest, largest = arrays
    cells = counts.shape[:-2]
    flat = [a.reshape(-1, *a.shape[-2:]) for a in (counts, smallest, largest)]
    found = [question(c, low, high, s, t) for c, s, t in zip(*flat, strict=True)]
    return np.stack(found).reshape((*cells, *found[0].shape))


class _Sorted:
    """The order statistics of one row of a histogram and what is known exactly at its ends."""

    def __init__(
        self, counts: NDArray, low: Floats, high: Floats, smallest: NDArray, largest: NDArray
    ) -> None:
        filled = counts > 0
        self.counts, self.low, self.high = counts[filled], low[filled], high[filled]
        self.before = np.concatenate([[0], np.cumsum(self.counts)])
        self.total = int(self.before[-1])
        self.smallest = np.sort(smallest[np.isfinite(smallest)].astype(np.float64))
        self.largest = -np.sort(-largest[np.isfinite(largest)].astype(np.float64))

    def at(self, ranks: NDArray[np.int64]) -> Floats:
        """Values of rank 1, 2 ... n."""
        k = np.clip(np.searchsorted(self.before, ranks) - 1, 0, len(self.counts) - 1)
        place = (ranks - self.before[k] - 0.5) / self.counts[k]
        value = self.low[k] + place * (self.high[k] - self.low[k])
        floor = self.smallest[-1] if len(self.smallest) else -np.inf
        ceiling = self.largest[-1] if len(self.largest) else np.inf
        value = np.clip(value, floor, ceiling)
        for ends, index in ((self.smallest, ranks - 1), (self.largest, self.total - ranks)):
            exact = index < len(ends)
            value[exact] = ends[index[exact]]
        return value

    def quantiles(self, probabilities: Floats) -> Floats:
        """Median-unbiased quantiles; NaN without a value."""
        if not self.total:
            return np.full(len(probabilities), np.nan)
        rank = np.clip((self.total + 1 / 3) * probabilities + 1 / 3, 1, self.total)
        under = np.floor(rank).astype(np.int64)
        low, high = self.at(under), self.at(np.minimum(under + 1, self.total))
        return low + (rank - under) * (high - low)


def _pooled(ends: NDArray, counts: NDArray, *, largest: bool) -> NDArray:
    """The extremes of all replicates together, as far as they are sure to be the extremes."""
    kept = ends.shape[-1]
    values = np.sort(ends[np.isfinite(ends)])
    values = values[::-1] if largest else values
    complete = bool((counts.sum(axis=-1) <= kept).all())
    return values if complete else values[:kept]


class _Own:
    """The quantiles of every replicate of a cell [quantiles, replicates]."""

    def __init__(self, probabilities: Floats) -> None:
        self.probabilities = probabilities

    def __call__(
        self, counts: NDArray, low: Floats, high: Floats, smallest: NDArray, largest: NDArray
    ) -> Floats:
        if counts.min(initial=0) < 0:  # not computed: the cell is not complete
            return np.full((len(self.probabilities), len(counts)), np.nan)
        each = zip(counts, smallest, largest, strict=True)
        rows = [_Sorted(c, low, high, s, t).quantiles(self.probabilities) for c, s, t in each]
        return np.stack(rows, axis=-1)


class _Quantiles:
    """The quantiles of all replicates together, and their intervals."""

    def __init__(self, probabilities: Floats, confidence: float) -> None:
        self.own, self.confidence = _Own(probabilities), confidence

    def __call__(
        self, counts: NDArray, low: Floats, high: Floats, smallest: NDArray, largest: NDArray
    ) -> Floats:
        own = self.own(counts, low, high, smallest, largest)
        if counts.min(initial=0) < 0:
            return np.full((3, len(own)), np.nan)
        ends = _pooled(smallest, counts, largest=False), _pooled(largest, counts, largest=True)
        pooled = _Sorted(counts.sum(axis=0), low, high, *ends).quantiles(self.own.probabilities)
        return np.stack([pooled, *t_interval(own, self.confidence)])


class _Exceedance:
    """Shares above the limits and their intervals."""

    def __init__(self, limits: Floats, confidence: float) -> None:
        self.limits, self.confidence = limits, confidence

    def __call__(
        self, counts: NDArray, low: Floats, high: Floats, smallest: NDArray, largest: NDArray
    ) -> Floats:
        if counts.min(initial=0) < 0:
            return np.full((3, len(self.limits)), np.nan)
        width = np.where(high > low, high - low, 1.0)
        share = np.clip((high - self.limits[:, None]) / width, 0, 1)
        share = np.where(high > low, share, low > self.limits[:, None])  # the bin of zero
        above = share @ counts.T.astype(np.float64)
        total = counts.sum(axis=-1)
        exact = largest[None] > self.limits[:, None, None]  # all of those above are kept
        few = ~exact.all(axis=-1)
        above = np.where(few, exact.sum(axis=-1), above)
        return share_interval(above, total, self.confidence)
