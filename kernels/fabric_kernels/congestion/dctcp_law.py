"""DCTCP: the sawtooth of windows that are cut in proportion to the marks, and its queue."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from fabric_kernels.maths.delayed import (
    Equation,
    Schedule,
    Settled,
    State,
    settled,
    with_remainder,
)

_NEWTON_STEPS = 4


class Sawtooth(NamedTuple):
    """One period of N windows that rise and fall together; packets."""

    critical_window: Array  # W*, of one sender, at which the queue reaches the threshold
    alpha: Array
    fall: Array  # D, what one window loses, and the round trips of a period
    amplitude: Array  # A = N D, of the queue
    highest: Array  # queue
    lowest: Array  # below 0: the link idles once a period


class Senders(NamedTuple):
    """N alike senders at one bottleneck; packets and seconds."""

    capacity: Array  # packets a second
    flows: Array
    round_trip: Array  # with an empty queue
    threshold: Array  # K
    gain: Array  # g


class Motion(NamedTuple):
    """What the bottleneck does once it has settled."""

    queue: Settled  # packets
    queue_p99: Array
    alpha: Settled
    utilisation: Array


def sawtooth(senders: Senders) -> Sawtooth:
    """Fixed point of N synchronised windows of packets.

        W* = (C RTT + K) / N,  alpha^2 (1 - alpha / 4) = (2 W* + 1) / (W* + 1)^2
        D = (W* + 1) alpha / 2,  A = N D,  Q_max = K + N,  Q_min = Q_max - A

    Alizadeh et al., SIGCOMM'10, section 3.3. alpha = 1 where a window of less than one packet
    would be asked for. An upper bound of the amplitude: senders that are not in step smooth it.
    """
    bandwidth_delay = senders.capacity * senders.round_trip
    window = (bandwidth_delay + senders.threshold) / senders.flows
    share = (2.0 * window + 1.0) / ((window + 1.0) * (window + 1.0))
    alpha = _alpha(jnp.minimum(share, 0.75))
    fall = (window + 1.0) * alpha * 0.5
    amplitude = senders.flows * fall
    highest = senders.threshold + senders.flows
    return Sawtooth(window, alpha, fall, amplitude, highest, highest - amplitude)


def _alpha(share: Array) -> Array:
    """Root of alpha^2 (1 - alpha / 4) = share <= 3/4 by Newton's method."""
    root = jnp.sqrt(share)
    alpha = root * (1.0 + 0.125 * root)
    for _ in range(_NEWTON_STEPS):
        value = alpha * alpha * (1.0 - 0.25 * alpha) - share
        alpha = alpha - value / (alpha * (2.0 - 0.75 * alpha))
    return alpha


def least_threshold(bandwidth_delay: Array) -> Array:
    """Marking threshold K below which some number of senders empties the queue: C RTT / 7.

    Minimum over N of Q_min with alpha = sqrt(2 / W*), at N = (C RTT + K) / 8. Alizadeh et al.,
    SIGCOMM'10, equation 13.
    """
    return bandwidth_delay / 7.0


def largest_gain(bandwidth_delay: Array, threshold: Array) -> Array:
    """Gain g above which alpha follows one period instead of the mean of several.

    1.386 / sqrt(2 (C RTT + K)); Alizadeh et al., SIGCOMM'10, equation 15.
    """
    return 1.386 / jnp.sqrt(2.0 * (bandwidth_delay + threshold))


def motion(senders: Senders, step: Array, lag: Array, schedule: Schedule) -> Motion:
    """Integrate the windows, their alpha and the queue; marks come back `lag` steps later.

        dW/dt = 1 / R - W alpha p' / (2 R),  dalpha/dt = g / R (p' - alpha)
        dq/dt = N W / R - C,  R = RTT + q / C,  p = 1 where q > K, else 0

    p' is that of RTT + K / C ago. Alizadeh, Javanmard, Prabhakar, SIGMETRICS'11, section 3. The
    queue stays at 0 or above and a window at one packet or above. utilisation = mean of the
    packets that leave, over C. Starts with full windows, alpha = 1 and an empty queue.
    Its derivative is given as 0: that of a cycle over many periods says nothing.
    """
    fixed = jax.lax.stop_gradient((senders, step))
    return _motion(*fixed, lag, schedule)


# compiled as a whole also where it is called outside a program: the same rounding in both
@jax.jit(static_argnums=3)
def _motion(senders: Senders, step: Array, lag: Array, schedule: Schedule) -> Motion:
    shape = jnp.broadcast_shapes(*(jnp.shape(x) for x in (*senders, step, lag)))
    dtype = jnp.result_type(senders.capacity)
    window = jnp.maximum(senders.capacity * senders.round_trip / senders.flows, 1.0)
    nothing = jnp.zeros(shape, dtype)
    full = jnp.broadcast_to(window, shape).astype(dtype)
    begin = (full, nothing + 1.0, nothing, nothing, nothing, nothing + senders.capacity)

    def advance(state: State, late: State) -> State:
        return _advanced(senders, step, state, late)

    equation = Equation(advance, lambda state: (state[2],), lambda s: (s[2], s[1], s[5]))
    found, top = settled(equation, begin, jnp.broadcast_to(lag, shape), schedule)
    queue, alpha, leaving = found
    return Motion(queue, top, alpha, jnp.minimum(leaving.mean / senders.capacity, 1.0))


def _advanced(senders: Senders, step: Array, state: State, late: State) -> State:
    window, alpha, queue, window_lost, alpha_lost, _ = state
    marked = jnp.where(late[0] > senders.threshold, 1.0, 0.0).astype(queue.dtype)
    round_trip = senders.round_trip + queue / senders.capacity
    trips = step / round_trip
    arriving = senders.flows * window / round_trip
    grown, window_lost = with_remainder(
        window, window_lost, trips * (1.0 - 0.5 * window * alpha * marked)
    )
    learnt, alpha_lost = with_remainder(alpha, alpha_lost, trips * senders.gain * (marked - alpha))
    longer = queue + step * (arriving - senders.capacity)
    leaving = senders.capacity + jnp.minimum(longer, 0.0) / step
    return (
        jnp.maximum(grown, 1.0),
        jnp.clip(learnt, 0.0, 1.0),
        jnp.maximum(longer, 0.0),
        window_lost,
        alpha_lost,
        leaving,
    )
