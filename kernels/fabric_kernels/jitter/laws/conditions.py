"""Slow ranks, late starts and common pauses: what is drawn once, not at every hop."""

import jax.numpy as jnp
from jax import Array

from fabric_kernels.inputs.noise import HopConditions
from fabric_kernels.maths.order_statistics import level_of_largest
from fabric_kernels.uniform import Uniform


def slowest_delay(conditions: HopConditions, ranks: Array, exponential: Array) -> Array:
    """Delay of every hop of the slowest of `ranks` ranks (s), at -log F = `exponential`.

    deviation * max(z, 0), z the largest of that many normal scores: fixed while the exchange runs,
    so a ring pays it at every step where it exceeds what the redrawn noise costs anyway.
    """
    return conditions.persistent_hop_deviation * _largest_score(ranks, exponential)


def latest_arrival(conditions: HopConditions, ranks: Array, exponential: Array) -> Array:
    """How late the last of `ranks` ranks enters (s), at -log F = `exponential`.

    The whole of it is added: an upper bound, as a late rank may be caught up by the wait for the
    others. An exchange ends no earlier than the last arrival and its own mean time.
    """
    return conditions.arrival_deviation * _largest_score(ranks, exponential)


def common_pause(conditions: HopConditions, u: Uniform) -> Array:
    """Time that a pause of all ranks adds (s): 0, or exponential where u is in the upper share.

    It hits everyone at once, so it is added after the largest of the ranks and never inside it.
    """
    survival = jnp.where(u.upper, u.distance, 1.0 - u.distance)
    share = conditions.common_pause_probability
    hazard = jnp.log(jnp.maximum(share, 1e-30)) - jnp.log(survival)
    return conditions.common_pause_length * jnp.maximum(hazard, 0.0)


def _largest_score(ranks: Array, exponential: Array) -> Array:
    score = level_of_largest(jnp.maximum(ranks, 1.0), exponential).normal_score
    return jnp.maximum(score, 0.0)
