"""Quantiles and exceedance of samples, each with an interval that says how far to trust it."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import special

from fabricarlo.analysis.checks import (
    AnalysisError,
    need_confidence,
    need_dims,
    probabilities_of,
)
from fabricarlo.analysis.labelled import as_triple, by_row, row_wise
from fabricarlo.analysis.replicates import Floats, groups_of, over_groups, t_interval


def quantiles(
    values: xr.DataArray,
    probabilities: float | Sequence[float],
    *,
    dim: str = "sample",
    replicates: int = 1,
    confidence: float = 0.95,
) -> xr.Dataset:
    """Quantiles over samples: `estimate`, `low` and `high` along a new dimension `quantile`.

    The estimate is median-unbiased: the order statistic of rank (n + 1/3) p + 1/3, between
    neighbours linearly (Hyndman & Fan, The American Statistician 50, 1996, definition 8).

    With `replicates` 1, for independent samples, the interval lies between order statistics whose
    ranks the binomial law gives, interpolated (Nyblom, Statistics & Probability Letters 14, 1992);
    an end for which there are too few samples is NaN. With more, for Sobol' samples, it is the t
    interval over the replicates' own quantiles (see `independent_replicates`). Values that are not
    finite are left out; plain intervals then are those of the law given that it is finite.
    """
    need_dims(values, dim)
    need_confidence(confidence)
    asked, groups = probabilities_of(probabilities), groups_of(values, replicates)

    def kernel(rows: NDArray) -> Floats:
        return by_row(rows, lambda row: _quantiles(row, asked, groups, confidence))

    added = {"part_of_triple": 3, "quantile": len(asked)}
    found = row_wise(kernel, [values], [[dim]], added)
    attrs = {"units": "1", "long_name": "probability"}
    found = found.assign_coords(quantile=("quantile", asked, attrs))
    return as_triple(found, values.attrs, "quantile over samples", confidence)


def plain_quantiles(row: NDArray, probabilities: Floats) -> Floats:
    """Median-unbiased quantiles of the finite values of a row; NaN where there is none."""
    finite = row[np.isfinite(row)]
    n = len(finite)
    if not n:
        return np.full(len(probabilities), np.nan)
    rank = np.clip((n + 1 / 3) * probabilities + 1 / 3, 1, n)
    return order_statistics(finite, rank)


def order_statistics(values: NDArray, ranks: Floats) -> Floats:
    """Order statistics of rank 1 to n, linear between ranks that are no whole numbers."""
    under = np.floor(ranks).astype(np.int64) - 1
    over = np.minimum(under + 1, len(values) - 1)
    placed = np.partition(values, np.unique(np.concatenate([under, over])))
    low, high = placed[under].astype(np.float64), placed[over].astype(np.float64)
    return low + (ranks - 1 - under) * (high - low)


def _quantiles(row: NDArray, probabilities: Floats, groups: int, confidence: float) -> Floats:
    estimate = plain_quantiles(row, probabilities)
    if groups > 1:
        own = over_groups(lambda part: plain_quantiles(part, probabilities), row, groups)
        return np.stack([estimate, *t_interval(own, confidence)])
    finite = row[np.isfinite(row)]
    ranks = [interval_ranks(len(finite), p, confidence) for p in probabilities]
    ends = np.full((2, len(probabilities)), np.nan)
    known = np.isfinite(np.array(ranks).T)
    if known.any():
        ends[known] = order_statistics(finite, np.array(ranks).T[known])
    return np.stack([estimate, *ends])


def interval_ranks(n: int, probability: float, confidence: float) -> tuple[float, float]:
    """Ranks (fractional, from 1 to n) of the order statistics that enclose a quantile.

    NaN for an end that not even the extreme sample is sure enough to lie beyond.
    """
    beyond = (1 - confidence) / 2
    low = _lower_rank(n, probability, beyond)
    return low, n + 1 - _lower_rank(n, 1 - probability, beyond)


def _lower_rank(n: int, p: float, beyond: float) -> float:
    """The rank r of which P(X_(r) > quantile) is `beyond`, by Nyblom's interpolation."""
    if n < 1 or special.bdtr(0, n, p) >= beyond:
        return np.nan
    rank = max(1, int(special.bdtrik(beyond, n, p)))
    while special.bdtr(rank - 1, n, p) >= beyond:
        rank -= 1
    while special.bdtr(rank, n, p) < beyond:
        rank += 1
    here, above = special.bdtr(rank - 1, n, p), special.bdtr(rank, n, p)
    share = (beyond - here) / (above - here)
    upper = (n - rank) * p * share
    return rank + upper / (upper + rank * (1 - p) * (1 - share))


def exceedance(
    values: xr.DataArray,
    thresholds: float | Sequence[float],
    *,
    dim: str = "sample",
    replicates: int = 1,
    confidence: float = 0.95,
) -> xr.Dataset:
    """P(value > threshold): `estimate`, `low` and `high` along a new dimension `threshold`.

    With `replicates` 1 the interval is Jeffreys' (Brown, Cai & DasGupta, Statistical Science 16,
    2001), closed to 0 or 1 where no sample or every sample exceeds. With more it is the t interval
    over replicates, and Jeffreys' where all replicates agree to the last sample: their spread then
    says nothing. Values that are not finite are left out.
    """
    need_dims(values, dim)
    need_confidence(confidence)
    limits = np.atleast_1d(np.asarray(thresholds, np.float64))
    if limits.ndim != 1 or np.isnan(limits).any():
        raise AnalysisError(f"thresholds are {thresholds}; give a number or a list of numbers.")
    groups = groups_of(values, replicates)

    def kernel(rows: NDArray) -> Floats:
        return by_row(rows, lambda row: _exceedance(row, limits, groups, confidence))

    added = {"part_of_triple": 3, "threshold": len(limits)}
    found = row_wise(kernel, [values], [[dim]], added)
    attrs = {"units": values.attrs.get("units", "1"), "long_name": "threshold"}
    found = found.assign_coords(threshold=("threshold", limits, attrs))
    return as_triple(found, {"units": "1"}, "share of samples above the threshold", confidence)


def _exceedance(row: NDArray, limits: Floats, groups: int, confidence: float) -> Floats:
    parts = [row[k::groups] for k in range(groups)]
    parts = [part[np.isfinite(part)] for part in parts]
    counts = np.array([[np.count_nonzero(part > t) for part in parts] for t in limits], np.int64)
    return share_interval(counts, np.array([len(p) for p in parts], np.int64), confidence)


def share_interval(
    counts: NDArray[np.int64], totals: NDArray[np.int64], confidence: float
) -> Floats:
    """Share, low and high [3, rows] from counts [rows, groups] of totals [groups]."""
    count, total = counts.sum(axis=-1), int(totals.sum())
    if not total:
        return np.full((3, len(counts)), np.nan)
    low, high = _jeffreys(count, total, confidence)
    if counts.shape[-1] > 1 and totals.min() > 0:
        own = counts / totals
        spread = own.std(axis=-1) > 0
        t_low, t_high = t_interval(own, confidence)
        low = np.where(spread, np.clip(t_low, 0, 1), low)
        high = np.where(spread, np.clip(t_high, 0, 1), high)
    return np.stack([count / total, low, high])


def _jeffreys(count: NDArray[np.int64], total: int, confidence: float) -> tuple[Floats, Floats]:
    beyond = (1 - confidence) / 2
    low = special.betaincinv(count + 0.5, total - count + 0.5, beyond)
    high = special.betaincinv(count + 0.5, total - count + 0.5, 1 - beyond)
    return np.where(count == 0, 0.0, low), np.where(count == total, 1.0, high)
