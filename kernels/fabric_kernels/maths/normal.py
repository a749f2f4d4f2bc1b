"""Normal scores: from a uniform or a tail probability to standard deviations, and back."""

import jax.numpy as jnp
from jax import Array
from jax.scipy.special import erfc

from fabric_kernels.maths import normal_coefficients as fitted
from fabric_kernels.uniform import Uniform


def normal_quantile(u: Uniform) -> Array:
    """Standard normal score z with Phi(z) = u.

    Exact at both ends: float32 error below 3e-7, absolute for |z| < 1 and relative beyond;
    float64 below 1e-11.
    """
    score = normal_score_of_tail(u.distance)
    return jnp.where(u.upper, score, -score)


def normal_score_of_tail(tail: Array, minus_log_tail: Array | None = None) -> Array:
    """Score z >= 0 whose upper tail Q(z) = 1 - Phi(z) is `tail`, in (0, 1/2].

    Fitted rational functions (kernels/constants/normal_quantile.py): around the median in
    x = 1/2 - tail, in the tail in sqrt(-log tail), down to 1e-38; a smaller tail is taken as the
    smallest normal number of its precision or 1e-38. `minus_log_tail` saves the logarithm where
    the caller has it.
    """
    if minus_log_tail is None:
        minus_log_tail = -jnp.log(jnp.maximum(tail, jnp.finfo(tail.dtype).tiny))
    from_median = 0.5 - tail
    square = fitted.CENTRE - from_median * from_median
    central = square > 0
    root = jnp.sqrt(jnp.clip(minus_log_tail, fitted.SHIFT**2, fitted.DEEPEST))
    at = jnp.where(central, square, root - fitted.SHIFT)
    above, below = _coefficients(wide=tail.dtype == jnp.float64)
    ratio = _polynomial(central, at, above) / _polynomial(central, at, below)
    return jnp.where(central, from_median * ratio, 1.4142135623730951 * root - ratio)


def log_survival(score: Array) -> Array:
    """Natural logarithm of Q(z) = 1 - Phi(z), accurate on both sides of z = 0.

    Relative error 5e-7, and z^2 times half an ulp where Q or Phi is small. For z < 13 in float32
    and z < 37 in float64; beyond, the smallest normal number stands for Q.
    """
    tail = 0.5 * erfc(jnp.abs(score) * 0.7071067811865476)
    tail = jnp.maximum(tail, jnp.finfo(score.dtype).tiny)
    return jnp.where(score > 0, jnp.log(tail), jnp.log1p(-tail))


def _coefficients(*, wide: bool) -> tuple[tuple[tuple[float, float], ...], ...]:
    """Numerator and denominator, highest power first: pairs (around the median, in the tail)."""
    if wide:
        return (
            _paired(fitted.CENTRE_NUMERATOR_64, fitted.TAIL_NUMERATOR_64),
            _paired(fitted.CENTRE_DENOMINATOR_64, fitted.TAIL_DENOMINATOR_64),
        )
    return (
        _paired(fitted.CENTRE_NUMERATOR_32, fitted.TAIL_NUMERATOR_32),
        _paired(fitted.CENTRE_DENOMINATOR_32, fitted.TAIL_DENOMINATOR_32),
    )


def _paired(centre: tuple[float, ...], tail: tuple[float, ...]) -> tuple[tuple[float, float], ...]:
    length = max(len(centre), len(tail))
    padded = [part + (0.0,) * (length - len(part)) for part in (centre, tail)]
    return tuple(zip(*padded, strict=True))[::-1]


def _polynomial(central: Array, at: Array, pairs: tuple[tuple[float, float], ...]) -> Array:
    total = jnp.zeros_like(at)
    for centre, tail in pairs:
        total = total * at + jnp.where(central, centre, tail).astype(at.dtype)
    return total
