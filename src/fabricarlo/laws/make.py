"""Laws from their parameters: what makes numbers a law, and one way to hold each."""

import math
from collections.abc import Mapping
from itertools import pairwise

from fabricarlo.laws.forms import PERT_WEIGHT
from fabricarlo.laws.law import NORMAL_99, Law, Parameter


class LawError(ValueError):
    """Parameters that make no law."""


def _require(holds: bool, text: str) -> None:  # noqa: FBT001 (a condition, not an option)
    if not holds:
        raise LawError(text)


def _ordered(p: Mapping[str, float], *names: str) -> None:
    for low, high in pairwise(names):
        _require(p[low] <= p[high], f"{low} ({p[low]:g}) is above {high} ({p[high]:g}); swap them.")
    _require(
        p[names[0]] < p[names[-1]],
        f"{names[0]} and {names[-1]} are equal ({p[names[0]]:g}); set the quantity instead.",
    )


def _positive(p: Mapping[str, float], *names: str) -> None:
    for name in names:
        if name in p:
            _require(p[name] > 0, f"{name} is {p[name]:g}; it must be above 0.")


def _within(p: Mapping[str, float], name: str, low: float, high: float) -> None:
    _require(low <= p[name] <= high, f"{name} is {p[name]:g}; allowed is {low:g} to {high:g}.")


def _lognormal(p: dict[str, float]) -> dict[str, float]:
    _positive(p, *p)
    if "p99" in p:
        _ordered(p, "median", "p99")
        return {"median": p["median"], "sigma": math.log(p["p99"] / p["median"]) / NORMAL_99}
    if "cv" in p:
        grown = 1 + p["cv"] ** 2
        return {"median": p["mean"] / math.sqrt(grown), "sigma": math.sqrt(math.log(grown))}
    return p


def _gamma(p: dict[str, float]) -> dict[str, float]:
    _positive(p, *p)
    if "cv" in p:
        shape = 1 / p["cv"] ** 2
        p = {"shape": shape, "scale": p["mean"] / shape}
    _within(p, "shape", 0.1, 1e6)
    return p


def _weibull(p: dict[str, float]) -> dict[str, float]:
    _positive(p, *p)
    _within(p, "shape", 0.2, 100)
    if "mean" in p:
        return {"shape": p["shape"], "scale": p["mean"] / math.gamma(1 + 1 / p["shape"])}
    return p


def _beta(p: dict[str, float]) -> dict[str, float]:
    for name in ("alpha", "beta"):
        _within(p, name, 0.1, 1e6)
    _ordered(p, "low", "high")
    return p


def _pert(p: dict[str, float]) -> dict[str, float]:
    p = {"weight": PERT_WEIGHT} | p
    _ordered(p, "low", "mode", "high")
    _within(p, "weight", 0.01, 1000)
    return p


def _truncated_normal(p: dict[str, float]) -> dict[str, float]:
    _require(len(p) > 2, "low or high is needed; without both it is a normal law.")
    _positive(p, "deviation")
    p = {"mean": p["mean"], "deviation": p["deviation"]} | {
        "low": p.get("low", -math.inf),
        "high": p.get("high", math.inf),
    }
    _ordered(p, "low", "high")
    low, high = ((p[end] - p["mean"]) / p["deviation"] for end in ("low", "high"))
    nearest = max(low, -high, 0.0)
    _require(
        nearest <= 8, f"the mean is {nearest:.3g} deviations outside low to high; at most 8 work."
    )
    return p


def _spaced(p: dict[str, float]) -> dict[str, float]:
    _ordered(p, "low", "high")
    return p


def _loguniform(p: dict[str, float]) -> dict[str, float]:
    _positive(p, *p)
    return _spaced(p)


def _triangular(p: dict[str, float]) -> dict[str, float]:
    _ordered(p, "low", "mode", "high")
    return p


def _normal(p: dict[str, float]) -> dict[str, float]:
    _positive(p, "deviation")
    return p


def _pareto(p: dict[str, float]) -> dict[str, float]:
    _positive(p, "scale")
    _require(-1 <= p["shape"] < 1, f"shape is {p['shape']:g}; allowed is -1 to below 1.")
    return p


def _shifted(p: dict[str, float]) -> dict[str, float]:
    _positive(p, "scale")
    return p


def _spikes(p: dict[str, float]) -> dict[str, float]:
    _positive(p, "spike")
    _within(p, "probability", 1e-15, 1)
    return p


_CHECKS = {
    "uniform": _spaced,
    "loguniform": _loguniform,
    "normal": _normal,
    "truncated_normal": _truncated_normal,
    "lognormal": _lognormal,
    "gamma": _gamma,
    "weibull": _weibull,
    "beta": _beta,
    "pert": _pert,
    "triangular": _triangular,
    "generalised_pareto": _pareto,
    "shifted_exponential": _shifted,
    "spikes": _spikes,
}


def _empirical(probabilities: tuple[float, ...], values: tuple[float, ...]) -> Law:
    _require(
        len(probabilities) == len(values),
        f"{len(probabilities)} probabilities for {len(values)} values; give one a value.",
    )
    _require(2 <= len(values) <= 1024, f"{len(values)} points; allowed is 2 to 1024.")
    _require(
        all(a < b for a, b in pairwise(probabilities)),
        "probabilities do not increase; sort them.",
    )
    _require(
        probabilities[0] == 0 and probabilities[-1] == 1,
        f"probabilities go from {probabilities[0]:g} to {probabilities[-1]:g}; they must go from "
        "0 to 1: add the smallest and the largest value.",
    )
    _require(
        all(a <= b for a, b in pairwise(values)),
        "values fall while probabilities rise; sort them.",
    )
    return Law("empirical", (("probabilities", probabilities), ("values", values)))


def _discrete(values: tuple[float, ...], weights: tuple[float, ...] | None) -> Law:
    weights = weights or (1.0,) * len(values)
    _require(
        len(weights) == len(values),
        f"{len(weights)} weights for {len(values)} values; give one a value.",
    )
    _require(1 <= len(values) <= 1024, f"{len(values)} values; allowed is 1 to 1024.")
    _require(
        min(weights) >= 0 and sum(weights) > 0,
        "weights must not be negative and not all be 0.",
    )
    _require(len(set(values)) == len(values), "a value stands twice; add its weights.")
    drawn = sorted((v, w) for v, w in zip(values, weights, strict=True) if w > 0)
    total = math.fsum(weights)
    return Law(
        "discrete",
        (("values", tuple(v for v, _ in drawn)), ("weights", tuple(w / total for _, w in drawn))),
    )


def make(kind: str, parameters: Mapping[str, Parameter]) -> Law:
    """A law from numbers in SI, completed and checked.

    `parameters` are those of one of the forms in LAWS; equal laws written in different forms give
    equal Laws. Raises LawError, whose text says what was found and what is allowed.
    """
    if kind == "empirical":
        return _empirical(_many(parameters, "probabilities"), _many(parameters, "values"))
    if kind == "discrete":
        weights = _many(parameters, "weights") if "weights" in parameters else None
        return _discrete(_many(parameters, "values"), weights)
    numbers = {n: float(v) for n, v in parameters.items() if not isinstance(v, tuple)}
    made = _CHECKS[kind](numbers) if kind in _CHECKS else numbers
    return Law(kind, tuple(sorted(made.items())))


def _many(parameters: Mapping[str, Parameter], name: str) -> tuple[float, ...]:
    value = parameters[name]
    return value if isinstance(value, tuple) else (value,)
