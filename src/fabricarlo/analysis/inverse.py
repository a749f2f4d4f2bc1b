"""The question turned round: how far may a design go until a promise no longer holds?"""

from typing import Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from fabricarlo.analysis.checks import AnalysisError, need_names
from fabricarlo.analysis.labelled import row_wise

Floats = NDArray[np.float64]


def largest_within(
    curve: xr.Dataset,
    axis: str,
    *,
    below: float | None = None,
    above: float | None = None,
    scale: Literal["linear", "log"] = "linear",
) -> xr.Dataset:
    """The largest X on a numeric axis at which the curve is still below (or above) a limit.

    With the curve of a quantile this is the largest X such that P(Y < y) >= q: that holds exactly
    where the q quantile of Y is below y.

        slow = quantiles(samples.step_time, 0.99, replicates=8).sel(quantile=0.99)
        largest_within(slow, "gpus", below=35.0)

    `curve` has `estimate`, `low` and `high`. The answer has `estimate`; `low` and `high`, where the
    ends of the curve's interval meet the limit (the interval of a test inverted); and
    `interpolation_error`: between labels the curve is taken as a monotone cubic (Fritsch & Butland,
    SIAM J. Sci. Stat. Comput. 5, 1984), and the error is its distance from straight lines. `open`
    is true where the promise still holds at the last label: then all three are at least that
    label. NaN: it holds at none.
    """
    limit, sign = _limit(below, above)
    need_names(["estimate", "low", "high"], curve.data_vars, "the curve")
    grid = _grid(curve, axis, scale)
    inner, outer = ("high", "low") if sign > 0 else ("low", "high")
    excess = [(curve[n] - limit) * sign for n in ("estimate", inner, outer)]

    def kernel(middle: NDArray, worse: NDArray, better: NDArray) -> Floats:
        arrays = np.broadcast_arrays(middle, worse, better)
        flat = zip(*(a.reshape(-1, a.shape[-1]) for a in arrays), strict=True)
        rows = [_crossings(grid, scale, *row) for row in flat]
        return np.stack(rows).reshape((*arrays[0].shape[:-1], 5))

    found = row_wise(kernel, excess, [[axis]] * 3, {"number": 5})
    return _named(found, curve[axis], f"largest {axis} within {limit:g}")


def _limit(below: float | None, above: float | None) -> tuple[float, float]:
    """The limit, and the sign that turns an excess over it positive."""
    if below is not None and above is None:
        return below, 1.0
    if above is not None and below is None:
        return above, -1.0
    raise AnalysisError("give exactly one of 'below' and 'above'.")


def _grid(curve: xr.Dataset, axis: str, scale: str) -> Floats:
    if axis not in curve.dims or axis not in curve.coords:
        have = ", ".join(map(str, curve.dims))
        raise AnalysisError(f"there is no axis '{axis}' with labels; the dimensions are {have}.")
    if curve[axis].dtype.kind not in "fiu":
        raise AnalysisError(f"axis '{axis}' has names, not numbers: there is no largest one.")
    grid = np.asarray(curve[axis].values, np.float64)
    if len(grid) < 2 or np.any(np.diff(grid) <= 0):
        raise AnalysisError(f"axis '{axis}' must rise and have two labels or more; it is {grid}.")
    if scale == "log" and grid[0] <= 0:
        raise AnalysisError(f"axis '{axis}' is not positive: it has no logarithmic scale.")
    return np.log(grid) if scale == "log" else grid


def _named(found: xr.DataArray, axis: xr.DataArray, what: str) -> xr.Dataset:
    names = ("estimate", "low", "high", "interpolation_error")
    made = xr.Dataset({n: found.isel(number=k) for k, n in enumerate(names)})
    texts = (what, f"{what}, low end of the interval", f"{what}, high end of the interval")
    for name, text in zip(names, (*texts, f"{what}, error of interpolation"), strict=True):
        made[name].attrs = {"units": axis.attrs.get("units", "1"), "long_name": text}
    made["open"] = found.isel(number=4) > 0
    made["open"].attrs = {"units": "1", "long_name": "whether it holds at the last label too"}
    return made


def _crossings(grid: Floats, scale: str, *curves: Floats) -> Floats:
    """Estimate, low, high, error and openness from the excess of middle, worse and better curve."""
    back = np.exp if scale == "log" else np.asarray
    if not np.isfinite(curves[0]).all():
        return np.array([np.nan, np.nan, np.nan, np.nan, 0.0])
    found = [back(_last(grid, c, cubic=True)) for c in curves]
    straight = back(_last(grid, curves[0], cubic=False))
    return np.array([*found, abs(found[0] - straight), float(curves[0][-1] < 0)])


def _last(grid: Floats, excess: Floats, *, cubic: bool) -> float:
    """The largest point at which the excess is not positive; NaN where there is none."""
    from scipy.interpolate import PchipInterpolator  # here: it is slow to import

    if not np.isfinite(excess).all() or (excess > 0).all():
        return np.nan
    k = int(np.flatnonzero(excess <= 0)[-1])
    if k == len(grid) - 1:
        return float(grid[-1])
    straight = grid[k] - excess[k] * (grid[k + 1] - grid[k]) / (excess[k + 1] - excess[k])
    if not cubic:
        return float(straight)
    roots = PchipInterpolator(grid, excess).solve(0.0, extrapolate=False)
    inside = roots[(roots >= grid[k]) & (roots <= grid[k + 1])]
    return float(inside[-1]) if len(inside) else float(straight)
