"""The root of an increasing function of one number per lane."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array


def increasing_root(
    function: Callable[[Array], Array], bracket: tuple[Array, Array], start: Array, steps: int
) -> Array:
    """Root of an increasing elementwise function inside a bracket, after `steps` steps.

    Newton's step where it stays inside the bracket, else the middle of it, so a kink cannot
    throw it out; the bracket shrinks at every step. The last step is Newton's wherever it has
    converged, so the derivative with respect to parameters is that of the root.
    """
    low, high = bracket
    point = start
    for _ in range(steps):
        value, slope = jax.jvp(function, (point,), (jnp.ones_like(point),))
        low = jnp.where(value < 0, point, low)
        high = jnp.where(value > 0, point, high)
        step = point - value / jnp.maximum(slope, 1e-30)
        # rounding may put a converged step just outside: that is no reason to bisect
        slack = 4e-7 * (1.0 + jnp.abs(point))
        inside = (step >= low - slack) & (step <= high + slack)
        point = jnp.where(inside, jnp.clip(step, low, high), 0.5 * (low + high))
    return point
