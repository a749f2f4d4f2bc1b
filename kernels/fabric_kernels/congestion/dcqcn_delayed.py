"""DCQCN as equations with a delay: what the queue does in time."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from fabric_kernels.congestion.dcqcn_law import Reaction, reactions
from fabric_kernels.congestion.marking import Curve, marking_at
from fabric_kernels.maths.delayed import (
    Equation,
    Schedule,
    Settled,
    State,
    settled,
    with_remainder,
)


class Start(NamedTuple):
    """Where all senders begin: their rate (packets a second) and alpha; the queue is empty."""

    rate: Array
    alpha: Array


class Motion(NamedTuple):
    """What the bottleneck does once it has settled."""

    queue: Settled  # packets
    queue_p99: Array
    rate: Settled  # packets a second of one sender
    marking: Array  # mean probability
    utilisation: Array


def motion(
    reaction: Reaction, curve: Curve, start: Start, step: Array, lag: Array, schedule: Schedule
) -> Motion:
    """Integrate N alike senders, their queue and the marks that come back `lag` steps later.

        dq/dt = N R - C
        dalpha/dt = g / tau_alpha (1 - (1 - p')^(tau_alpha R') - alpha)
        dR_T/dt = (R - R_T) a / tau + R_AI R' (c + e)
        dR/dt = -R alpha a / (2 tau) + (R_T - R) R' (b + d) / 2

    p' and R' are those of the delay ago, also inside a to e; rates stay within the capacity and
    the queue at 0 or above. Zhu, Ghobadi, Misra, Padhye, CoNEXT'16; Euler's method with steps of
    `step` seconds, exact for the equations as the step goes to 0. utilisation = N mean R / C, at
    most 1. True for many packets an interval, and for senders that all do the same. Its derivative
    is given as 0: that of a cycle over many periods says nothing.
    """
    fixed = jax.lax.stop_gradient((reaction, curve, start, step))
    return _motion(*fixed, lag, schedule)


# compiled as a whole also where it is called outside a program: the same rounding in both
@jax.jit(static_argnums=5)
def _motion(
    reaction: Reaction, curve: Curve, start: Start, step: Array, lag: Array, schedule: Schedule
) -> Motion:
    shape = jnp.broadcast_shapes(*(jnp.shape(x) for x in jax.tree.leaves((reaction, curve, step))))
    dtype = jnp.result_type(reaction.capacity)

    def whole(value: Array) -> Array:
        return jnp.broadcast_to(value, shape).astype(dtype)

    nothing = jnp.zeros(shape, dtype)
    rate, alpha = whole(start.rate), whole(start.alpha)
    begin = (rate, rate, alpha, nothing, nothing, nothing, nothing)

    def advance(state: State, late: State) -> State:
        return _advanced(reaction, curve, step, state, late)

    def observed(state: State) -> State:
        rate, queue = state[0], state[3]
        return queue, rate, marking_at(curve, queue)

    equation = Equation(advance, lambda state: (state[0], state[3]), observed)
    found, top = settled(equation, begin, jnp.broadcast_to(lag, shape), schedule)
    queue, rate, marking = found
    used = jnp.minimum(rate.mean * reaction.flows / reaction.capacity, 1.0)
    return Motion(queue, top, rate, marking.mean, used)


def _advanced(reaction: Reaction, curve: Curve, step: Array, state: State, late: State) -> State:
    rate, target, alpha, queue, rate_lost, target_lost, alpha_lost = state
    late_rate, late_queue = late
    by = reactions(reaction, marking_at(curve, late_queue), late_rate)
    ahead, cut = target - rate, by.decrease / reaction.notification_interval
    faster = step * 0.5 * (ahead * by.recovery - rate * alpha * cut)
    higher = step * (reaction.additive_increase * by.additive - ahead * cut)
    learnt = step * (reaction.alpha_gain / reaction.alpha_timer) * (by.alpha - alpha)
    longer = step * (reaction.flows * rate - reaction.capacity)
    rate, rate_lost = with_remainder(rate, rate_lost, faster)
    target, target_lost = with_remainder(target, target_lost, higher)
    alpha, alpha_lost = with_remainder(alpha, alpha_lost, learnt)
    return (
        jnp.clip(rate, 0.0, reaction.capacity),
        jnp.clip(target, 0.0, reaction.capacity),
        jnp.clip(alpha, 0.0, 1.0),
        jnp.maximum(queue + longer, 0.0),
        rate_lost,
        target_lost,
        alpha_lost,
    )
