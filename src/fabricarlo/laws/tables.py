"""Tables of the laws without an elementary quantile function, made in float64 on the host."""

from typing import Any

import numpy as np

from fabricarlo.laws.quantiles import LARGEST, SCORE_LIMIT, SCORE_STEPS

SCORES = np.arange(-SCORE_LIMIT, SCORE_LIMIT + 0.5 / SCORE_STEPS, 1 / SCORE_STEPS)
"""Normal scores of the knots of a tabulated law."""


def _density(score: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * score * score) / np.sqrt(2 * np.pi)


def _hermite(logarithm: np.ndarray, slope: np.ndarray) -> dict[str, np.ndarray]:
    """Levels, rises and slopes per knot; the last knot has no rise."""
    rise = np.append(np.diff(logarithm), 0.0)
    return {"level": np.exp(logarithm), "rise": rise, "slope": slope / SCORE_STEPS}


def gamma(parameters: dict[str, Any]) -> dict[str, Any]:
    """Table of log(Q/scale) of a gamma law against the normal score, exact slopes."""
    from scipy import special, stats

    shape = parameters["shape"]
    upper = SCORES > 0
    tail = special.ndtr(-np.abs(SCORES))
    value = np.where(upper, special.gammainccinv(shape, tail), special.gammaincinv(shape, tail))
    value = np.maximum(value, 1e-280)  # the value of a tiny shape underflows to nothing
    log_density = stats.gamma.logpdf(value, shape)
    slope = np.exp(np.log(_density(SCORES)) - log_density - np.log(value))
    # levels relative to the mean stay near 1 also for a large shape
    table = _hermite(np.log(value / shape), slope)
    return table | {"location": 0.0, "scale": parameters["scale"] * shape, "high": LARGEST}


def beta_shapes(parameters: dict[str, Any]) -> tuple[float, float]:
    """Both shapes of a beta law, also of a PERT law.

    A PERT law of weight k is the beta law with mean (low + k mode + high) / (k + 2). Source:
    D. G. Malcolm et al., Operations Research 7 (1959), with k = 4.
    """
    if "alpha" in parameters:
        return parameters["alpha"], parameters["beta"]
    width = parameters["high"] - parameters["low"]
    share = (parameters["mode"] - parameters["low"]) / width
    weight = parameters["weight"]
    return 1 + weight * share, 1 + weight * (1 - share)


def beta_small(first: float, second: float, tail: np.ndarray) -> np.ndarray:
    """Quantile of a beta law on (0, 1) by bisection in its logarithm.

    scipy's own inverse gives up at some points, the function that it inverts does not.
    """
    from scipy import special

    low, high = np.full(tail.shape, -690.0), np.zeros(tail.shape)
    for _ in range(64):
        middle = 0.5 * (low + high)
        below = special.betainc(first, second, np.exp(middle)) < tail
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.exp(high)


def beta(parameters: dict[str, Any]) -> dict[str, Any]:
    """Table of log Q of a beta law on (0, 1) against the normal score, exact slopes."""
    from scipy import special, stats

    first, second = beta_shapes(parameters)
    upper = SCORES > 0
    tail = special.ndtr(-np.abs(SCORES))
    # above the median the distance to 1 is the mirrored law's small quantile
    below, above = beta_small(first, second, tail), beta_small(second, first, tail)
    logarithm = np.where(upper, np.log1p(-np.where(upper, above, 0.5)), np.log(below))
    log_density = np.where(
        upper, stats.beta.logpdf(above, second, first), stats.beta.logpdf(below, first, second)
    )
    slope = np.exp(np.log(_density(SCORES)) - log_density - logarithm)
    low, high = parameters["low"], parameters["high"]
    return _hermite(logarithm, slope) | {"location": low, "scale": high - low, "high": high}


def _keys(upper: np.ndarray, distance: np.ndarray, knots: int) -> np.ndarray:
    """Sorting keys as in the quantile function; what pads the table is never reached."""
    key = np.full(knots, LARGEST)
    with np.errstate(divide="ignore"):
        key[: upper.size] = np.where(upper, 1 / distance, -1 / distance)
    return np.clip(key, -LARGEST, LARGEST)


def _padded(values: np.ndarray, knots: int) -> np.ndarray:
    return np.append(values, np.full(knots - values.size, values[-1]))


def empirical(parameters: dict[str, Any], knots: int) -> dict[str, Any]:
    """Knots of a law that is linear in u between its quantiles, split at the median."""
    probabilities = np.asarray(parameters["probabilities"])
    values = np.asarray(parameters["values"])
    if 0.5 not in probabilities:
        middle = np.interp(0.5, probabilities, values)
        place = int(np.searchsorted(probabilities, 0.5))
        probabilities = np.insert(probabilities, place, 0.5)
        values = np.insert(values, place, middle)
    upper = probabilities >= 0.5
    distance = np.where(upper, 1 - probabilities, probabilities)
    slope = np.append(np.diff(values) / np.abs(np.diff(distance)), 0.0)
    table = {"value": values, "distance": distance, "slope": slope}
    return {n: _padded(v, knots) for n, v in table.items()} | {"key": _keys(upper, distance, knots)}


def discrete(parameters: dict[str, Any], knots: int) -> dict[str, Any]:
    """Numbers with the probability below each, kept as the nearer end and its distance."""
    values, weights = np.asarray(parameters["values"]), np.asarray(parameters["weights"])
    below = np.concatenate([[0.0], np.cumsum(weights)[:-1]])
    from_here = np.cumsum(weights[::-1])[::-1]
    upper = from_here < below
    key = _keys(upper, np.where(upper, from_here, below), knots)
    return {"value": _padded(values, knots), "key": key}
