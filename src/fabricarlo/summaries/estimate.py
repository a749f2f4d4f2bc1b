"""What a complete part says about its cell: moments, quantiles, and how far to trust them."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fabricarlo.summaries.bins import edges
from fabricarlo.summaries.histogram import Histogram
from fabricarlo.summaries.moments import Moments, merge_moments, total
from fabricarlo.summaries.state import Part

CONFIDENCE = 0.95

Floats = NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class Estimates:
    """Estimates of one cell; NaN where there is no value, and for intervals of one replicate."""

    count: NDArray[np.int64]  # [outputs], finite
    nonfinite: NDArray[np.int64]
    mean: Floats
    std: Floats  # of the pooled sample, divisor count - 1
    min: Floats
    max: Floats
    quantile: Floats  # [outputs, quantiles]
    mean_interval: Floats  # [outputs, 2], low and high
    quantile_interval: Floats  # [outputs, quantiles, 2]


def estimate(part: Part, quantiles: Sequence[float]) -> Estimates:
    """The estimates of every output of a part.

    Quantiles follow the median-unbiased rule: the order statistic of rank (n + 1/3) p + 1/3,
    between neighbours linearly (R. J. Hyndman, Y. Fan, The American Statistician 50 (1996) 361,
    definition 8). An order statistic is exact among the 64 smallest and 64 largest values, else
    interpolated in its bin, so at most 2^-11 of its value away. Intervals are t intervals (95 %)
    over the replicates' own estimates: right for independent replicates, each long enough that
    its estimate is close to normal; a replicate with no finite value leaves no interval.
    """
    outputs, replicates = part.count.shape
    probabilities = np.asarray(quantiles, np.float64)
    each = total(part.nodes)
    pooled = _pooled(each)
    own_ends, ends = _sorted_ends(part, 1), _sorted_ends(part, replicates)
    own = _quantiles(part.histogram, *own_ends, probabilities)
    of_all = _quantiles(part.histogram.folded(replicates), *ends, probabilities)
    bottom, top = ends
    count = part.count.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        std = np.sqrt(np.where(count > 1, pooled[2] / (count - 1), np.nan))
    means = np.where(part.count > 0, each[1], np.nan)
    return Estimates(
        count=count,
        nonfinite=part.nonfinite.sum(axis=1),
        mean=np.where(count > 0, pooled[1], np.nan),
        std=std,
        min=bottom[:, 0],
        max=top[:, 0],
        quantile=of_all,
        mean_interval=_interval(means),
        quantile_interval=_interval(
            own.reshape(outputs, replicates, len(probabilities)).swapaxes(1, 2)
        ),
    )


def _pooled(moments: Moments) -> Moments:
    """Moments over the replicates [3, outputs, replicates], added in their order."""
    pooled = moments[..., 0]
    for replicate in range(1, moments.shape[-1]):
        pooled = merge_moments(pooled, moments[..., replicate])
    return pooled


def _sorted_ends(part: Part, group: int) -> tuple[Floats, Floats]:
    """Smallest values ascending and largest descending, of rows pooled in groups of replicates.

    NaN where it is not known.
    """
    kept = part.bottom.values.shape[-1]
    shape = (part.count.size // group, group * kept)
    bottom = np.sort(part.bottom.values.astype(np.float64).reshape(shape), axis=1)
    top = -np.sort(-part.top.values.astype(np.float64).reshape(shape), axis=1)
    # beyond the first `kept` a value may be missing, unless each replicate has all its values there
    complete = (part.count.reshape(-1, group) <= kept).all(axis=1)
    sure = complete[:, None] | (np.arange(group * kept) < kept)
    return np.where(sure, bottom, np.nan), np.where(sure, top, np.nan)  # NaN sorted last


def _quantiles(histogram: Histogram, bottom: Floats, top: Floats, probabilities: Floats) -> Floats:
    """Quantiles [rows, probabilities] of every row of a histogram."""
    before = np.concatenate([[0], np.cumsum(histogram.counts)])
    count = np.diff(before[histogram.offsets])[:, None]
    rank = (count + 1 / 3) * probabilities + 1 / 3
    rank = np.clip(rank, 1.0, np.maximum(count, 1))
    under = np.floor(rank).astype(np.int64)
    low = _order_statistic(histogram, before, bottom, top, under)
    high = _order_statistic(histogram, before, bottom, top, np.minimum(under + 1, count))
    share = rank - under
    return np.where(count > 0, low + share * (high - low), np.nan)


def _order_statistic(
    histogram: Histogram,
    before: NDArray[np.int64],
    bottom: Floats,
    top: Floats,
    rank: NDArray[np.int64],
) -> Floats:
    """The values of rank 1, 2 ... of every row; [rows, ranks], meaningless in an empty row."""
    if not len(histogram.bins):
        return np.full(rank.shape, np.nan)
    row = np.arange(histogram.rows)[:, None]
    start = before[histogram.offsets[:-1]][:, None]
    count = before[histogram.offsets[1:]][:, None] - start
    wanted = start + np.maximum(rank, 1)
    bin_number = np.clip(np.searchsorted(before, wanted) - 1, 0, len(histogram.bins) - 1)
    low, high = edges(histogram.bins[bin_number])
    place = (wanted - before[bin_number] - 0.5) / histogram.counts[bin_number]
    # what is known exactly bounds what is not
    floor = np.fmax.reduce(bottom, axis=1, initial=-np.inf)[:, None]
    ceiling = np.fmin.reduce(top, axis=1, initial=np.inf)[:, None]
    value = np.clip(low + place * (high - low), floor, ceiling)
    last = bottom.shape[1] - 1
    for ends, place in ((bottom, rank - 1), (top, count - rank)):
        exact = ends[row, np.clip(place, 0, last)]
        value = np.where((place <= last) & ~np.isnan(exact), exact, value)
    return value


def _interval(estimates: Floats) -> Floats:
    """t interval [..., 2] over the replicates, which are the last axis."""
    replicates = estimates.shape[-1]
    if replicates < 2:
        return np.full((*estimates.shape[:-1], 2), np.nan)
    from scipy.special import stdtrit  # here, so that reading a store needs no SciPy

    half = stdtrit(replicates - 1, (1 + CONFIDENCE) / 2) / np.sqrt(replicates)
    half = half * estimates.std(axis=-1, ddof=1)
    centre = estimates.mean(axis=-1)
    return np.stack([centre - half, centre + half], axis=-1)
