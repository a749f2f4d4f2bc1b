"""Stall of one exchange: ordinary paths, marginal ones, and both classes of stall."""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from fabric_kernels.errors import Errors
from fabric_kernels.inputs.loss import LossBursts, Transport
from fabric_kernels.loss.laws.critical import Luck, Stalls, stalled
from fabric_kernels.loss.laws.flow import Flow, Losses, Repair
from fabric_kernels.loss.laws.schemes import RepairOf
from fabric_kernels.maths.poisson import largest_of, poisson_quantile
from fabric_kernels.pattern import Barrier, Doubling, Line, Pattern, Ring, Traffic, Tree
from fabric_kernels.uniform import Uniform

Scheme = Callable[[Flow, Losses], RepairOf]
"""A way to repair losses: from a flow and its losses to what those of a message cost."""


class Drawn(NamedTuple):
    """The uniforms of one exchange."""

    lost: Uniform
    timed_out: Uniform
    chain: Uniform


def flow_of(
    round_trip: Array, rate: Array, payload: Array, timeout: Array, transport: Transport
) -> Flow:
    """A flow from a round trip (s), its rate (B/s), its packets' payload (B) and its timer (s)."""
    return Flow(round_trip, payload / rate, payload, timeout, transport.send_window / payload)


@functools.partial(jax.jit, static_argnames=("scheme",), inline=True)
def exchange_stall(
    traffics: tuple[Traffic, ...],
    scheme: Scheme,
    flow: Flow,
    errors: Errors,
    bursts: LossBursts,
    channels: Array,
    drawn: Drawn,
) -> Array:
    """Time that lost packets add to an exchange (s), its slowest group.

        D_told L(n_told) + D_timed L(n_timed) on ordinary paths
        + the largest of the `marginal_links` sums of D n on marginal ones

    Stalls that the receiver's word repairs and those that wait for the timer are two classes with
    a count and a chain each (`critical.stalled`); the sum of their maxima bounds the maximum of
    the sums from above. The stalls of one marginal link all lie at one rank, so each counts in
    full, and the step waits for the worst such link; they are taken at the level of the same
    uniforms, again a bound from above. The chain uniform serves both classes, for timers with its
    ends exchanged, so that a long chain of one is not a long chain of the other.
    """
    ordinary = scheme(flow, Losses(errors.path_loss_rate, bursts))
    told = Luck(drawn.lost, drawn.chain)
    timed = Luck(drawn.timed_out, Uniform(~drawn.chain.upper, drawn.chain.distance))
    total = stalled(traffics, lambda payload: ordinary(payload).told, channels, told)
    total = total + stalled(traffics, lambda payload: ordinary(payload).timed, channels, timed)
    marginal = scheme(flow, Losses(errors.marginal_path_loss_rate, bursts))
    return total + _marginal(traffics, marginal, errors.marginal_links, channels, drawn)


def _marginal(
    traffics: Sequence[Traffic], repair: RepairOf, links: Array, channels: Array, drawn: Drawn
) -> Array:
    told, timed = [], []
    for traffic in traffics:
        for pattern in traffic.patterns:
            found: Repair = repair(pattern.payload / channels)
            messages = messages_of_flow(pattern)
            told.append(found.told._replace(rate=found.told.rate * messages))
            timed.append(found.timed._replace(rate=found.timed.rate * messages))
    worst = jnp.maximum(links, 1.0) * channels
    some = links > 0
    total = jnp.zeros_like(drawn.lost.distance + links)
    for classes, u in ((told, drawn.lost), (timed, drawn.timed_out)):
        if classes:
            stalls = _summed(classes)
            count = poisson_quantile(jnp.where(some, stalls.rate, 0.0), largest_of(worst, u))
            total = total + stalls.cost * count
    return total


def _summed(classes: Sequence[Stalls]) -> Stalls:
    rate = cost = jnp.zeros_like(classes[0].rate)
    for stalls in classes:
        rate, cost = rate + stalls.rate, cost + stalls.rate * stalls.cost
    return Stalls(cost / jnp.where(rate > 0, rate, 1.0), rate)


def messages_of_flow(pattern: Pattern) -> Array:
    """Messages that one sender sends into the fabric, all calls of a step together."""
    match pattern:
        case Ring():
            return pattern.steps * pattern.repeats
        case Tree():
            return pattern.legs * pattern.chunks * pattern.repeats
        case Doubling():
            return pattern.levels * pattern.repeats
        case Barrier():
            return pattern.rounds * pattern.repeats
        case Line():
            return pattern.repeats
