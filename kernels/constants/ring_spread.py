"""How far a ring's finishing time spreads about its median: what fits a simulated sample best.

Above the median T_q - T_50 = hypot(a (z_q - z_50), M_q - M_50), below it a (z_q - z_50): z is a
normal score with the skewness of the Tracy and Widom law, M the largest of all hops.
"""

import numpy as np
from ring_draws import LAWS
from ring_fit import Reals, deviation, quantile
from scipy import special
from scipy.optimize import minimize_scalar

SKEWNESS = 0.29
MIDDLE = -SKEWNESS / 6  # the median of the reduced finishing time


def place(ranks: Reals) -> Reals:
    """The coordinate of a size in [-1, 1]: log2 N from 1 to 12."""
    return (np.log2(ranks) - 6.5) / 5.5


def unit_of(number: int) -> float:
    """What the constants of a law are counted in."""
    return 1.0 if LAWS[number][0] == "pareto" else deviation(number)


def score_with_skew(score: Reals) -> Reals:
    """The reduced finishing time of a light law from a normal score: skewness 0.29.

    That of the Tracy and Widom law of the orthogonal ensemble, 0.2935 (Bornemann, Markov
    Processes Relat. Fields 16, 2010).
    """
    return score + SKEWNESS / 6 * (score * score - 1)


def spread_of(number: int, hops: int, times: Reals) -> float:
    """Width a that fits the upper quantiles best.

    T_q - T_50 = hypot(a (z_q - z_50), M_q - M_50), M the largest of all `hops`.
    """
    levels = np.array([0.75, 0.9, 0.95, 0.99, 0.999])
    levels = levels[levels < 1 - 25 / times.size]
    rise = np.quantile(times, levels) - np.quantile(times, 0.5)
    score, jumps = score_with_skew(special.ndtri(levels)) - MIDDLE, _jump(number, hops, levels)
    return float(
        minimize_scalar(
            lambda a: float(np.sum((np.hypot(a * score, jumps) - rise) ** 2)),
            bounds=(0.05 * float((rise / score).max()), float((rise / score).max())),
            method="bounded",
        ).x  # pyright: ignore
    )


def offset_of(number: int, hops: int, width: float) -> float:
    """The mean of the spread of this width, over it."""
    points = (np.arange(20_000) + 0.5) / 20_000
    scores = width * (score_with_skew(special.ndtri(points)) - MIDDLE)
    made = np.where(points < 0.5, scores, np.hypot(scores, _jump(number, hops, points)))
    return float(made.mean()) / width


def _jump(number: int, hops: int, probability: Reals) -> Reals:
    """The largest hop's quantiles above its median."""
    half = quantile(number, np.array([np.log(0.5) / hops]))
    return np.maximum(quantile(number, np.log(probability) / hops) - half, 0)


def offset_at(number: int, ranks: int, unit: float, phases: int, width: float) -> float:
    """The offset of a ring whose width has this logarithm."""
    steps = phases * (ranks - 1)
    width = float(np.exp(width)) * unit * steps ** (1 / 3)
    return offset_of(number, steps * ranks, width)
