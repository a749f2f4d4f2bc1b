"""Designs that no other design beats in everything at once."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from fabricarlo.analysis.checks import AnalysisError, need_names

ROWS = 512  # designs that are compared with all others at a time


def pareto_front(
    values: xr.Dataset,
    *,
    minimise: Sequence[str] = (),
    maximise: Sequence[str] = (),
) -> xr.DataArray:
    """Whether each design is on the Pareto front: no other is as good in all, better in one.

    Takes one number per design and goal (means or quantiles, no samples); all dimensions are
    designs. A design with a missing value is not on the front. Equal designs are all on it.
    """
    goals = [*minimise, *maximise]
    if len(goals) < 2:
        raise AnalysisError(f"a front needs at least two goals; given are {goals or 'none'}.")
    if len(set(goals)) < len(goals):
        raise AnalysisError(f"a goal is named twice: {goals}.")
    need_names(goals, values.data_vars, "the dataset")
    arrays = xr.broadcast(*(values[n] * (1.0 if n in minimise else -1.0) for n in goals))
    costs = np.stack([np.asarray(a.values, np.float64).ravel() for a in arrays], axis=1)
    first = arrays[0]
    found = xr.DataArray(_front(costs).reshape(first.shape), first.coords, first.dims, "pareto")
    wanted = [*(f"least {n}" for n in minimise), *(f"most {n}" for n in maximise)]
    found.attrs = {"units": "1", "long_name": f"on the Pareto front of {', '.join(wanted)}"}
    return found


def _front(costs: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Rows that no other row dominates; costs [designs, goals], less is better."""
    known = np.isfinite(costs).all(axis=1)
    rivals, beaten = costs[known], np.zeros(len(costs), bool)
    for start in range(0, len(costs), ROWS):
        some = costs[start : start + ROWS, None]
        as_good, better = np.all(rivals <= some, axis=2), np.any(rivals < some, axis=2)
        beaten[start : start + ROWS] = np.any(as_good & better, axis=1)
    return known & ~beaten
