"""Cells of a sweep over fabrics, and Ethernet against InfiniBand under the same luck."""

import re
from typing import NamedTuple

import numpy as np
import xarray as xr

from fabricarlo.analysis import (
    draws_of,
    first_order_indices,
    independent_replicates,
    paired_difference,
    replicate_quantiles,
)
from fabricarlo.analysis.replicates import t_interval

QUANTILES = (0.5, 0.99, 0.999)
GENERATIONS = {"ndr": 400, "xdr": 800}
INFINIBAND = {400: "infiniband-ndr", 800: "infiniband-xdr", 1600: "infiniband-xdr"}
"""What InfiniBand stands against Ethernet of a rate: there is no product of 1600 Gbit/s."""


class Cells(NamedTuple):
    """The results, kept samples and histograms of a store at one number of GPUs."""

    root: xr.Dataset
    samples: xr.Dataset
    histograms: xr.Dataset
    replicates: int


def cells(tree: xr.DataTree, gpus: float) -> Cells:
    """The part of a store that is of one number of GPUs."""
    root, samples, histograms = (
        tree[part].to_dataset().sel(gpus=gpus).load() for part in ("/", "samples", "histograms")
    )
    return Cells(root, samples, histograms, independent_replicates(tree.to_dataset()))


def rate_of(label: str) -> int:
    """Gbit/s of a fabric, from its name."""
    if found := re.search(r"-(\d+)g$", label):
        return int(found[1])
    return next(rate for name, rate in GENERATIONS.items() if f"-{name}" in label)


def pairs(labels: list[str]) -> list[tuple[str, str]]:
    """Every Ethernet fabric with the InfiniBand that it stands against, without and with SHARP."""
    ethernet = [label for label in labels if not label.startswith("infiniband")]
    against = [(e, INFINIBAND[rate_of(e)]) for e in ethernet]
    both = [(e, f"{i}{end}") for e, i in against for end in ("", "-sharp")]
    return [(e, i) for e, i in both if i in labels]


def difference(cell: Cells, ethernet: str, infiniband: str) -> dict[str, tuple[float, ...]]:
    """InfiniBand minus Ethernet (s): the mean sample by sample, and the shift of each quantile.

    Each with the ends of its 95 % interval; `share` is that of samples in which InfiniBand is
    faster. The mean and the share are of the kept samples, the shifts of all: a replicate has the
    same draws in both cells, so that the shifts of the replicates are independent.
    """
    paired = paired_difference(
        cell.samples.step_time, "fabric", ethernet, infiniband, replicates=cell.replicates
    )
    ends = ("", "_low", "_high")
    own = replicate_quantiles(cell.histograms, "step_time", QUANTILES)
    shift = (own.sel(fabric=infiniband) - own.sel(fabric=ethernet)).transpose("quantile", ...)
    low, high = t_interval(shift.values, 0.95)
    found = {name: tuple(float(paired[f"{name}{e}"]) for e in ends)
             for name in ("mean_difference", "share_lower")}  # fmt: skip
    for k, q in enumerate(QUANTILES):
        found[f"p{100 * q:g}"] = (float(shift[k].mean()), float(low[k]), float(high[k]))
    return found


def deciding(cell: Cells, ethernet: str, infiniband: str) -> xr.Dataset:
    """Share of the variance of the difference that each input makes alone, the largest first."""
    both = cell.samples.sel(fabric=[ethernet, infiniband])
    shift = both.step_time.sel(fabric=infiniband) - both.step_time.sel(fabric=ethernet)
    shift.attrs = both.step_time.attrs
    names = draws_of(cell.root, cell.samples)
    mine = both[names].sel(fabric=ethernet) if "fabric" in both[names].dims else both[names]
    luck = both.collision_efficiency.sel(fabric=ethernet)
    if "trimming" not in ethernet and float(luck.std()) > 0:
        mine = mine.assign(collision_efficiency=luck)
    found = first_order_indices(shift, mine.drop_vars("fabric", errors="ignore"))
    order = np.argsort(-np.nan_to_num(found.first_order.values))
    return found.isel(parameter=order)
