"""The statistical checks themselves: quiet on the right law, loud on a wrong one."""

import numpy as np
import pytest
from scipy import stats

from tests.agreement import (
    assert_follows,
    assert_mean,
    assert_quantile,
    assert_same_law,
    assert_share,
    assert_tails_reached,
    assert_within_errors,
)

NUMBERS = np.random.default_rng(20261130)
EXPONENTIAL = NUMBERS.exponential(size=20_000)
OTHER = NUMBERS.exponential(size=3_000)
TOO_LONG = 1.15 * EXPONENTIAL


def test_the_right_law_passes_every_check():
    assert_follows(-np.expm1(-EXPONENTIAL))
    assert_tails_reached(-np.expm1(-EXPONENTIAL), np.exp(-EXPONENTIAL))
    assert_same_law(EXPONENTIAL, OTHER)
    assert_mean(EXPONENTIAL, 1.0, 1.0)
    assert_quantile(EXPONENTIAL, 0.999, -np.log(0.001))
    assert_share(int(np.sum(EXPONENTIAL > 7)), EXPONENTIAL.size, np.exp(-7))
    assert_within_errors(np.mean(EXPONENTIAL), np.mean(OTHER), (20_000**-0.5, 3_000**-0.5))


def test_times_too_long_by_15_percent_fail_every_check_of_the_bulk():
    with pytest.raises(AssertionError, match="not this law"):
        assert_follows(-np.expm1(-TOO_LONG))
    with pytest.raises(AssertionError, match="laws differ"):
        assert_same_law(TOO_LONG, OTHER)
    with pytest.raises(AssertionError, match="z = "):
        assert_mean(TOO_LONG, 1.0, 1.0)
    with pytest.raises(AssertionError, match="one-sided p"):
        assert_quantile(TOO_LONG, 0.9, -np.log(0.1))
    with pytest.raises(AssertionError, match="one-sided p"):
        assert_share(int(np.sum(TOO_LONG > 4)), TOO_LONG.size, np.exp(-4))
    with pytest.raises(AssertionError, match="standard errors"):
        assert_within_errors(np.mean(TOO_LONG), np.mean(OTHER), (20_000**-0.5, 3_000**-0.5))


@pytest.mark.parametrize("end", ["lower", "upper"])
def test_a_tail_that_stops_early_fails_where_kolmogorov_smirnov_is_blind(end: str):
    # a uniform of 1 - 2^-10 at most, as a generator of ten bits gives
    cut = 2.0**-10 + (1 - 2.0**-10) * -np.expm1(-EXPONENTIAL)
    whole = np.exp(-EXPONENTIAL)
    assert_follows(cut)
    with pytest.raises(AssertionError, match=f"the {end} tail"):
        assert_tails_reached(*((cut, whole) if end == "lower" else (whole, cut)))


def test_a_zero_that_should_be_impossible_fails():
    u = -np.expm1(-EXPONENTIAL)
    u[17] = 0.0
    with pytest.raises(AssertionError, match="the lower tail"):
        assert_tails_reached(u, np.exp(-EXPONENTIAL))


def test_infinite_samples_are_named_instead_of_compared():
    with pytest.raises(AssertionError, match="1 of 3 samples"):
        assert_mean([1.0, np.inf, 2.0], 1.5, 1.0)


def test_an_impossible_event_that_happened_fails():
    assert_share(0, 1000, 0.0)
    with pytest.raises(AssertionError, match="1 of 1000"):
        assert_share(1, 1000, 0.0)


CHECKS = {  # of samples that should be uniform
    "follows": assert_follows,
    "tails": lambda u, level: assert_tails_reached(u, 1 - u, level),
    "mean": lambda u, level: assert_mean(u, 0.5, 12**-0.5, level),
    "quantile": lambda u, level: assert_quantile(u, 0.9, 0.9, level),
    "same": lambda u, level: assert_same_law(u[:200], u[200:], level),
}


def test_false_alarms_are_as_rare_as_stated():
    """2,000 fresh sets at a level of 1 %: each check fires at most 1 % of the time.

    Itself a binomial check at a false-alarm rate of 1e-6.
    """
    level, repeats = 0.01, 2_000
    sets = np.random.default_rng(7).random((repeats, 400))
    fired = dict.fromkeys(CHECKS, 0)
    for u in sets:
        for name, check in CHECKS.items():
            try:
                check(u, level)
            except AssertionError:
                fired[name] += 1
    most = int(stats.binom.isf(1e-6 / len(fired), repeats, level))
    assert all(count <= most for count in fired.values()), (fired, most)
    # and not so blunt that it never fires
    assert min(fired.values()) > 0, fired
