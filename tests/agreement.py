"""Statistical checks with a stated false-alarm rate.

Every check fires on a correct program with probability at most `alpha` over fresh keys; tests
use fixed keys, so a test is a constant and alpha only says how likely the chosen key was unlucky.
Each has a test that it fails on a law that is wrong.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

FALSE_ALARM = 1e-6
"""Probability that one check fires on a correct program."""


def _finite(samples: ArrayLike, least: int = 2) -> NDArray[np.float64]:
    values = np.ravel(np.asarray(samples, dtype=np.float64))
    assert values.size >= least, f"{values.size} samples: give at least {least}"
    bad = int(values.size - np.isfinite(values).sum())
    assert bad == 0, f"{bad} of {values.size} samples are not finite"
    return values


def assert_follows(probabilities: ArrayLike, alpha: float = FALSE_ALARM) -> None:
    """F(samples) is uniform, for samples of the continuous law with the exact CDF F.

    Kolmogorov-Smirnov with the Dvoretzky-Kiefer-Wolfowitz bound D < sqrt(ln(2/alpha) / (2 n)),
    which holds for every n (Massart, Annals of Probability 18(3), 1990). Blind in the tails: see
    `assert_tails_reached` and `assert_share`.
    """
    u = np.sort(_finite(probabilities))
    assert np.all((u >= 0) & (u <= 1)), f"not probabilities: from {u[0]} to {u[-1]}"
    rank = np.arange(1, u.size + 1)
    distance = max(float(np.max(rank / u.size - u)), float(np.max(u - (rank - 1) / u.size)))
    limit = math.sqrt(math.log(2 / alpha) / (2 * u.size))
    assert distance < limit, (
        f"not this law: largest CDF gap {distance:.3g}, allowed {limit:.3g} "
        f"(n={u.size}, false alarm {alpha:.0e})"
    )


def assert_tails_reached(lower: ArrayLike, upper: ArrayLike, alpha: float = FALSE_ALARM) -> None:
    """Both ends of the unit interval are reached as often as they should be, and no more.

    `lower` is F(samples) and `upper` is 1 - F(samples), given apart so that neither is rounded.
    n min(u) is exponential, up to 1/n: it lies outside [alpha/4, ln(4/alpha)] with probability
    alpha/2 an end.
    """
    for end, given in (("lower", lower), ("upper", upper)):
        u = _finite(given)
        scaled = float(u.min()) * u.size
        least, most = alpha / 4, math.log(4 / alpha)
        assert least <= scaled <= most, (
            f"the {end} tail is wrong: n min(u) = {scaled:.3g}, allowed {least:.2g} to {most:.3g} "
            f"(n={u.size}, false alarm {alpha:.0e})"
        )


def assert_same_law(one: ArrayLike, other: ArrayLike, alpha: float = FALSE_ALARM) -> None:
    """Two independent sets of samples come from one continuous law.

    Two-sample Kolmogorov-Smirnov; the p-value takes the one-sample law at the effective size
    n m / (n + m), which is close for a few hundred samples each and more. Blind in the tails.
    """
    first, second = _finite(one), _finite(other)
    test = stats.ks_2samp(first, second, method="asymp")
    assert test.pvalue > alpha, (
        f"the laws differ: largest CDF gap {test.statistic:.4g} at {test.statistic_location:.6g}, "
        f"p={test.pvalue:.1e} (n={first.size}, {second.size}, false alarm {alpha:.0e})"
    )


def assert_mean(
    samples: ArrayLike, mean: float, standard_deviation: float, alpha: float = FALSE_ALARM
) -> None:
    """The samples have this mean, their standard deviation being known.

    |z| < Phi^-1(1 - alpha/2), 4.89 at 1e-6. Needs a mean that is near normal: not for a law whose
    variance sits in rare spikes, for which `assert_share` of the spikes is the check.
    """
    values = _finite(samples)
    error = standard_deviation / math.sqrt(values.size)
    z = float((np.mean(values) - mean) / error)
    limit = float(stats.norm.isf(alpha / 2))
    assert abs(z) < limit, (
        f"mean {np.mean(values):.6g}, expected {mean:.6g} +- {error:.2g}: z = {z:.2f}, allowed "
        f"{limit:.2f} (n={values.size}, false alarm {alpha:.0e})"
    )


def assert_share(count: int, trials: int, probability: float, alpha: float = FALSE_ALARM) -> None:
    """An event of this probability happened `count` times in `trials` independent trials.

    Exact binomial, alpha/2 a side: the check for tails and rare events.
    """
    law = stats.binom(trials, probability)
    side = min(float(law.cdf(count)), float(law.sf(count - 1)))
    assert side > alpha / 2, (
        f"{count} of {trials}, expected {trials * probability:.6g}: one-sided p = {side:.1e}, "
        f"allowed above {alpha / 2:.0e}"
    )


def assert_quantile(
    samples: ArrayLike, probability: float, value: float, alpha: float = FALSE_ALARM
) -> None:
    """`value` is the exact quantile of the continuous law of the samples.

    The count at or below it is binomial, so no density is needed.
    """
    values = _finite(samples)
    below = int(np.count_nonzero(values <= value))
    assert_share(below, values.size, probability, alpha)


def assert_within_errors(
    one: float,
    other: float,
    standard_errors: tuple[float, float],
    alpha: float = FALSE_ALARM,
) -> None:
    """Two independent estimates with normal standard errors estimate one number."""
    error = math.hypot(*standard_errors)
    limit = float(stats.norm.isf(alpha / 2))
    z = (one - other) / error
    assert abs(z) < limit, (
        f"{one:.6g} and {other:.6g} differ by {z:.2f} standard errors, allowed {limit:.2f} "
        f"(false alarm {alpha:.0e})"
    )
