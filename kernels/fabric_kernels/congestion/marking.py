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
    line = curve.largest * (queue - curve.start) / (curve.end - curve.start)
    return jnp.where(queue > curve.certain, 1.0, jnp.clip(line, 0.0, 1.0))


def queue_at(curve: Curve, marking: Array) -> Array:
    """The queue whose marking is this, on the slope of the curve (or its continuation)."""
    return curve.start + marking / curve.largest * (curve.end - curve.start)
