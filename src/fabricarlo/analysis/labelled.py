"""From labelled arrays to plain rows and back, lazily where the data are lazy."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

TRIPLE = ("estimate", "low", "high")
"""An estimate and the ends of its interval."""


def row_wise(
    function: Callable[..., np.ndarray],
    arrays: Sequence[xr.DataArray],
    core: Sequence[Sequence[str]],
    added: Mapping[str, int],
) -> xr.DataArray:
    """Apply a function of plain arrays over the core dimensions; it adds the dimensions `added`.

    Samples of a cell are brought into one piece, cells stay apart: dask computes cell by cell.
    """
    return xr.apply_ufunc(
        function,
        *arrays,
        input_core_dims=[list(dims) for dims in core],
        output_core_dims=[list(added)],
        dask="parallelized",
        dask_gufunc_kwargs={"allow_rechunk": True, "output_sizes": dict(added)},
        output_dtypes=[np.float64],
        keep_attrs=False,
    )


def by_row(rows: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Apply a function to every row of samples (the last axis), one after the other."""
    flat = rows.reshape(-1, rows.shape[-1])
    found = [function(row) for row in flat]
    if not found:  # no cell: one empty row says which shape there would be
        like = function(np.zeros(0, rows.dtype))
        return np.zeros((*rows.shape[:-1], *like.shape))
    return np.stack(found).reshape((*rows.shape[:-1], *found[0].shape))


def described(attrs: Mapping[Any, Any], what: str, **more: Any) -> dict[str, Any]:
    """The attributes of a variable, its meaning extended by what was made of it."""
    kept = {str(k): v for k, v in attrs.items() if k not in ("every", "mantissa_bits")}
    meaning = kept.get("long_name")
    return kept | {"long_name": f"{meaning}: {what}" if meaning else what} | more


def as_triple(
    found: xr.DataArray, attrs: Mapping[Any, Any], what: str, confidence: float
) -> xr.Dataset:
    """`estimate`, `low` and `high` from an array with the dimension `part_of_triple`."""
    ends = f"{confidence:.4g} interval of the {what}"
    texts = (what, f"low end of the {ends}", f"high end of the {ends}")
    made = xr.Dataset(
        {n: found.isel(part_of_triple=k) for k, n in enumerate(TRIPLE)}, attrs={"title": what}
    )
    for name, text in zip(TRIPLE, texts, strict=True):
        made[name].attrs = described(attrs, text)
    return made
