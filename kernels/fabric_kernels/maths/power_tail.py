"""Moments of the largest of N draws of an exponential or generalised Pareto law, closed forms.

With p the least of N uniforms, E p^(-x) = Gamma(1 - x) Gamma(N + 1) / Gamma(N + 1 - x). The
gamma functions are compared, never computed: the first four factors of each are paired into one
log1p, and the rest comes from the asymptotic series of digamma and trigamma at 5 and N + 5. So
nothing cancels, for N from 1 to 1e9 and a tail index through 0.
Source: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions, ch. 19 and 20;
Abramowitz and Stegun 6.3.18, 6.4.12.
"""

import jax.numpy as jnp
from jax import Array

FACTORS = 4


def largest_of_exponential(count: Array) -> tuple[Array, Array]:
    """Mean H_N and standard deviation of the largest of N standard exponential draws."""
    return largest_of_pareto(count, jnp.zeros_like(count))


def largest_of_pareto(count: Array, tail_index: Array) -> tuple[Array, Array]:
    """Mean and deviation of the largest of N draws of expm1(x ell) / x, ell exponential.

    `tail_index` x lies in (-1, 1/2); towards 1/2 the deviation grows without limit. Relative
    error 2e-6 in float32.
    """
    # log E p^(-x) = x * growth
    growth = _slope(count, tail_index)
    # log(E p^(-2x) / (E p^(-x))^2) = x^2 * spread
    spread = _curvature(count, tail_index)
    exponent = tail_index * growth
    mean = growth * _relative_expm1(exponent)
    square = tail_index * tail_index * spread
    deviation = jnp.exp(exponent) * jnp.sqrt(spread * _relative_expm1(square))
    return mean, deviation


def _slope(count: Array, index: Array) -> Array:
    """(log Gamma(1-x) - log Gamma(1) - log Gamma(N+1-x) + log Gamma(N+1)) / x."""
    total = jnp.zeros_like(count + index)
    for factor in range(1, FACTORS + 1):
        ratio = count / ((count + factor) * (factor - index))
        total = total + ratio * _relative_log1p(index * ratio)
    low = FACTORS + 1 - 0.5 * index
    high = low + count
    bend = index * index / 24.0
    return (
        total
        + (_digamma(high) + bend * _digamma_second(high))
        - (_digamma(low) + bend * _digamma_second(low))
    )


def _curvature(count: Array, index: Array) -> Array:
    """Second difference of log Gamma at 1 - x less that at N + 1 - x, over x^2."""
    square = index * index
    total = jnp.zeros_like(count + index)
    for factor in range(1, FACTORS + 1):
        low = factor - index
        high = low + count
        ratio = (count / high) * ((low + high) / high) / (low * low - square)
        total = total + ratio * _relative_log1p(square * ratio)
    low = FACTORS + 1 - index
    return total + _trigamma(low, square) - _trigamma(low + count, square)


def _relative_expm1(x: Array) -> Array:
    """expm1(x) / x, 1 at 0."""
    small = jnp.abs(x) < 1e-12
    safe = jnp.where(small, 1.0, x)
    return jnp.where(small, 1.0, jnp.expm1(safe) / safe)


def _relative_log1p(x: Array) -> Array:
    """log1p(x) / x, 1 at 0."""
    small = jnp.abs(x) < 1e-12
    safe = jnp.where(small, 1.0, x)
    return jnp.where(small, 1.0, jnp.log1p(safe) / safe)


def _digamma(x: Array) -> Array:
    """Digamma for x >= 4, absolute error below 1e-7."""
    inverse = 1.0 / x
    square = inverse * inverse
    return jnp.log(x) - 0.5 * inverse - square * (1 / 12 - square * (1 / 120 - square / 252))


def _digamma_second(x: Array) -> Array:
    """Second derivative of digamma for x >= 4."""
    square = 1.0 / (x * x)
    return -square * (1.0 + 1.0 / x + 0.5 * square)


def _trigamma(x: Array, square_of_step: Array) -> Array:
    """Second difference of log Gamma at x >= 4 over the step squared: trigamma to second order."""
    inverse = 1.0 / x
    square = inverse * inverse
    trigamma = inverse * (1.0 + 0.5 * inverse + square * (1 / 6 - square * (1 / 30 - square / 42)))
    fourth = square * inverse * (2.0 + 3.0 * inverse + 2.0 * square)
    return trigamma + square_of_step / 12.0 * fourth
