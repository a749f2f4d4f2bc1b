"""Independent groups of samples, and the intervals that their spread gives.

Scrambled Sobol' points are not independent of each other, but replicates are: sample *i* belongs to
replicate *i mod R*, and an estimate per replicate is one of R independent draws of that estimate.
Plain samples are independent themselves; where an estimator has no law of its own they are cut
into `SECTIONS` groups in the same way (Asmussen & Glynn, Stochastic Simulation, 2007, III.5).
"""

import math
from collections.abc import Callable

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import special

from fabricarlo.analysis.checks import AnalysisError

Floats = NDArray[np.float64]

SECTIONS = 16
"""Groups that plain samples are cut into."""


def independent_replicates(results: xr.Dataset | xr.DataTree) -> int:
    """How many replicates the samples of a store fall into: 1 where samples are independent.

    Reads the attributes `sampler` and `replicates` of the root of a store. Refuses weighted samples
    (attribute `tail`): they are to be counted with their weights.
    """
    if results.attrs.get("tail"):
        raise AnalysisError(
            f"the samples are weighted ({results.attrs['tail']}), so counting them is wrong: use "
            "fabricarlo.analysis.weighted with the variable 'weight'."
        )
    sampler = results.attrs.get("sampler")
    if sampler not in ("sobol", "random"):
        raise AnalysisError(
            f"the attribute 'sampler' is {sampler!r}: give the root of a store that fabricarlo "
            "wrote, or name the number of replicates yourself."
        )
    return int(results.attrs["replicates"]) if sampler == "sobol" else 1


def groups_of(values: xr.DataArray, replicates: int) -> int:
    """How many replicates the kept samples fall into: every k-th may skip some.

    Sample j that is kept is number j k (attribute `every`), so of replicate j k mod R, which
    repeats after R / gcd(R, k) samples.
    """
    if replicates < 1:
        raise AnalysisError(f"replicates is {replicates}; it must be 1 or more.")
    return replicates // math.gcd(replicates, int(values.attrs.get("every", 1)))


def t_factor(groups: int, confidence: float) -> float:
    """What the deviation of independent estimates is multiplied with for half an interval."""
    return float(special.stdtrit(groups - 1, (1 + confidence) / 2)) / math.sqrt(groups)


def t_interval(own: Floats, confidence: float) -> tuple[Floats, Floats]:
    """t interval over independent estimates, the last axis; NaN for a single one.

    True where an estimate is close to normal: for a quantile, where a group holds many samples
    beyond it.
    """
    if own.shape[-1] < 2:
        missing = np.full(own.shape[:-1], np.nan)
        return missing, missing
    centre = own.mean(axis=-1)
    half = t_factor(own.shape[-1], confidence) * own.std(axis=-1, ddof=1)
    return centre - half, centre + half


def over_groups(estimator: Callable[[NDArray], Floats], rows: NDArray, groups: int) -> Floats:
    """The estimator on each group of samples (the last axis of `rows`), on a new last axis."""
    return np.stack([estimator(rows[..., k::groups]) for k in range(groups)], axis=-1)
