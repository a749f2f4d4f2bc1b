"""Whether a simulated number of a table and the product's own can be of one law.

Every test has a false alarm of about 1e-6: 4.9 standard errors, or the exact counterpart.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from fabricarlo.validation.report import Row, Verdict

FALSE_ALARM = 1e-6
ERRORS = 4.9


def judged(name: str, reference: float, found: float, unit: str, measure: tuple[str, bool]) -> Row:
    """A row with its verdict, from how far apart the numbers are and whether that is allowed."""
    deviation, right = measure
    verdict: Verdict = "pass" if right else "fail"
    return Row(name, reference, found, unit, deviation, verdict, "" if right else "not of one law")


def within(
    reference: float, found: float, error: float, relative: float = 0.005
) -> tuple[str, bool]:
    """Within 4.9 standard errors of the difference, or the share `relative` of the reference."""
    apart = abs(found - reference)
    share = apart / abs(reference) if reference else math.inf if apart else 0.0
    right = apart <= ERRORS * error or share <= relative
    shown = f"{share:.2g} relative"
    return (f"{apart / error:.2f} standard errors, {shown}" if error else shown), right


def counted(count: int, trials: int, chance: float) -> tuple[str, bool]:
    """A count of `trials` independent events of this chance: exact binomial, both sides."""
    law = stats.binom(trials, min(max(chance, 0.0), 1.0))
    side = min(float(law.cdf(count)), float(law.sf(count - 1)))
    return f"one-sided p = {side:.2g}, expected {trials * chance:.4g}", side > FALSE_ALARM / 2


def both_counted(count: int, trials: int, own_count: int, own_trials: int) -> tuple[str, bool]:
    """Two counts of events of one unknown chance: exact, given their sum (Fisher)."""
    law = stats.hypergeom(trials + own_trials, count + own_count, trials)
    side = min(float(law.cdf(count)), float(law.sf(count - 1)))
    return f"one-sided p = {side:.2g}", side > FALSE_ALARM / 2


def quantile(
    value: float, level: float, trials: int, samples: NDArray[np.float64]
) -> tuple[str, bool]:
    """`value` was the `level` quantile of `trials` draws of the law of `samples`.

    At least level x trials draws were at or below it and at most that many below, one more or
    less for the rule of interpolation: each is a count against that of the samples.
    """
    rank = level * trials
    slack = 1e-6 * abs(value)
    up_to = int(np.count_nonzero(samples <= value + slack))
    below = int(np.count_nonzero(samples < value - slack))
    own = samples.size
    few, many = max(math.floor(rank) - 1, 0), min(math.ceil(rank) + 1, trials)
    reached = stats.hypergeom(trials + own, up_to + few, trials).sf(few - 1)
    passed = stats.hypergeom(trials + own, below + many, trials).cdf(many)
    side = min(float(reached), float(passed))
    return f"one-sided p = {side:.2g}", side > FALSE_ALARM / 2
