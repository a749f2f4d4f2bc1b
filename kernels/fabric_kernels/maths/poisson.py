"""Poisson counts from one uniform, right in both tails, in float32."""

import math

import jax.numpy as jnp
from jax import Array
from jax.lax import stop_gradient

from fabric_kernels.maths.normal import normal_quantile
from fabric_kernels.uniform import Uniform

SUMMED = 8
"""Counts below this are found by summing the law, others by its expansion."""

_TAIL = tuple(math.factorial(SUMMED) / math.factorial(SUMMED + k) for k in range(19))
"""Power series in the rate: P(count >= SUMMED) over P(count = SUMMED)."""

_LOG_RATIO = (
    1, -1 / 3, 11 / 72, -43 / 540, 769 / 17280, -221 / 8505, 680863 / 43545600, -1963 / 204120,
    226287557 / 37623398400,
)  # fmt: skip
"""Power series, without its constant 0, that solves 1 + r (log r - 1) = s^2 / 2 for log r."""

_RATIO = (1, 1 / 6, -1 / 72, 1 / 270, -23 / 17280, 19 / 34020, -11237 / 43545600, 13 / 102060)
"""The same for r - 1."""

_SHIFT = (1 / 3, -1 / 36, 7 / 810, -137 / 38880, 5 / 3024)
"""The same for log(s sqrt(r) / (r - 1)) / log r, with its constant."""

_SERIES_WITHIN = 0.4


def largest_of(count: Array, u: Uniform) -> Uniform:
    """The uniform of the largest of `count` independent draws: u^(1 / count), either end exact.

    The survival is 1 - u^(1 / count) = -expm1(log(u) / count).
    """
    exponential = jnp.where(u.upper, -jnp.log1p(-u.distance), -jnp.log(u.distance))
    share = exponential / count
    survival = -jnp.expm1(-share)
    upper = survival <= 0.5
    return Uniform(upper, jnp.where(upper, survival, jnp.exp(-share)))


def poisson_quantile(rate: Array, u: Uniform, score: Array | None = None) -> Array:
    """Smallest count n with P(Poisson(rate) <= n) >= u.

    Counts below 8 come from sums of the law, accumulated from the small end, so that rates down
    to 1e-30 and both tails keep their relative precision. From 8 on from the expansion

        n = floor(rate r + c(r) - 0.0218 / (rate r + 0.065 rate)),
        c(r) = log(s sqrt(r) / (r - 1)) / log r,   1 + r (log r - 1) = s^2 / 2,  s = z / sqrt(rate)

    z the normal score of u: Temme's uniform expansion of the incomplete gamma function, inverted;
    Giles, ACM Trans. Math. Software 42(1), 2016 (from memory). Before rounding down its error is
    below 1e-3 in float64 and 1e-3 + 3e-6 x sqrt(rate) |z| + 1e-7 n in float32, so a count is off
    by one with about that probability times its density, and counts above 2^24 are rounded.
    Not differentiable: its gradient is 0, as that of a count is almost everywhere. `score` is the
    normal score of u, for a caller who has it.
    """
    rate, u = stop_gradient((rate, u))
    score = normal_quantile(u) if score is None else stop_gradient(score)
    summed = _summed_quantile(rate, u)
    expanded = jnp.maximum(jnp.floor(_expanded(rate, score)), SUMMED)
    return jnp.where(summed < SUMMED, summed, expanded)


def smooth_poisson_quantile(rate: Array, u: Uniform) -> Array:
    """`poisson_quantile` before rounding down: the expansion, for counts of 8 and more."""
    return _expanded(stop_gradient(rate), normal_quantile(u))


def _summed_quantile(rate: Array, u: Uniform) -> Array:
    """The quantile where it is below SUMMED, else SUMMED.

    The rate is clipped to where such a count is possible at all: medians below 8 in the upper
    half, 1e-19 in the lower.
    """
    rate = jnp.minimum(rate, jnp.where(u.upper, 9.0, 80.0).astype(jnp.result_type(rate)))
    mass = [jnp.exp(-rate)]
    for count in range(1, SUMMED + 1):
        mass.append(mass[-1] * rate / count)
    survival = _series(rate, _TAIL) * mass.pop()  # P(count >= SUMMED)
    below = jnp.zeros_like(rate)
    reached = jnp.zeros_like(rate + u.distance)
    for high, low in zip(reversed(mass), mass, strict=True):
        below = below + low
        over = jnp.where(u.upper, survival > u.distance, below < u.distance)
        reached = reached + over.astype(reached.dtype)
        survival = survival + high
    return reached


def _expanded(rate: Array, score: Array) -> Array:
    # smaller rates have no count of 8 in reach, and s would leave the range of the iteration
    rate = jnp.maximum(rate, 1e-3)
    # below -1.35 a count would be below the summed ones
    score = jnp.maximum(score / jnp.sqrt(rate), -1.35)
    near = jnp.abs(score) < _SERIES_WITHIN
    small = jnp.where(near, score, 0.1)
    log_ratio = jnp.where(near, small * _series(small, _LOG_RATIO), _newton(score))
    excess = jnp.where(near, small * _series(small, _RATIO), jnp.expm1(log_ratio))
    far = (jnp.log(score / excess) + 0.5 * log_ratio) / log_ratio
    count = rate + rate * excess
    shift = jnp.where(near, _series(small, _SHIFT), far) - 0.0218 / (count + 0.065 * rate)
    return count + shift


def most_of_many(rate: Array, choices: Array) -> Array:
    """Level v that about one of exp(choices) Poisson counts of this rate passes.

        rate + v (log(v / rate) - 1) = choices

    the Chernoff bound of the Poisson tail turned round; 0 where the rate is.
    """
    safe = jnp.maximum(rate, 1e-30)
    score = jnp.sqrt(2 * choices / safe)
    near = score < _SERIES_WITHIN
    small = jnp.where(near, score, 0.1)
    ratio = jnp.exp(jnp.where(near, small * _series(small, _LOG_RATIO), _newton(score)))
    return rate * ratio


def _newton(score: Array) -> Array:
    """Newton's solution t of 1 + exp(t) (t - 1) = score^2 / 2 with the sign of score."""
    away = jnp.where(jnp.abs(score) < _SERIES_WITHIN, 1.0, score)
    square = away * away
    start = 1 + away + square / 6 * (1 + jnp.maximum(-away, 0.0) / 12)
    solution = jnp.log(start)
    for _ in range(4):
        ratio = jnp.exp(solution)
        residual = 1 - 0.5 * square + ratio * (solution - 1)
        solution = solution - residual / (ratio * solution)
    return solution


def _series(at: Array, coefficients: tuple[float, ...]) -> Array:
    total = jnp.full_like(at, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * at + coefficient
    return total
