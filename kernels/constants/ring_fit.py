"""Smooth functions through simulated constants: what the scripts of this folder share."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from ring_draws import LAWS, moments
from scipy import special, stats

Reals = NDArray[np.float64]


class Family(NamedTuple):
    """A family of laws, its coordinate over [low, high], and members of other families in it."""

    low: float
    high: float
    degree: int
    also: tuple[tuple[str, float, float], ...] = ()  # family, shape, coordinate


FAMILIES = {
    "exponential": Family(-1.0, 1.0, 0),
    "normal": Family(-1.0, 1.0, 0),
    "uniform": Family(-1.0, 1.0, 0),
    "gamma": Family(0.0, 2.2361, 4, (("normal", 0.0, 0.0), ("exponential", 0.0, 1.0))),
    "weibull": Family(float(np.log(0.3)), float(np.log(10)), 5, (("exponential", 0.0, 0.0),)),
    "lognormal": Family(0.0, 2.0, 5, (("normal", 0.0, 0.0),)),
    "pareto": Family(-0.5, 0.5, 5, (("exponential", 0.0, 0.0),)),
}


def coordinate(family: str, shape: float) -> float:
    """The coordinate in which the constants of a family are smooth."""
    if family == "gamma":
        return shape**-0.5
    if family == "weibull":
        return float(np.log(shape))
    return shape


def members(family: str) -> list[tuple[int, float]]:
    """Number in LAWS and coordinate in [-1, 1] of every law that belongs to a family."""
    kind = FAMILIES[family]
    found = [
        (number, coordinate(family, shape))
        for number, (name, shape) in enumerate(LAWS)
        if name == family
    ]
    found += [(LAWS.index((name, shape)), y) for name, shape, y in kind.also]
    half, middle = (kind.high - kind.low) / 2, (kind.high + kind.low) / 2
    return sorted(((n, (y - middle) / half) for n, y in found), key=lambda pair: pair[1])


def quantile(number: int, log_below: Reals) -> Reals:
    """Quantile of the law of this number in LAWS where log F = log_below."""
    family, shape = LAWS[number]
    hazard = -np.log(-np.expm1(log_below))
    if family in ("spikes", "long_spikes"):
        over = hazard + np.log(shape)
        return np.where(over > 0, np.maximum(over, 0) if family == "long_spikes" else 1.0, 0.0)
    if family in ("normal", "lognormal"):
        score = -special.ndtri_exp(-hazard)
        score = np.where(log_below < -0.69, special.ndtri_exp(log_below), score)
        return score if family == "normal" else np.exp(shape * score)
    if family == "exponential":
        return hazard
    if family == "weibull":
        return hazard ** (1 / shape)
    if family == "pareto":
        return np.expm1(shape * hazard) / shape
    if family == "uniform":
        return np.exp(log_below)
    return stats.gamma(shape).isf(np.exp(-hazard))


def tensor(points: Sequence[Reals], degrees: Sequence[int]) -> Reals:
    """Products of powers of the coordinates, one row a point; the last coordinate runs fastest."""
    made = np.ones((len(points[0]), 1))
    for values, degree in zip(points, degrees, strict=True):
        powers = values[:, None] ** np.arange(degree + 1)
        made = (made[:, :, None] * powers[:, None, :]).reshape(len(values), -1)
    return made


def fitted(
    points: Sequence[Reals], degrees: Sequence[int], values: Reals, errors: Reals
) -> tuple[Reals, Reals]:
    """Coefficients [degree, degree, ...] of the polynomial nearest to the values, and the misses.

    Weighted by the errors; solved in Chebyshev polynomials, which keep the problem well posed.
    """
    bases = [np.polynomial.chebyshev.chebvander(p, d) for p, d in zip(points, degrees, strict=True)]
    design = np.ones((len(values), 1))
    for base in bases:
        design = (design[:, :, None] * base[:, None, :]).reshape(len(values), -1)
    solved = np.linalg.lstsq(design / errors[:, None], values / errors, rcond=1e-12)[0]
    misses = design @ solved - values
    solved = solved.reshape([d + 1 for d in degrees])
    for axis, degree in enumerate(degrees):
        change = np.zeros((degree + 1, degree + 1))
        for k in range(degree + 1):
            powers = np.polynomial.chebyshev.cheb2poly(np.eye(degree + 1)[k])
            change[: powers.size, k] = powers
        solved = np.moveaxis(np.tensordot(change, solved, axes=(1, axis)), 0, axis)
    return np.asarray(solved, np.float64), np.asarray(misses, np.float64)


def deviation(number: int) -> float:
    """Standard deviation of one hop."""
    return moments(*LAWS[number])[1]


def mean(number: int) -> float:
    """Mean of one hop."""
    return moments(*LAWS[number])[0]


def spike_members() -> list[tuple[int, float]]:
    """Number in LAWS and coordinate in [-1, 1] of every law of equal spikes: log10 eps."""
    return [
        (number, 1 + 0.5 * float(np.log10(share)))
        for number, (family, share) in enumerate(LAWS)
        if family == "spikes"
    ]


def standardised(number: int, values: Reals, hops: Reals, most: float, gumbel: Reals) -> Reals:
    """(T - (H - 1) m - M) / unit: what a wait has beyond its mean and its largest hop.

    H hops on every path, M the largest of `most` hops at the same level.
    """
    family = LAWS[number][0]
    unit = 1.0 if family == "pareto" else deviation(number)
    largest = quantile(number, -np.exp(-gumbel) / most)
    return (values - largest - (hops - 1) * mean(number)) / unit


def nested(values: Reals) -> str:
    """An array as nested tuples."""
    if values.ndim == 1:
        return "(" + ", ".join(f"{v:.6g}" for v in values) + ",)"
    between = "\n" if values.ndim > 2 else ""
    return f"({between}" + f",{between}".join(nested(v) for v in values) + f",{between})"
