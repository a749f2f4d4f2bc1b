"""What the weighed samples of one cell say: the estimates of a sweep with tails."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fabricarlo.summaries.estimate import CONFIDENCE, Estimates

Floats = NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class Weighed(Estimates):
    """Estimates of one cell, and the shares of every code of its flags."""

    shares: dict[str, Floats]


def weighed_estimates(
    numbers: Sequence[NDArray[np.floating]],
    flags: Mapping[str, tuple[NDArray[np.integer], int]],
    weights: NDArray[np.floating],
    replicates: int,
    quantiles: Sequence[float],
) -> Weighed:
    """Estimates of outputs [sample] each, and of flags with their number of codes.

    Everything but count, smallest and largest is weighed, as `analysis.weighted` has it. Intervals
    are 95 % t intervals over the replicates' own estimates, as without weights. Samples that are
    not finite take no part.
    """
    probabilities = np.asarray(quantiles, np.float64)
    weight = weights.astype(np.float64)
    found = [_one(v.astype(np.float64), weight, replicates, probabilities) for v in numbers]
    names = [f.name for f in dataclasses.fields(Estimates)]
    stacked = {n: np.array([f[n] for f in found]) for n in names}
    shares = {name: _shares(codes, weight, count) for name, (codes, count) in flags.items()}
    return Weighed(**stacked, shares=shares)


def _shares(codes: NDArray[np.integer], weight: Floats, count: int) -> Floats:
    used = (codes >= 0) & (codes < count)
    sums = np.bincount(codes[used], weight[used], count)
    return sums / max(weight.sum(), np.finfo(np.float64).tiny)


def _one(
    values: Floats, weight: Floats, replicates: int, probabilities: Floats
) -> dict[str, NDArray[np.float64] | float | int]:
    from fabricarlo.analysis.replicates import t_interval  # here: only such sweeps pay for them
    from fabricarlo.analysis.weighted import quantile_of

    finite = np.isfinite(values)
    value, its = values[finite], weight[finite]
    nothing = np.full(len(probabilities), np.nan)
    own_means, own = np.full(replicates, np.nan), np.full((len(probabilities), replicates), np.nan)
    for r in range(replicates):
        some, theirs = values[r::replicates], weight[r::replicates]
        some, theirs = some[finite[r::replicates]], theirs[finite[r::replicates]]
        if len(some):
            own_means[r] = np.average(some, weights=theirs)
            own[:, r] = quantile_of(some, theirs, probabilities)
    mean = np.average(value, weights=its) if len(value) else np.nan
    return {
        "count": len(value),
        "nonfinite": len(values) - len(value),
        "mean": mean,
        "std": _deviation(value, its, mean),
        "min": value.min() if len(value) else np.nan,
        "max": value.max() if len(value) else np.nan,
        "quantile": quantile_of(value, its, probabilities) if len(value) else nothing,
        "mean_interval": np.stack(t_interval(own_means, CONFIDENCE), -1),
        "quantile_interval": np.stack(t_interval(own, CONFIDENCE), -1),
    }


def _deviation(values: Floats, weights: Floats, mean: float) -> float:
    """Standard deviation of the law; for equal weights with the divisor count - 1."""
    if len(values) < 2:
        return np.nan
    total = weights.sum()
    left = total - (weights**2).sum() / total
    return float(np.sqrt((weights * (values - mean) ** 2).sum() / left))
