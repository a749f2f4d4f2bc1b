"""Quantiles and moments of the largest of N independent draws, slowly and to many digits.

The largest of N has P(M <= x) = F(x)^N, so its quantile q is the point where a single draw
survives with probability p = 1 - q^(1/N). Quantiles are evaluated by mpmath with 60 digits, which
leaves 40 after the cancellation in 1 - q^(1/N); moments are float64 quadratures by SciPy over the
logarithm of the exponential variate E = -log q.

A law is a name and a dictionary of parameters, spelled as in ``maxn_quantiles.csv``.
"""

import math
from collections.abc import Callable, Mapping
from itertools import pairwise

import mpmath
from scipy import integrate, stats

DIGITS = 60

Parameters = Mapping[str, float]


def survival_of_largest(probability: "mpmath.mpf | str", count: int) -> mpmath.mpf:
    """Survival probability of one draw at the quantile `probability` of the largest of `count`."""
    with mpmath.workdps(DIGITS):
        return -mpmath.expm1(mpmath.log(mpmath.mpf(probability)) / count)


def _exponential(survival: mpmath.mpf, law: Parameters) -> mpmath.mpf:
    return mpmath.mpf(law.get("shift", 0)) - mpmath.mpf(law["scale"]) * mpmath.log(survival)


def _weibull(survival: mpmath.mpf, law: Parameters) -> mpmath.mpf:
    return mpmath.mpf(law["scale"]) * (-mpmath.log(survival)) ** (1 / mpmath.mpf(law["k"]))


def _generalised_pareto(survival: mpmath.mpf, law: Parameters) -> mpmath.mpf:
    index = mpmath.mpf(str(law["xi"]))
    return mpmath.mpf(law["scale"]) * mpmath.expm1(-index * mpmath.log(survival)) / index


def _normal(survival: mpmath.mpf, law: Parameters) -> mpmath.mpf:
    score = mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * survival)
    return mpmath.mpf(law["mean"]) + mpmath.mpf(law["sd"]) * score


def _lognormal(survival: mpmath.mpf, law: Parameters) -> mpmath.mpf:
    score = _normal(survival, {"mean": 0, "sd": 1})
    return mpmath.exp(mpmath.mpf(str(law["mu"])) + mpmath.mpf(str(law["sigma"])) * score)


def _gamma(survival: mpmath.mpf, law: Parameters) -> mpmath.mpf:
    shape = mpmath.mpf(law["shape"])
    near = float(stats.gamma.isf(float(survival), float(shape)))
    if survival > 0.5:
        near = float(stats.gamma.ppf(float(1 - survival), float(shape)))
    point = mpmath.mpf(near)
    for _ in range(3):  # Newton from 15 digits: 30, 60
        excess = mpmath.gammainc(shape, point, regularized=True) - survival
        density = mpmath.exp((shape - 1) * mpmath.log(point) - point) / mpmath.gamma(shape)
        point += excess / density
    return mpmath.mpf(law["scale"]) * point


_QUANTILES: dict[str, Callable[[mpmath.mpf, Parameters], mpmath.mpf]] = {
    "exp": _exponential,
    "shifted_exp": _exponential,
    "weibull": _weibull,
    "gpd": _generalised_pareto,
    "normal": _normal,
    "lognormal": _lognormal,
    "gamma": _gamma,
}


def largest_quantile(law: str, parameters: Parameters, count: int, probability: str) -> float:
    """Quantile of the largest of `count` draws; `probability` is a decimal string, read exactly."""
    with mpmath.workdps(DIGITS):
        survival = survival_of_largest(probability, count)
        return float(_QUANTILES[law](survival, parameters))


def largest_of_exponential(law: str, parameters: Parameters, count: int, variate: str) -> float:
    """The largest of `count` draws where the exponential variate E = -log q has this value."""
    with mpmath.workdps(DIGITS):
        survival = -mpmath.expm1(-mpmath.mpf(variate) / count)
        return float(_QUANTILES[law](survival, parameters))


def _root(excess: Callable[[mpmath.mpf], mpmath.mpf], low: float, high: float) -> float:
    """Root of a decreasing function by bisection in the logarithm, to 1e-17 relative."""
    below, above = mpmath.log(mpmath.mpf(low)), mpmath.log(mpmath.mpf(high))
    for _ in range(70):
        middle = (below + above) / 2
        if excess(mpmath.exp(middle)) > 0:
            below = middle
        else:
            above = middle
    return float(mpmath.exp((below + above) / 2))


def _normal_survival(score: mpmath.mpf) -> mpmath.mpf:
    return mpmath.erfc(score / mpmath.sqrt(2)) / 2


def spiked_survival(point: mpmath.mpf, law: Parameters) -> mpmath.mpf:
    """Survival of (1 - eps) lognormal(mu, sigma) + eps (shift + exponential(scale))."""
    share = mpmath.mpf(str(law["eps"]))
    score = (mpmath.log(point) - mpmath.mpf(str(law["mu"]))) / mpmath.mpf(str(law["sigma"]))
    beyond = mpmath.mpf(point) - mpmath.mpf(law["shift"])
    spike = mpmath.exp(-beyond / mpmath.mpf(law["scale"])) if beyond > 0 else mpmath.mpf(1)
    return (1 - share) * _normal_survival(score) + share * spike


def largest_spiked_quantile(law: Parameters, count: int, probability: str) -> float:
    """Quantile of the largest of `count` draws of the spike mixture, by bisection."""
    with mpmath.workdps(40):
        survival = mpmath.mpf(survival_of_largest(probability, count))
        return _root(lambda x: spiked_survival(x, law) - survival, 1e-6, 1e5)


def two_group_quantile(
    counts: tuple[int, int], laws: tuple[Parameters, Parameters], probability: str
) -> float:
    """Quantile of the largest over two groups of lognormal draws: root of F1^N1 F2^N2 = q."""
    with mpmath.workdps(40):
        target = mpmath.log(mpmath.mpf(probability))

        def excess(point: mpmath.mpf) -> mpmath.mpf:
            total = mpmath.mpf(0)
            for count, law in zip(counts, laws, strict=True):
                score = (mpmath.log(point) - mpmath.mpf(str(law["mu"]))) / law["sigma"]
                total += count * mpmath.log1p(-_normal_survival(score))
            return target - total

        return _root(excess, 1e-3, 1e3)


def distribution(law: str, parameters: Parameters) -> "stats.rv_frozen":
    """The SciPy distribution of a law."""
    if law in ("exp", "shifted_exp"):
        return stats.expon(loc=parameters.get("shift", 0.0), scale=parameters["scale"])
    if law == "weibull":
        return stats.weibull_min(parameters["k"], scale=parameters["scale"])
    if law == "gpd":
        return stats.genpareto(parameters["xi"], scale=parameters["scale"])
    if law == "gamma":
        return stats.gamma(parameters["shape"], scale=parameters["scale"])
    if law == "normal":
        return stats.norm(parameters["mean"], parameters["sd"])
    if law == "lognormal":
        return stats.lognorm(parameters["sigma"], scale=math.exp(parameters["mu"]))
    raise KeyError(law)


def _largest(law: str, parameters: Parameters, count: float) -> Callable[[float], float]:
    """Float64 map from the exponential variate E to the largest of `count` draws."""
    single = distribution(law, parameters)

    def largest(variate: float) -> float:
        rate = variate / count
        if rate > math.log(2):
            return float(single.ppf(math.exp(-rate)))
        return float(single.isf(-math.expm1(-rate)))

    return largest


def largest_moments(law: str, parameters: Parameters, count: float) -> tuple[float, float]:
    """Mean and standard deviation of the largest of `count` draws.

    Integrates M(E) exp(-E) dE over log E, piecewise; the deviation from the centred square. The
    range of log E ends at -100, so a tail index of 1/2 or more (no variance) is not covered.
    """
    largest = _largest(law, parameters, count)

    def expectation(function: Callable[[float], float]) -> float:
        def integrand(logarithm: float) -> float:
            variate = math.exp(logarithm)
            return function(largest(variate)) * math.exp(logarithm - variate)

        pieces = [-100.0, -40.0, -20.0, -10.0, -5.0, -2.0, 0.0, 1.0, 2.0, 3.0, 4.0]
        return math.fsum(
            integrate.quad(integrand, low, high, epsabs=0, epsrel=1e-10, limit=200)[0]
            for low, high in pairwise(pieces)
        )

    mean = expectation(lambda x: x)
    return mean, math.sqrt(expectation(lambda x: (x - mean) ** 2))


def sampled_largest(
    law: str, parameters: Parameters, count: float, variates: "list[float]"
) -> list[float]:
    """The largest of `count` draws for each exponential variate, in float64."""
    largest = _largest(law, parameters, count)
    return [largest(variate) for variate in variates]


def spiked_moments(law: Parameters, count: float) -> tuple[float, float]:
    """Mean and deviation of the largest of `count` draws of the spike mixture, by quadrature.

    Uses E M^k = integral of k x^(k-1) P(M > x) dx over log x; the law is positive.
    """

    def survival(point: float) -> float:
        body = stats.norm.sf((math.log(point) - law["mu"]) / law["sigma"])
        spike = math.exp(-max(0.0, point - law["shift"]) / law["scale"])
        single = min((1 - law["eps"]) * float(body) + law["eps"] * spike, 1.0)
        return 1.0 if single >= 1.0 else -math.expm1(count * math.log1p(-single))

    def power(order: int) -> float:
        def integrand(logarithm: float) -> float:
            return order * math.exp(order * logarithm) * survival(math.exp(logarithm))

        kink = math.log(law["shift"])
        top = math.log(law["shift"] + law["scale"] * (60.0 + math.log(count)) + 1.0)
        body = law["mu"] + 9.0 * law["sigma"]
        pieces = sorted({kink - 40.0, kink - 8.0, kink, min(body, top), top})
        return math.fsum(
            integrate.quad(integrand, low, high, epsabs=0, epsrel=1e-9, limit=400)[0]
            for low, high in pairwise(pieces)
        )

    mean = power(1)
    return mean, math.sqrt(power(2) - mean * mean)
