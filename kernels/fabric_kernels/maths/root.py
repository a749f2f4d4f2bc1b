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
    shape = jnp.broadcast_shapes(*(jnp.shape(x) for x in (*bracket, start)))
    # what the function brings along may have more lanes than where it is started
    shape = jax.eval_shape(function, jnp.broadcast_to(start, shape)).shape
    low, high, point = (jnp.broadcast_to(x, shape) for x in (*bracket, start))

    def step(_: int, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        low, high, point = state
        value, slope = jax.jvp(function, (point,), (jnp.ones_like(point),))
        low = jnp.where(value < 0, point, low)
        high = jnp.where(value > 0, point, high)
        newton = point - value / jnp.maximum(slope, 1e-30)
        # rounding may put a converged step just outside: that is no reason to bisect
        slack = 4e-7 * (1.0 + jnp.abs(point))
        inside = (newton >= low - slack) & (newton <= high + slack)
        return low, high, jnp.where(inside, jnp.clip(newton, low, high), 0.5 * (low + high))

    # a loop, not unrolled: a program with several roots would take long to compile
    return jax.lax.fori_loop(0, steps, step, (low, high, point))[2]
