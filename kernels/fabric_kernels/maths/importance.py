"""Importance sampling by one uniform: see a rare tail often, and weigh it back."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from fabric_kernels.uniform import Uniform


class Weighed(NamedTuple):
    """A uniform whose upper tail is drawn more often than it should be, and its weight."""

    uniform: Uniform
    weight: Array  # probability over the probability with which it is drawn


def emphasised(u: Uniform, tail: Array, share: Array) -> Weighed:
    """Give the upper `tail` of the unit interval a `share` of the draws.

        u >= 1 - share:  v = 1 - (1 - u) tail / share,           weight tail / share
        else:            v = u (1 - tail) / (1 - share),  weight (1 - tail) / (1 - share)

    The mean of weight x f(v) is that of f(u) for any f, and a quantile of f is that of the
    weighted draws (Owen, Monte Carlo theory, methods and examples, ch. 9). A tail of the chance
    that any stall happens shows `share` of the samples with one. The distance to the upper end is
    scaled as it is, so that tails of 1e-30 keep their precision. 0 < tail, share < 1.
    """
    from_top = jnp.where(u.upper, u.distance, 1 - u.distance)
    rare = jnp.where(u.upper, u.distance <= share, u.distance >= 1 - share)
    inside = from_top * (tail / share)
    scale = (1 - tail) / (1 - share)
    from_bottom = jnp.where(u.upper, 1 - u.distance, u.distance) * scale
    # what is left of the interval above an ordinary point, without rounding at its upper end
    above = tail + jnp.maximum(from_top - share, 0.0) * scale
    top = jnp.where(rare, inside, above)
    bottom = jnp.where(rare, 1 - inside, from_bottom)
    upper = top <= 0.5
    distance = jnp.clip(jnp.where(upper, top, bottom), 1e-37, 0.5)
    return Weighed(Uniform(upper, distance), jnp.where(rare, tail / share, scale))
