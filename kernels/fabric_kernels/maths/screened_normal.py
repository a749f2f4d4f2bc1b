"""Sums of standard normals that are cut off at +-limit: what a screened part may still deviate.

Cumulant function of one of them and its first derivatives at the tilt t,

    k(t) = t^2 / 2 + log((Phi(c - t) - Phi(-c - t)) / (1 - 2 Phi(-c)))

and the tilt at which a weighted sum has a given normal score, by the saddlepoint approximation
r* = w + log(v / w) / w (Barndorff-Nielsen, Biometrika 73, 1986), exact without a cut.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from fabric_kernels.maths.normal import log_survival
from fabric_kernels.maths.root import increasing_root

_HIGHEST = 12.0  # tilts: beyond, a part lies at its cut
_SMALLEST = 0.3  # scores below it are taken as without a cut
_STEPS = 14
_LOG_ROOT = 0.9189385332046727  # log sqrt(2 pi)


class Cumulants(NamedTuple):
    """k, k' and k'' at a tilt: k' is the mean of the tilted law, k'' its variance."""

    value: Array
    mean: Array
    variance: Array


def cumulants(tilt: Array, limit: Array) -> Cumulants:
    """Cumulant function of a standard normal cut off at +-limit, for a tilt of either sign."""
    size = jnp.abs(tilt)
    above, below = limit - size, limit + size
    near, far = log_survival(-above), log_survival(below)
    mass = near + jnp.log1p(-jnp.exp(jnp.minimum(far - near, -1e-6)))
    whole = jnp.log1p(-2.0 * jnp.exp(log_survival(limit)))
    high = jnp.exp(jnp.minimum(-0.5 * above * above - _LOG_ROOT - mass, 20.0))
    low = jnp.exp(jnp.minimum(-0.5 * below * below - _LOG_ROOT - mass, 20.0))
    shift = low - high
    variance = 1.0 - below * low - above * high - shift * shift
    return Cumulants(
        0.5 * tilt * tilt + mass - whole,
        jnp.sign(tilt) * (size + shift),
        jnp.clip(variance, 1e-4, 1.0),
    )


def screened_scores(weights: Array, score: Array, limit: Array) -> Array:
    """Normals at the most likely point where their weighted sum has this normal score.

    `weights` are summed over the first axis, over which their squares sum to 1; `score` and
    `limit` have 1 in its place. Without a cut the point is weights times score.
    """
    size = jnp.abs(score)

    def reached(tilt: Array) -> Array:
        parts = cumulants(weights * tilt, limit)
        total = jnp.sum(weights * parts.mean, axis=0, keepdims=True)
        value = jnp.sum(parts.value, axis=0, keepdims=True)
        spread = jnp.sum(weights * weights * parts.variance, axis=0, keepdims=True)
        root = jnp.sqrt(jnp.maximum(2.0 * (tilt * total - value), 1e-8))
        return root + jnp.log(tilt * jnp.sqrt(spread) / root) / root

    floor = jnp.full_like(size, 0.1)
    aim = jnp.maximum(size, _SMALLEST)
    found = increasing_root(
        lambda tilt: reached(tilt) - aim, (floor, floor + _HIGHEST), jnp.minimum(aim, 8.0), _STEPS
    )
    tilt = jnp.sign(score) * jnp.where(size < _SMALLEST, size, found)
    return cumulants(weights * tilt, limit).mean
