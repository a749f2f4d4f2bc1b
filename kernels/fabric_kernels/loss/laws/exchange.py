"""Stall of one exchange: ordinary paths, marginal ones, and both classes of stall."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.lax import stop_gradient

from fabric_kernels.errors import Errors
from fabric_kernels.inputs.loss import LossBursts, Transport
from fabric_kernels.loss.laws.critical import Load, Luck, Stalls, Waits, side_by_side, stalled
from fabric_kernels.loss.laws.flow import Flow, Losses, Repair
from fabric_kernels.loss.laws.schemes import RepairOf
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
    ends exchanged, so that a long chain of one is not a long chain of the other. With c `channels`
    every pattern is c side by side with a c-th of the payload each.

    Inside, a first axis tells classes apart and a second one paths: both are one computation.
    """
    given = (traffics, flow, errors, bursts, channels, drawn)
    rank = max(jnp.ndim(leaf) for leaf in jax.tree.leaves(given))
    lanes = jnp.broadcast_shapes(*(jnp.shape(leaf) for leaf in jax.tree.leaves(given)))
    traffics, flow, errors, bursts, channels, drawn = jax.tree.map(
        lambda leaf: jnp.reshape(leaf, (1,) * (rank + 2 - jnp.ndim(leaf)) + jnp.shape(leaf)), given
    )
    paths = [errors.path_loss_rate, *(paths.rate for paths in errors.marginal)]
    repair = scheme(flow, Losses(side_by_side(paths), bursts))
    loads: list[Load] = []
    links = [MarginalLoad(paths.number, []) for paths in errors.marginal]
    timers = False
    for traffic in traffics:
        for pattern in traffic.patterns:
            found = repair(pattern.payload / channels)
            timers = found.timed is not None
            every = [_on_path(_classes(found), place) for place in range(len(paths))]
            loads.append(Load(pattern, traffic.groups * channels * parallel(pattern), every[0]))
            for link, stalls in zip(links, every[1:], strict=True):
                link.stalls.append(stalls._replace(rate=stalls.rate * messages_of_flow(pattern)))
    if not loads:
        return jnp.zeros(lanes, errors.path_loss_rate.dtype)
    worst = [_worst(link, channels) for link in links]
    total = stalled(loads, worst, _luck(drawn, timers=timers))
    return jnp.broadcast_to(jnp.sum(total, axis=(0, 1)), lanes)


class MarginalLoad(NamedTuple):
    """Marginal links of one kind, and the stalls of one sender on one of them, per pattern."""

    number: Array
    stalls: list[Stalls]


def _classes(repair: Repair) -> Stalls:
    """Stalls told and timed along the first axis."""
    if repair.timed is None:
        return repair.told
    return Stalls(*(_both(*pair) for pair in zip(repair.told, repair.timed, strict=True)))


def _both(told: Array, timed: Array) -> Array:
    return jnp.concatenate(jnp.broadcast_arrays(told, timed), axis=0)


def _on_path(stalls: Stalls, place: int) -> Stalls:
    return Stalls(*(x if x.shape[1] == 1 else x[:, place : place + 1] for x in stalls))


def _luck(drawn: Drawn, *, timers: bool) -> Luck:
    if not timers:
        return Luck(drawn.lost, drawn.chain)
    chain = drawn.chain
    return Luck(
        Uniform(*(_both(*pair) for pair in zip(drawn.lost, drawn.timed_out, strict=True))),
        Uniform(_both(chain.upper, ~chain.upper), _both(chain.distance, chain.distance)),
    )


def _worst(link: MarginalLoad, channels: Array) -> Waits:
    """The worst of the marginal links of one kind."""
    rate = cost = jnp.zeros_like(link.stalls[0].rate)
    for stalls in link.stalls:
        found = stop_gradient(stalls.rate)
        rate, cost = rate + found, cost + found * stalls.cost
    mean = cost / jnp.where(rate > 0, rate, 1.0)
    number = stop_gradient(link.number)
    copies = jnp.maximum(number, 1.0) * stop_gradient(channels)
    return Waits(mean, jnp.where(number > 0, rate, 0.0), copies)


def parallel(pattern: Pattern) -> Array | float:
    """Copies of a pattern that run side by side in one group."""
    match pattern:
        case Tree():
            return pattern.trees * pattern.parallel
        case Ring() | Doubling():
            return pattern.parallel
        case Barrier() | Line():
            return 1.0


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
