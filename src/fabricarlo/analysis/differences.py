"""Two designs under the same luck: the difference sample by sample, with far less noise."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import special

from fabricarlo.analysis.checks import (
    need_confidence,
    need_dims,
    need_label,
    probabilities_of,
)
from fabricarlo.analysis.labelled import described, row_wise
from fabricarlo.analysis.replicates import (
    SECTIONS,
    Floats,
    groups_of,
    over_groups,
    t_interval,
)
from fabricarlo.analysis.tails import plain_quantiles, share_interval
from fabricarlo.units import difference_unit


def paired_difference(
    values: xr.DataArray,
    axis: str,
    first: object,
    second: object,
    *,
    probabilities: float | Sequence[float] = (0.5, 0.99),
    dim: str = "sample",
    replicates: int = 1,
    confidence: float = 0.95,
) -> xr.Dataset:
    """`second` minus `first`, two labels of an axis: sample i of both cells has the same draws.

    | variable | meaning |
    |---|---|
    | `mean_difference`, `..._low`, `..._high` | mean of the difference per sample |
    | `quantile_difference`, ... | difference of the quantiles, along `quantile` |
    | `share_lower`, ... | share of samples with second < first |

    Intervals are t intervals over the replicates. Plain samples (`replicates` 1) give the mean the
    usual t interval, the share Jeffreys', and quantiles that over sections, to which both designs
    belong together, so that what they have in common cancels there too. Pairs of which one value
    is not finite are left out.
    """
    need_dims(values, dim, axis)
    need_confidence(confidence)
    asked, groups = probabilities_of(probabilities), groups_of(values, replicates)
    pair = [
        values.isel({axis: need_label(values, axis, label)}, drop=True) for label in (first, second)
    ]

    def kernel(one: NDArray, other: NDArray) -> Floats:
        one, other = np.broadcast_arrays(one, other)
        flat = zip(one.reshape(-1, one.shape[-1]), other.reshape(-1, one.shape[-1]), strict=True)
        rows = [_difference(a, b, asked, groups, confidence) for a, b in flat]
        return np.stack(rows).reshape((*one.shape[:-1], *rows[0].shape))

    added = {"number": 6 + 3 * len(asked)}
    found = row_wise(kernel, pair, [[dim], [dim]], added)
    return _named(found, values, asked, f"{axis} {second} minus {first}")


def _named(found: xr.DataArray, values: xr.DataArray, asked: Floats, what: str) -> xr.Dataset:
    attrs = dict(values.attrs)
    attrs["units"] = difference_unit(str(attrs.get("units", "1")))
    made = xr.Dataset(attrs={"title": what})
    quantile = ("quantile", asked, {"units": "1", "long_name": "probability"})
    texts = {"": "", "_low": ", low end of the interval", "_high": ", high end of the interval"}
    for k, (end, text) in enumerate(texts.items()):
        made[f"mean_difference{end}"] = found.isel(number=k)
        made[f"mean_difference{end}"].attrs = described(attrs, f"mean of {what}{text}")
        made[f"share_lower{end}"] = found.isel(number=3 + k)
        meaning = f"share of samples in which {what} is below zero{text}"
        made[f"share_lower{end}"].attrs = {"units": "1", "long_name": meaning}
        place = slice(6 + k * len(asked), 6 + (k + 1) * len(asked))
        shift = found.isel(number=place).rename(number="quantile")
        made[f"quantile_difference{end}"] = shift.assign_coords(quantile=quantile)
        made[f"quantile_difference{end}"].attrs = described(attrs, f"quantile of {what}{text}")
    return made


def _difference(
    one: NDArray, other: NDArray, asked: Floats, groups: int, confidence: float
) -> Floats:
    """Mean, share and shifts of one cell, each with its ends: 6 + 3 numbers a quantile."""
    both = np.isfinite(one) & np.isfinite(other)
    pair = np.where(both, np.stack([one, other]).astype(np.float64), np.nan)
    if not both.any():
        return np.full(6 + 3 * len(asked), np.nan)
    mean = _mean(pair[1] - pair[0], groups, confidence)
    parts = [pair[:, k::groups] for k in range(groups)]
    lower = np.array([[np.count_nonzero(b < a) for a, b in parts]], np.int64)
    total = np.array([np.isfinite(p[0]).sum() for p in parts], np.int64)

    def shifts(rows: NDArray) -> Floats:
        return plain_quantiles(rows[1], asked) - plain_quantiles(rows[0], asked)

    own = over_groups(shifts, pair, groups if groups > 1 else SECTIONS)
    shift = np.stack([shifts(pair), *t_interval(own, confidence)])
    return np.concatenate([mean, share_interval(lower, total, confidence)[:, 0], shift.ravel()])


def _mean(row: Floats, groups: int, confidence: float) -> Floats:
    """Mean of the finite values of a row and its interval."""
    finite = row[np.isfinite(row)]
    estimate = finite.mean()
    if groups > 1:
        own = over_groups(lambda part: np.asarray(_nanmean(part)), row, groups)
        return np.array([estimate, *t_interval(own, confidence)])
    n = len(finite)
    if n < 2:
        return np.array([estimate, np.nan, np.nan])
    half = float(special.stdtrit(n - 1, (1 + confidence) / 2)) * finite.std(ddof=1) / np.sqrt(n)
    return np.array([estimate, estimate - half, estimate + half])


def _nanmean(row: Floats) -> float:
    finite = row[np.isfinite(row)]
    return float(finite.mean()) if len(finite) else np.nan
