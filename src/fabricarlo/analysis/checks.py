"""What every function here asks of its arguments, in words."""

import difflib
from collections.abc import Hashable, Iterable, Sequence

import numpy as np
import xarray as xr

from fabricarlo.errors import FabricarloError


class AnalysisError(FabricarloError):
    """A question that the given data cannot answer; the message says why."""


def need_dims(values: xr.DataArray, *dims: str) -> None:
    """Refuse values that lack a dimension."""
    for dim in dims:
        if dim not in values.dims:
            name = values.name or "the array"
            have = ", ".join(map(str, values.dims)) or "none"
            raise AnalysisError(f"{name} has no dimension '{dim}'; it has {have}.")


def need_names(names: Iterable[str], known: Iterable[Hashable], where: str) -> None:
    """Refuse a variable that is not there, and say which is nearest."""
    have = [str(n) for n in known]
    for name in names:
        if name not in have:
            near = difflib.get_close_matches(name, have, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            listed = ", ".join(have) or "nothing"
            raise AnalysisError(f"{where} has no '{name}'; it has {listed}.{hint}")


def need_label(values: xr.DataArray | xr.Dataset, axis: str, label: object) -> int:
    """Position of a label on an axis. Refuses one that is not there."""
    if axis not in values.dims:
        have = ", ".join(map(str, values.dims))
        raise AnalysisError(f"there is no axis '{axis}'; the dimensions are {have}.")
    if axis not in values.coords:
        raise AnalysisError(f"axis '{axis}' has no labels to choose from.")
    labels = values[axis].values.tolist()
    if label not in labels:
        raise AnalysisError(f"axis '{axis}' has no label {label!r}; it has {labels}.")
    return labels.index(label)


def probabilities_of(given: float | Sequence[float]) -> np.ndarray:
    """Probabilities as an array. Refuses what does not lie inside (0, 1)."""
    found = np.atleast_1d(np.asarray(given, np.float64))
    if found.ndim != 1 or not found.size or not np.all((found > 0) & (found < 1)):
        raise AnalysisError(f"probabilities are {given}; each must lie between 0 and 1, e.g. 0.99.")
    return found


def need_confidence(confidence: float) -> None:
    """Refuse a confidence that is no probability."""
    if not 0 < confidence < 1:
        raise AnalysisError(f"confidence is {confidence}; it must lie between 0 and 1, e.g. 0.95.")
