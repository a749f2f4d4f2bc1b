"""A channel slot by slot: from one slot in which something happens to the next.

A slot may lose the packet sent in it, independently or by a two-state channel that moves on with
every slot (Gilbert, Bell System Technical Journal 39(5), 1960; Elliott, ibid. 42(5), 1963).
"""

from typing import NamedTuple, Protocol

import jax.numpy as jnp
from jax import Array

from fabric_kernels.maths.order_statistics import exponential_variate
from fabric_kernels.uniform import Uniform, WideUniform

NEVER = 2**30
"""A slot that does not come."""


class Event(NamedTuple):
    """The next slot in which the channel does anything."""

    slot: Array
    lossy: Array
    bad: Array  # state of the slot after it


class Channel(Protocol):
    """What slots do to their packets."""

    def following(self, after: Event, slot: Array, uniforms: WideUniform, number: Array) -> Event:
        """The event after another, from `slot` on if that is long after it.

        `number` counts the events, for uniforms of their own.
        """
        ...


def first_event(channel: Channel, uniforms: WideUniform) -> Event:
    """The first event of a channel that has run for long."""
    long_ago = jnp.full((1, 1, 1), -NEVER, jnp.int32)
    before = Event(long_ago, long_ago > 0, long_ago > 0)
    return channel.following(before, 0 * long_ago, uniforms, jnp.asarray(0, jnp.uint32))


class Independent(NamedTuple):
    """Every slot loses its packet with the same chance, whatever happened before."""

    loss: Array

    def following(self, after: Event, slot: Array, uniforms: WideUniform, number: Array) -> Event:
        """The next loss; there is no memory, so what lies before `slot` is left out."""
        u = uniforms.at(number.reshape(1, 1, 1))
        found = _later(jnp.maximum(after.slot, slot - 1), u, -jnp.log1p(-self.loss))
        every = jnp.ones(found.shape, bool)
        return Event(found, every, ~every)


class GilbertElliott(NamedTuple):
    """A channel that is good or bad for a while; all chances are those of a slot."""

    good_loss: Array
    bad_loss: Array
    worsens: Array  # chance that a good slot is followed by a bad one
    improves: Array  # chance that a bad slot is followed by a good one

    def following(self, after: Event, slot: Array, uniforms: WideUniform, number: Array) -> Event:
        """A geometric gap, then a loss or a change of state or both.

        40 mixing times later what happened before does not matter, and the channel starts anew.
        """
        count = (3 * number + jnp.arange(3, dtype=jnp.uint32)).reshape(3, 1, 1)
        upper, distance = uniforms.at(count)
        gap, what, state = (Uniform(upper[k : k + 1], distance[k : k + 1]) for k in range(3))
        moves = self.worsens + self.improves
        anew = (slot - after.slot - 1).astype(moves.dtype) * moves > 40.0
        before = jnp.where(anew, slot - 1, after.slot)
        share = self.worsens / jnp.where(moves > 0, moves, 1.0)
        bad = jnp.where(anew, state.value < share, after.bad)
        loss = jnp.where(bad, self.bad_loss, self.good_loss)
        leave = jnp.where(bad, self.improves, self.worsens)
        exponent = -(jnp.log1p(-jnp.minimum(loss, 0.9999999)) + jnp.log1p(-leave * 0.9999999))
        which = what.value * -jnp.expm1(-exponent)
        both, lossy = which < loss * leave, which < loss
        return Event(_later(before, gap, exponent), lossy, bad ^ (both | ~lossy))


def _later(before: Array, u: Uniform, exponent: Array) -> Array:
    """The first slot after `before` in which something happens, with this -log of none in one."""
    gap = jnp.floor(jnp.minimum(exponential_variate(u) / jnp.maximum(exponent, 1e-12), 1e9))
    found = before + 1 + gap.astype(jnp.int32)
    return jnp.where((exponent > 0) & (found >= 0), jnp.minimum(found, NEVER), NEVER)
