"""Random early detection: how a switch marks packets by the length of its queue."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array


class Curve(NamedTuple):
    """Marking probability of a queue: 0 up to `start`, `largest` at `end`, 1 beyond `certain`."""

    start: Array
    end: Array
    largest: Array
    certain: Array  # `end` in a switch; farther where the line is allowed to run on


def marking_at(curve: Curve, queue: Array) -> Array:
    """Floyd and Jacobson, IEEE/ACM ToN 1(4), 1993, on the queue of the moment, as DCQCN uses it."""
    line = (queue - curve.start) * steepness(curve)
    return jnp.where(queue > curve.certain, 1.0, jnp.clip(line, 0.0, 1.0))


def queue_at(curve: Curve, marking: Array) -> Array:
    """The queue whose marking is this, on the slope of the curve (or its continuation)."""
    return curve.start + marking / steepness(curve)


def steepness(curve: Curve) -> Array:
    """Marking that one packet more of queue adds on the slope, of a width of at least 1e-4."""
    return curve.largest / jnp.maximum(curve.end - curve.start, 1e-4 * curve.end)
