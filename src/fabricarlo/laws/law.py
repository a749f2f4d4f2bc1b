"""A law on the host: its parameters, what its quantile function needs, its mean and its reach."""

import dataclasses
import math
from typing import Any

import numpy as np

from fabricarlo.laws import tables
from fabricarlo.laws.quantiles import LARGEST, Signature

Parameter = float | tuple[float, ...]

SHALLOW = 2.0**-33  # the smallest distance of a uniform of 31 bits
NORMAL_99 = 2.3263478740408408  # Phi^-1(0.99)

_TABULATED = ("gamma", "beta", "pert")
_ALWAYS_DEEP = ("generalised_pareto", "spikes")


@dataclasses.dataclass(frozen=True)
class Law:
    """A law of one random quantity, as the quantile function of one uniform.

    Make one with :func:`fabricarlo.laws.make`, which checks and completes the parameters.
    """

    kind: str
    parameters: tuple[tuple[str, Parameter], ...]

    def __getitem__(self, name: str) -> Any:
        """A parameter: a float, or a tuple of them."""
        return dict(self.parameters)[name]

    @property
    def deep(self) -> bool:
        """Whether its uniform has 63 bits, because its tail matters beyond 1 in 2^33."""
        return self.kind in _ALWAYS_DEEP or (self.kind == "weibull" and self["shape"] < 1)

    @property
    def signature(self) -> Signature:
        """What is compiled: the form of the quantile function and every static size."""
        if self.kind in _TABULATED:
            return ("tabulated", tables.SCORES.size)
        if self.kind in ("empirical", "discrete"):
            points = len(self["values"]) + (self.kind == "empirical")
            return (self.kind, 1 << max(0, math.ceil(math.log2(points))))
        return (self.kind, "deep") if self.deep else (self.kind,)

    def prepared(self, dtype: Any = np.float32) -> dict[str, np.ndarray]:
        """The numbers of the quantile function: scalars and tables of the signature's length."""
        numbers = _PREPARED.get(self.kind, _as_they_are)(self)
        limit = LARGEST
        return {n: np.clip(np.asarray(v), -limit, limit).astype(dtype) for n, v in numbers.items()}

    @property
    def mean(self) -> float:
        """Expected value."""
        if self.kind in _BY_HAND:
            return _BY_HAND[self.kind](self)
        return float(_scipy(self).mean())

    @property
    def support(self) -> tuple[float, float]:
        """Infimum and supremum of the values."""
        if self.kind in _BY_HAND:
            return _ends(self)
        low, high = _scipy(self).support()
        return float(low), float(high)

    @property
    def reach(self) -> tuple[float, float]:
        """The values at u = 2^-33 and 1 - 2^-33: what a sweep can practically meet."""
        if self.kind == "spikes":
            return self["base"], self["base"] + self["spike"] * max(
                0.0, math.log(self["probability"] / SHALLOW)
            )
        if self.kind in _BY_HAND:
            return _ends(self)
        if self.kind in ("beta", "pert"):
            return _reach_of_beta(self)
        law = _scipy(self)
        return float(law.ppf(SHALLOW)), float(law.isf(SHALLOW))


def _reach_of_beta(law: Law) -> tuple[float, float]:
    first, second = tables.beta_shapes(dict(law.parameters))
    tail, low, high = np.array([SHALLOW]), law["low"], law["high"]
    below, above = tables.beta_small(first, second, tail), tables.beta_small(second, first, tail)
    return low + (high - low) * float(below[0]), high - (high - low) * float(above[0])


def _ends(law: Law) -> tuple[float, float]:
    if law.kind == "constant":
        return law["value"], law["value"]
    if law.kind == "spikes":
        return law["base"], math.inf
    return law["values"][0], law["values"][-1]


def _mean_of_table(law: Law) -> float:
    shares, values = np.diff(law["probabilities"]), np.asarray(law["values"])
    return float(np.sum(shares * (values[1:] + values[:-1]) / 2))


_BY_HAND = {
    "constant": lambda law: law["value"],
    "spikes": lambda law: law["base"] + law["probability"] * law["spike"],
    "empirical": _mean_of_table,
    "discrete": lambda law: float(np.dot(law["weights"], law["values"])),
}


def _scipy(law: Law) -> Any:
    """The law as scipy knows it, in float64: (family, shapes..., location, scale)."""
    from scipy import stats

    if {"low", "high"} <= {name for name, _ in law.parameters}:
        return _between(law, stats)
    match law.kind:
        case "normal":
            return stats.norm(law["mean"], law["deviation"])
        case "lognormal":
            return stats.lognorm(law["sigma"], 0, law["median"])
        case "gamma":
            return stats.gamma(law["shape"], 0, law["scale"])
        case "weibull":
            return stats.weibull_min(law["shape"], 0, law["scale"])
        case "generalised_pareto":
            return stats.genpareto(law["shape"], law["location"], law["scale"])
        case _:
            return stats.expon(law["location"], law["scale"])


def _between(law: Law, stats: Any) -> Any:
    low, width = law["low"], law["high"] - law["low"]
    match law.kind:
        case "uniform":
            return stats.uniform(low, width)
        case "loguniform":
            return stats.loguniform(low, law["high"])
        case "truncated_normal":
            ends = ((law[end] - law["mean"]) / law["deviation"] for end in ("low", "high"))
            return stats.truncnorm(*ends, law["mean"], law["deviation"])
        case "triangular":
            return stats.triang((law["mode"] - low) / width, low, width)
        case _:
            return stats.beta(*tables.beta_shapes(dict(law.parameters)), low, width)


def _as_they_are(law: Law) -> dict[str, Any]:
    return dict(law.parameters)


def _prepared_between(law: Law) -> dict[str, Any]:
    return _as_they_are(law) | {"width": law["high"] - law["low"]}


def _prepared_loguniform(law: Law) -> dict[str, Any]:
    return _as_they_are(law) | {"log_ratio": math.log(law["high"] / law["low"])}


def _prepared_truncated(law: Law) -> dict[str, Any]:
    from scipy.special import ndtr

    low, high = ((law[end] - law["mean"]) / law["deviation"] for end in ("low", "high"))
    tails = {"below_low": ndtr(low), "below_high": ndtr(high)}
    tails |= {"above_low": ndtr(-low), "above_high": ndtr(-high)}
    name_low, name_high = ("above_high", "above_low") if low > 0 else ("below_low", "below_high")
    return _as_they_are(law) | tails | {"mass": tails[name_high] - tails[name_low]}


def _prepared_weibull(law: Law) -> dict[str, Any]:
    return {"scale": law["scale"], "inverse_shape": 1 / law["shape"]}


def _prepared_triangular(law: Law) -> dict[str, Any]:
    width = law["high"] - law["low"]
    shares = (law["mode"] - law["low"]) / width, (law["high"] - law["mode"]) / width
    ends = {"low": law["low"], "high": law["high"], "width": width}
    return ends | {"share_below": shares[0], "share_above": shares[1]}


def _prepared_spikes(law: Law) -> dict[str, Any]:
    return {"base": law["base"], "spike": law["spike"], "quiet": -math.log(law["probability"])}


def _prepared_table(law: Law) -> dict[str, Any]:
    made = tables.gamma if law.kind == "gamma" else tables.beta
    return made(dict(law.parameters))


def _prepared_steps(law: Law) -> dict[str, Any]:
    made = tables.empirical if law.kind == "empirical" else tables.discrete
    return made(dict(law.parameters), int(law.signature[1]))


_PREPARED = {
    "uniform": _prepared_between,
    "loguniform": _prepared_loguniform,
    "truncated_normal": _prepared_truncated,
    "weibull": _prepared_weibull,
    "triangular": _prepared_triangular,
    "spikes": _prepared_spikes,
    "gamma": _prepared_table,
    "beta": _prepared_table,
    "pert": _prepared_table,
    "empirical": _prepared_steps,
    "discrete": _prepared_steps,
}
