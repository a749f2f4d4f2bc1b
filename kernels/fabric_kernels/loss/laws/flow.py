"""One flow between two ranks: its times, its losses, and what it does about them."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from fabric_kernels.inputs.loss import LossBursts
from fabric_kernels.loss.laws.critical import Stalls


class Flow(NamedTuple):
    """Times and sizes of one flow."""

    round_trip: Array  # s, from the end of a packet to the sender's knowing
    packet_time: Array  # s
    packet_payload: Array  # B
    timeout: Array  # s
    window: Array  # packets

    def packets(self, payload: Array) -> Array:
        """Packets of a message of this many bytes: at least one."""
        return jnp.maximum(payload / self.packet_payload, 1.0)


class Losses(NamedTuple):
    """How packets of one path are lost."""

    rate: Array  # probability of one packet
    bursts: LossBursts

    @property
    def exponent(self) -> Array:
        """-log(1 - rate): Poisson rate with which exp(-n exponent) = (1 - rate)^n exactly."""
        return -jnp.log1p(-self.rate)

    @property
    def per_event(self) -> Array:
        """Mean losses of a burst that has any: 1 + severity (length - 1).

        A burst lasts a geometric number of packets; the mean losses over the chance of any.
        """
        return 1 + self.bursts.loss_burst_severity * (self.bursts.loss_burst_length - 1)

    def persists(self, slots: Array) -> Array:
        """Chance that the burst of a lost packet still lasts this many packet times later."""
        leaves = jnp.minimum(1 / self.bursts.loss_burst_length, 0.9999999)
        return jnp.where(
            self.bursts.loss_burst_length > 1, jnp.exp(slots * jnp.log1p(-leaves)), 0.0
        )

    def again(self, slots: Array) -> Array:
        """Chance that a packet sent this many packet times after a loss is lost as well."""
        chance = self.bursts.loss_burst_severity * self.persists(slots)
        return chance + self.rate * (1 - chance)


class Repair(NamedTuple):
    """What the losses of one message cost: repaired by the receiver's word, or by the timer."""

    told: Stalls
    timed: Stalls | None  # None: there is no timer


def chance_of_any(packets: Array, losses: Losses) -> Array:
    """Chance that any of this many packets is lost: -expm1(packets x log(1 - rate))."""
    return -jnp.expm1(-packets * losses.exponent)


def weighed(first: Stalls, second: Stalls) -> Stalls:
    """Two kinds of stall as one: their number, and their mean cost."""
    rate = first.rate + second.rate
    share = first.rate / jnp.where(rate > 0, rate, 1.0)
    return Stalls(second.cost + share * (first.cost - second.cost), rate)


def window_limited(flow: Flow) -> Array:
    """Whether the window is smaller than the bandwidth-delay product of the flow.

    A flow keeps its line busy if window >= R + 1 packets, R the round trip in packet times; else
    it gets window / (R + 1) of the rate.
    """
    return flow.window < flow.round_trip / flow.packet_time + 1


def window_share(flow: Flow) -> Array:
    """Share of the rate that the window allows: min(1, window / (R + 1))."""
    return jnp.minimum(1.0, flow.window / (flow.round_trip / flow.packet_time + 1))
