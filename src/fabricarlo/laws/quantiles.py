"""Quantile functions of the laws, elementwise in jnp, sharp at both ends.

`u` is held by its nearer end and the distance to it, so a survival probability of 2^-33 (or 2^-65
in a deep uniform) is as good as one of 1/2. Everything is a closed form but the tabulated laws.
"""

from collections.abc import Callable, Mapping

import jax.numpy as jnp
from jax import Array

from fabric_kernels.maths.normal import normal_quantile
from fabric_kernels.uniform import Uniform

Signature = tuple[str | int, ...]
Prepared = Mapping[str, Array]

SCORE_STEPS = 16  # knots per unit of the normal score: a power of two, so that scaling is exact
SCORE_LIMIT = 6.5  # beyond the score of 2^-33, which is 6.33
LARGEST = 3.0e38  # stands for an open end in float32


def exponential(u: Uniform) -> Array:
    """E = -log(1 - u), the standard exponential variate that grows with u."""
    return jnp.where(u.upper, -jnp.log(u.distance), -jnp.log1p(-u.distance))


def _between(u: Uniform, low: Array, high: Array, width: Array) -> Array:
    return jnp.where(u.upper, high - width * u.distance, low + width * u.distance)


def _constant(p: Prepared, u: Uniform) -> Array:
    return p["value"] + jnp.zeros_like(u.distance)


def _uniform(p: Prepared, u: Uniform) -> Array:
    return jnp.clip(_between(u, p["low"], p["high"], p["width"]), p["low"], p["high"])


def _loguniform(p: Prepared, u: Uniform) -> Array:
    ratio = jnp.exp(p["log_ratio"] * u.distance)
    return jnp.clip(jnp.where(u.upper, p["high"] / ratio, p["low"] * ratio), p["low"], p["high"])


def _normal(p: Prepared, u: Uniform) -> Array:
    return p["mean"] + p["deviation"] * normal_quantile(u)


def _truncated_normal(p: Prepared, u: Uniform) -> Array:
    """Both tails of the point inside [a, b] without a difference of nearly equal numbers."""
    inside = p["mass"] * u.distance
    below = jnp.where(u.upper, p["below_high"] - inside, p["below_low"] + inside)
    above = jnp.where(u.upper, p["above_high"] + inside, p["above_low"] - inside)
    point = Uniform(above < below, jnp.minimum(jnp.minimum(above, below), 0.5))
    return jnp.clip(p["mean"] + p["deviation"] * normal_quantile(point), p["low"], p["high"])


def _lognormal(p: Prepared, u: Uniform) -> Array:
    return p["median"] * jnp.exp(p["sigma"] * normal_quantile(u))


def _weibull(p: Prepared, u: Uniform) -> Array:
    return p["scale"] * jnp.exp(jnp.log(exponential(u)) * p["inverse_shape"])


def _triangular(p: Prepared, u: Uniform) -> Array:
    near, far = u.distance, 1.0 - u.distance
    below, above = jnp.where(u.upper, far, near), jnp.where(u.upper, near, far)
    rising = p["low"] + p["width"] * jnp.sqrt(below * p["share_below"])
    falling = p["high"] - p["width"] * jnp.sqrt(above * p["share_above"])
    # at the upper end the survival side decides: 1 - distance would round
    first = jnp.where(u.upper, near >= p["share_above"], near <= p["share_below"])
    return jnp.clip(jnp.where(first, rising, falling), p["low"], p["high"])


def _generalised_pareto(p: Prepared, u: Uniform) -> Array:
    unit = exponential(u)
    grown = p["shape"] * unit
    flat = jnp.abs(grown) < 1e-6
    factor = jnp.where(flat, 1.0 + 0.5 * grown, jnp.expm1(grown) / jnp.where(flat, 1.0, grown))
    return p["location"] + p["scale"] * unit * factor


def _shifted_exponential(p: Prepared, u: Uniform) -> Array:
    return p["location"] + p["scale"] * exponential(u)


def _spikes(p: Prepared, u: Uniform) -> Array:
    beyond = exponential(u) - p["quiet"]
    return p["base"] + p["spike"] * jnp.maximum(beyond, 0.0)


def _looked_up(p: Prepared, name: str, index: Array) -> Array:
    where = (p["row"], index) if "row" in p else (index,)
    return p[name].at[where].get(mode="promise_in_bounds")


def _tabulated(p: Prepared, u: Uniform) -> Array:
    """location + scale Q, log Q by a cubic Hermite polynomial of the normal score.

    The polynomial is of log Q relative to the knot, so its rounding error does not grow with
    the size of log Q. Measured in float32 over u = 2^-33 to 1 - 2^-33: Q is right to 1e-6 of
    itself above the median, and below it to 1e-6 for a first shape of 5 and more; under that to
    3e-6 (shape 2), 1e-5 (0.5) and 2.5e-5 (0.1), because z is rounded where log Q is steep.
    """
    position = jnp.clip(normal_quantile(u), -SCORE_LIMIT, SCORE_LIMIT) * SCORE_STEPS
    last = int(2 * SCORE_LIMIT * SCORE_STEPS) - 1
    left = jnp.clip(jnp.floor(position), -SCORE_LIMIT * SCORE_STEPS, SCORE_LIMIT * SCORE_STEPS - 1)
    index = jnp.clip(left.astype(jnp.int32) + int(SCORE_LIMIT * SCORE_STEPS), 0, last)
    t = position - left
    rise = _looked_up(p, "rise", index)
    start, end = _looked_up(p, "slope", index), _looked_up(p, "slope", index + 1)
    rest = 1.0 - t
    change = t * (t * (3.0 - 2.0 * t) * rise + rest * (rest * start - t * end))
    value = p["location"] + p["scale"] * _looked_up(p, "level", index) * jnp.exp(change)
    return jnp.minimum(value, p["high"])


def _key(u: Uniform) -> Array:
    """A number that grows with u and is as fine as the distance at both ends."""
    return jnp.where(u.upper, 1.0 / u.distance, -1.0 / u.distance)


def _segment(p: Prepared, u: Uniform, knots: int) -> Array:
    """Index of the last of a power of two many knots at or below u."""
    key = _key(u)
    index = jnp.zeros(key.shape, jnp.int32)
    stride = knots // 2
    while stride:
        there = _looked_up(p, "key", index + stride) <= key
        index = index + jnp.where(there, stride, 0)
        stride //= 2
    return index


def _empirical(p: Prepared, u: Uniform, knots: int) -> Array:
    index = _segment(p, u, knots)
    value = _looked_up(p, "value", index)
    along = jnp.abs(u.distance - _looked_up(p, "distance", index))
    return value + along * _looked_up(p, "slope", index)


def _discrete(p: Prepared, u: Uniform, knots: int) -> Array:
    return _looked_up(p, "value", _segment(p, u, knots))


_CLOSED: dict[str, Callable[[Prepared, Uniform], Array]] = {
    "constant": _constant,
    "uniform": _uniform,
    "loguniform": _loguniform,
    "normal": _normal,
    "truncated_normal": _truncated_normal,
    "lognormal": _lognormal,
    "weibull": _weibull,
    "triangular": _triangular,
    "generalised_pareto": _generalised_pareto,
    "shifted_exponential": _shifted_exponential,
    "spikes": _spikes,
    "tabulated": _tabulated,
}
_STEPPED: dict[str, Callable[[Prepared, Uniform, int], Array]] = {
    "empirical": _empirical,
    "discrete": _discrete,
}


def quantile(signature: Signature, prepared: Prepared, u: Uniform) -> Array:
    """Value of the law at u, elementwise; the shape of u and of the prepared numbers broadcast.

    `signature` and `prepared` are a law's. A table may be [rows, knots] instead of [knots]; then
    `prepared["row"]` (int32) says which row each element reads.
    """
    kind = str(signature[0])
    if kind in _STEPPED:
        return _STEPPED[kind](prepared, u, int(signature[1]))
    return _CLOSED[kind](prepared, u)
