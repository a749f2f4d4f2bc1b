"""A channel slot by slot: from one slot in which something happens to the next.

A slot may lose the packet sent in it, independently or by a two-state channel that moves on with
every slot (Gilbert, Bell System Technical Journal 39(5), 1960; Elliott, ibid. 42(5), 1963).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from fabric_kernels.maths.order_statistics import exponential_variate
from fabric_kernels.uniform import WideUniform

NEVER = 2**30
"""A slot that does not come."""


class Channel(NamedTuple):
    """What a slot does to its packet; all per slot."""

    good_loss: Array
    bad_loss: Array
    worsens: Array  # chance that a good slot is followed by a bad one
    improves: Array  # chance that a bad slot is followed by a good one


class Event(NamedTuple):
    """The next slot in which the channel does anything."""

    slot: Array
    lossy: Array
    bad: Array  # state of the slot after it


def next_event(channel: Channel, after: Event, uniforms: WideUniform, number: Array) -> Event:
    """The event after another: geometric gap, then what happens in that slot."""
    count = jnp.stack([2 * number, 2 * number + 1]).astype(jnp.uint32).reshape(2, 1, 1)
    u = uniforms.at(count)
    loss = jnp.where(after.bad, channel.bad_loss, channel.good_loss)
    leave = jnp.where(after.bad, channel.improves, channel.worsens)
    any_exponent = -(jnp.log1p(-jnp.minimum(loss, 0.9999999)) + jnp.log1p(-leave * 0.9999999))
    known = jnp.maximum(any_exponent, 1e-12)
    gap = jnp.floor(jnp.minimum(exponential_variate(u)[:1] / known, 1e9))
    which = u.value[1:] * -jnp.expm1(-known)
    both, lossy = which < loss * leave, which < loss
    slot = after.slot + 1 + gap.astype(jnp.int32)
    slot = jnp.where((any_exponent > 0) & (slot >= 0), jnp.minimum(slot, NEVER), NEVER)
    return Event(slot, lossy, after.bad ^ (both | ~lossy))


def first_event(channel: Channel, uniforms: WideUniform) -> Event:
    """The first event of a channel in its stationary state."""
    u = uniforms.at(jnp.zeros((1, 1, 1), jnp.uint32)).value
    moves = channel.worsens + channel.improves
    bad = u < channel.worsens / jnp.where(moves > 0, moves, 1.0)
    before = Event(jnp.full(bad.shape, -1, jnp.int32), bad, bad)
    return next_event(channel, before, uniforms, jnp.asarray(1, jnp.uint32))
