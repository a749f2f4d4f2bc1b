"""What the variance of an output comes from: Sobol' indices of first order and in total.

    S_x = V(E[Y | x]) / V(Y)        T_x = E[V(Y | all but x)] / V(Y)

S_x is the share of variance that knowing x alone would remove, T_x the share that is left when all
but x is known. T_x - S_x is what x does together with others. (I. M. Sobol', Mathematics and
Computers in Simulation 55, 2001.)
"""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import special

from fabricarlo.analysis.checks import (
    AnalysisError,
    need_confidence,
    need_dims,
    need_names,
)
from fabricarlo.analysis.labelled import row_wise
from fabricarlo.analysis.replicates import (
    SECTIONS,
    Floats,
    groups_of,
    over_groups,
    t_interval,
)

PREFIX = "AB_"
FEWEST_BINS, MOST_BINS = 4, 48


def sobol_indices(
    values: xr.DataArray,
    *,
    dim: str = "sample",
    design: str = "design",
    replicates: int = 1,
    confidence: float = 0.95,
) -> xr.Dataset:
    """Indices from a store with `design: sensitivity`: `first_order` and `total`, with intervals.

        S_x = mean(y_B (y_ABx - y_A)) / V        T_x = mean((y_A - y_ABx)^2) / (2 V)

    y less its mean over the whole design, V the variance over A and B. Saltelli et al., Computer
    Physics Communications 181, 2010 (first order); Jansen, Computer Physics Communications 117,
    1999 (total). Intervals (`first_order_low` ...) are over replicates; of plain samples they are
    normal, by the linearised ratio. The new dimension is `parameter`. A sample that is not finite
    in one matrix is left out of all. NaN where nothing varies.

    Inputs that are correlated by a copula are not independent: the indices then are not shares.
    """
    need_dims(values, dim, design)
    need_confidence(confidence)
    labels = [str(v) for v in values[design].values] if design in values.coords else []
    names = [n.removeprefix(PREFIX) for n in labels if n.startswith(PREFIX)]
    if not {"A", "B"} <= set(labels) or not names:
        raise AnalysisError(
            f"'{design}' has the labels {labels}; it must have A, B and AB_x for every random "
            "quantity x: run the sweep with 'design: sensitivity'."
        )
    groups = groups_of(values, replicates)
    order = [labels.index(n) for n in ("A", "B", *(PREFIX + x for x in names))]

    def kernel(matrices: NDArray) -> Floats:
        rows = matrices.reshape(-1, *matrices.shape[-2:])[:, order]
        found = [_indices(row, groups, confidence) for row in rows]
        return np.stack(found).reshape((*matrices.shape[:-2], *found[0].shape))

    added = {"number": 6, "parameter": len(names)}
    found = row_wise(kernel, [values], [[design, dim]], added)
    return _named(found.assign_coords(parameter=names), ("first_order", "total"), confidence)


def _named(found: xr.DataArray, kinds: Sequence[str], confidence: float) -> xr.Dataset:
    made = xr.Dataset()
    for k, kind in enumerate(kinds):
        what = f"Sobol' index, {kind.replace('_', ' ')}"
        for j, end in enumerate(("", "_low", "_high")):
            made[kind + end] = found.isel(number=3 * k + j)
            text = f", {end[1:]} end of the {confidence:.4g} interval" if end else ""
            made[kind + end].attrs = {"units": "1", "long_name": what + text}
    return made


def _indices(matrices: NDArray, groups: int, confidence: float) -> Floats:
    """First order and total, each with its ends [6, parameters], of rows A, B and every AB."""
    y = matrices.astype(np.float64)
    whole = _ratios(y)
    if groups > 1:
        ends = t_interval(over_groups(_ratios, y, groups), confidence)
    else:
        half = special.ndtri((1 + confidence) / 2) * _errors(y)
        ends = (whole - half, whole + half)
    return np.concatenate([np.stack([whole[k], ends[0][k], ends[1][k]]) for k in range(2)])


def _terms(y: Floats) -> tuple[Floats, Floats]:
    """Numerators of both indices [2, parameters, samples], and the pair (A, B), centred."""
    y = y[:, np.isfinite(y).all(axis=0)]
    y = y - y.mean() if y.size else y
    a, b, mixed = y[0], y[1], y[2:]
    return np.stack([b * (mixed - a), 0.5 * (a - mixed) ** 2]), y[:2]


def _ratios(y: Floats) -> Floats:
    terms, pair = _terms(y)
    variance = pair.var() if pair.size else 0.0
    if not variance > 0:
        return np.full(terms.shape[:2], np.nan)
    return terms.mean(axis=-1) / variance


def _errors(y: Floats) -> Floats:
    """Standard errors of the ratios of independent samples, to first order."""
    terms, pair = _terms(y)
    n, variance = pair.shape[-1], pair.var() if pair.size else 0.0
    if n < 2 or not variance > 0:
        return np.full(terms.shape[:2], np.nan)
    spread = ((pair - pair.mean()) ** 2).mean(axis=0)
    influence = terms - (terms.mean(axis=-1) / variance)[..., None] * spread
    return influence.std(axis=-1, ddof=1) / variance / np.sqrt(n)


def first_order_indices(
    values: xr.DataArray,
    draws: xr.Dataset,
    *,
    names: Sequence[str] | None = None,
    bins: int | None = None,
    dim: str = "sample",
    replicates: int = 1,
    confidence: float = 0.95,
) -> xr.Dataset:
    """First-order indices from the samples of any store: no special design is needed.

    The samples are cut into `bins` of equal count along each draw x, and

        S_x = sum over bins of share (m_r - m) (m_s - m) / V, averaged over all pairs r != s

    where m_r is the mean in the bin of one replicate, or section of plain samples. These are
    independent, so chance adds nothing to the product of two, while the square of one mean would
    count its error as an effect, and by another amount for Sobol' points than for plain ones. (For
    indices from given data: Plischke, Borgonovo & Smith, European Journal of Operational Research
    226, 2013.) Intervals are the jackknife's over these groups (Efron & Stein, Annals of Statistics
    9, 1981).

    Default bins: half the root of the samples of a group, 4 to 48. What varies within a bin is
    missed, so too few bins see too little; totals cannot be had from given data. With a copula,
    the index of x includes what its companions do along with it.
    """
    need_dims(values, dim)
    need_confidence(confidence)
    wanted = list(names) if names is not None else [str(n) for n in draws.data_vars]
    need_names(wanted, draws.data_vars, "the samples")
    groups = groups_of(values, replicates)
    groups = groups if groups > 1 else SECTIONS
    each = values.sizes[dim] // groups
    chosen = bins if bins is not None else round(np.sqrt(each) / 2)
    chosen = chosen if bins is not None else min(MOST_BINS, max(FEWEST_BINS, chosen))
    if chosen < 2 or each < 2 * chosen:
        raise AnalysisError(
            f"{values.sizes[dim]} samples in {groups} groups are too few for {chosen} bins: "
            "give more samples or fewer bins."
        )

    def kernel(x: NDArray, y: NDArray) -> Floats:
        return _over_cells(x, y, chosen, groups, confidence)

    found = [row_wise(kernel, [draws[n], values], [[dim], [dim]], {"number": 3}) for n in wanted]
    joined = xr.concat(found, "parameter", coords="minimal").assign_coords(parameter=wanted)
    joined = joined.transpose(..., "parameter", "number")
    return _named(joined, ("first_order",), confidence)


def _over_cells(x: NDArray, y: NDArray, bins: int, groups: int, confidence: float) -> Floats:
    """Index and its ends of every cell; cells that share their draws share the bins."""
    shape = np.broadcast_shapes(x.shape[:-1], y.shape[:-1])
    y = np.broadcast_to(y, (*shape, y.shape[-1])).reshape(-1, y.shape[-1])
    shared = x.size == x.shape[-1]
    rows = x.reshape(1, -1) if shared else np.broadcast_to(x, (*shape, x.shape[-1]))
    rows = rows.reshape(-1, x.shape[-1])
    codes = _codes(rows[0], bins)
    found = []
    for k, values in enumerate(y):
        codes = codes if shared or k == 0 else _codes(rows[k], bins)
        found.append(_explained(_cut(codes, values, bins, groups), confidence))
    return np.array(found).reshape((*shape, 3))


def _codes(x: NDArray, bins: int) -> NDArray[np.int64]:
    """The bin of every sample; equal values share one, -1 where x is not finite."""
    finite = np.isfinite(x)
    if not finite.any():
        return np.full(len(x), -1, np.int64)
    edges = np.unique(np.quantile(x[finite], np.arange(1, bins) / bins))
    return np.where(finite, np.searchsorted(edges, x, side="right"), -1)


def _cut(codes: NDArray[np.int64], values: NDArray, bins: int, groups: int) -> Floats:
    """Count, sum and sum of squares [3, groups, bins] of the values, less their common mean."""
    used = (codes >= 0) & np.isfinite(values)
    y = values[used].astype(np.float64)
    y = y - y.mean() if len(y) else y
    cell = (np.arange(len(codes)) % groups * bins + codes)[used]
    sums = [np.bincount(cell, w, minlength=groups * bins) for w in (None, y, y * y)]
    return np.stack(sums).astype(np.float64).reshape(3, groups, bins)


def _explained(cut: Floats, confidence: float) -> list[float]:
    """Index and jackknife interval."""
    groups = cut.shape[1]
    whole = _products(cut)
    without = [_products(np.delete(cut, g, axis=1)) for g in range(groups)]
    pseudo = groups * whole - (groups - 1) * np.array(without)
    low, high = t_interval(pseudo, confidence)
    return [whole, float(low), float(high)]


def _products(cut: Floats) -> float:
    """The index from products of the means of different groups; NaN where nothing varies."""
    count, total, squares = cut
    n = count.sum()
    variance = squares.sum() / n if n else 0.0
    if not variance > 0:
        return np.nan
    mean = total / np.maximum(count, 1)
    filled = (count > 0).sum(axis=0)
    pairs = mean.sum(axis=0) ** 2 - (mean**2).sum(axis=0)
    each = pairs / np.maximum(filled * (filled - 1), 1)
    return float((count.sum(axis=0) / n * each).sum() / variance)
