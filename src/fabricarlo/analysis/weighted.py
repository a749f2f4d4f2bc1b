"""Quantiles of samples that are weighed: those of a sweep that draws rare tails often."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from fabricarlo.analysis.checks import AnalysisError

Floats = NDArray[np.float64]


class WeightedQuantile(NamedTuple):
    """Quantiles and their intervals, each in the shape of the probabilities asked for."""

    value: Floats
    low: Floats
    high: Floats


def weighted_quantile(
    values: ArrayLike, weights: ArrayLike, q: ArrayLike, confidence: float = 0.95
) -> WeightedQuantile:
    """Quantiles q of weighed independent samples [sample], and intervals of this confidence.

        p_k = (w_1 + ... + w_k - w_k / 3) / (W + w_k / 3),  W = all weights, values ascending

    is the probability of the k-th value, between neighbours linearly: for equal weights the
    median-unbiased rule (R. J. Hyndman, Y. Fan, The American Statistician 50 (1996) 361,
    definition 8). The interval holds the values whose probability lies within

        logit q +- z s / (q (1 - q)),   s^2 = sum of w_k^2 (1(x_k <= x_q) - q)^2 / W^2

    s being the deviation of a ratio estimate of the distribution function (A. B. Owen, Monte Carlo
    theory, methods and examples, 2013, 9.2), inverted as R. S. Woodruff does (Journal of the
    American Statistical Association 47, 635, 1952); the logit keeps it inside (0, 1). NaN where
    too few samples bound it. Samples that are not finite take no part. For scrambled Sobol' points
    it is too wide: they are not independent; the results of a sweep have intervals over replicates.
    Raises AnalysisError for weights that are negative, not finite, or none.
    """
    value, weight = _checked(values, weights)
    probability = np.asarray(q, np.float64)
    if not np.all((probability > 0) & (probability < 1)):
        raise AnalysisError(f"q is {q}; a quantile lies between 0 and 1, both excluded.")
    if not 0 < confidence < 1:
        raise AnalysisError(f"confidence is {confidence}; it lies between 0 and 1, e.g. 0.95.")
    order = np.argsort(value, kind="stable")
    value, weight = value[order], weight[order]
    place = _probabilities(weight)
    flat = probability.reshape(-1)
    found = np.interp(flat, place, value)
    deviation = _deviation(value, weight, found, flat)
    half = special.ndtri((1 + confidence) / 2) * deviation / (flat * (1 - flat))
    centre = special.logit(flat)
    low = np.interp(special.expit(centre - half), place, value, left=np.nan)
    high = np.interp(special.expit(centre + half), place, value, right=np.nan)
    return WeightedQuantile(*(a.reshape(probability.shape) for a in (found, low, high)))


def quantile_of(values: Floats, weights: Floats, q: Floats) -> Floats:
    """Weighed quantiles [q] of finite values by the same rule, without intervals."""
    order = np.argsort(values, kind="stable")
    return np.interp(q, _probabilities(weights[order]), values[order])


def _checked(values: ArrayLike, weights: ArrayLike) -> tuple[Floats, Floats]:
    value, weight = np.asarray(values, np.float64), np.asarray(weights, np.float64)
    if value.ndim != 1 or value.shape != weight.shape:
        raise AnalysisError(
            f"values have the shape {value.shape} and weights {weight.shape}; give one of both for "
            "every sample of one cell."
        )
    if not np.all(np.isfinite(weight) & (weight >= 0)):
        raise AnalysisError("weights must be finite and not negative; give those of the store.")
    used = np.isfinite(value) & (weight > 0)
    if not used.any():
        raise AnalysisError("no finite value has a weight; there is no quantile.")
    return value[used], weight[used]


def _probabilities(weights: Floats) -> Floats:
    """The probability of every value; it increases, whatever the weights are."""
    upto = np.cumsum(weights)
    return (upto - weights / 3) / (upto[-1] + weights / 3)


def _deviation(values: Floats, weights: Floats, found: Floats, q: Floats) -> Floats:
    """Standard error of the distribution function at the quantiles found."""
    squares = np.concatenate([[0.0], np.cumsum(weights**2)])
    below = squares[np.searchsorted(values, found, side="right")]
    above = squares[-1] - below
    return np.sqrt(below * (1 - q) ** 2 + above * q**2) / weights.sum()
