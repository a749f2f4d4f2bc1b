"""One message of one flow: exact moments of the time it takes, in packet times."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

_LAST = 24  # packets at the end of a message whose few followers are looked at one by one


class FlowMoments(NamedTuple):
    """Time until the sender knows that all packets have come, in packet times."""

    mean: Array
    deviation: Array
    timer_chance: Array  # that the timer had to repair at least once
    mean_without_timer: Array  # given that it had not
    deviation_without_timer: Array


class _Packet(NamedTuple):
    mean: Array
    square: Array
    quiet: Array  # -log of the chance of no timer
    quiet_mean: Array
    quiet_square: Array


def go_back_n_moments(
    packets: Array, feedback: Array, window: Array, timeout: Array, rate: Array, *, single_nak: bool
) -> FlowMoments:
    """Go-back-N with independent losses of a packet in `rate`: exact for window >= feedback + 2.

    A packet fails a geometric number of times. A failure costs R + 2 + Y, Y the followers lost
    before one comes, or the timer T0 if all K - 1 that may follow are lost, K = min(window,
    packets left). With `single_nak` every further failure of the packet costs T0. Packets are
    independent, so their means and variances add, also given that no timer ran. Renewal argument
    as in Bertsekas and Gallager, Data Networks, 2.4.2; means without the timer agree with it.
    """
    totals = [jnp.zeros_like(rate)] * 5
    for left in range(1, _LAST + 2):
        share = jnp.where(packets >= left, 1.0, 0.0).astype(rate.dtype)
        if left > _LAST:
            share = jnp.maximum(packets - _LAST, 0.0)
        followed = jnp.minimum(jnp.asarray(left, rate.dtype), window)
        if left > _LAST:
            followed = jnp.minimum(window, packets)
        one = _packet(followed, feedback, timeout, rate, single_nak=single_nak)
        parts = (
            one.mean,
            one.square - one.mean * one.mean,
            one.quiet,
            one.quiet_mean,
            one.quiet_square - one.quiet_mean * one.quiet_mean,
        )
        totals = [total + share * part for total, part in zip(totals, parts, strict=True)]
    clean = packets + feedback
    mean, variance, quiet, quiet_mean, quiet_variance = totals
    return FlowMoments(
        clean + mean,
        jnp.sqrt(variance),
        -jnp.expm1(-quiet),
        clean + quiet_mean,
        jnp.sqrt(quiet_variance),
    )


def _packet(
    followed: Array, feedback: Array, timeout: Array, rate: Array, *, single_nak: bool
) -> _Packet:
    """What the failures of one packet cost."""
    log_rate = jnp.log(jnp.maximum(rate, 1e-30))
    silent = jnp.where(followed > 1, jnp.exp((followed - 1) * log_rate), 1.0)
    told = rate * (1 - silent)  # fails, and is reported
    cost, square = _report(followed, feedback, silent, rate)
    any_mean = (1 - silent) * cost + silent * timeout
    any_square = (1 - silent) * square + silent * timeout * timeout
    more, more_square = _geometric(rate)
    if single_nak:
        mean = rate * (any_mean + timeout * more)
        both = 2 * any_mean * timeout * more + timeout * timeout * more_square
        total_square = rate * (any_square + both)
        quiet = -jnp.log1p(-rate) - jnp.log1p(told)
        share = told / (1 + told)
        return _Packet(mean, total_square, quiet, share * cost, share * square)
    mean, total_square = _compound(rate, any_mean, any_square)
    quiet_mean, quiet_square = _compound(told, cost, square)
    quiet = -jnp.log1p(-rate) + jnp.log1p(-told)
    return _Packet(mean, total_square, quiet, quiet_mean, quiet_square)


def _geometric(rate: Array) -> tuple[Array, Array]:
    """Mean and mean square of the number of failures before a success."""
    mean = rate / (1 - rate)
    return mean, mean * (1 + rate) / (1 - rate)


def _compound(rate: Array, mean: Array, square: Array) -> tuple[Array, Array]:
    """Mean and mean square of a sum of a geometric number of independent costs."""
    number, number_square = _geometric(rate)
    return number * mean, number * square + (number_square - number) * mean * mean


def _report(followed: Array, feedback: Array, silent: Array, rate: Array) -> tuple[Array, Array]:
    """Mean and mean square of R + 2 + Y, given that one of the followers comes."""
    # Y is geometric and below followed - 1; by memorylessness the rest beyond is the law again
    first, second = _geometric(rate)
    beyond = followed - 1
    kept = jnp.where(silent < 1, 1 - silent, 1.0)
    mean = jnp.maximum(first - silent * (beyond + first), 0.0) / kept
    rest = beyond * beyond + 2 * beyond * first + second
    square = jnp.maximum(second - silent * rest, 0.0) / kept
    base = feedback + 2
    return base + mean, base * base + 2 * base * mean + square


def selective_repeat_mean(
    packets: Array, feedback: Array, window: Array, timeout: Array, rate: Array
) -> Array:
    """Mean time of selective repeat with independent losses, in packet times.

        M + R + M p / (1 - p) + (D - 1) clusters
        + p (tail + T0 - D) + clusters p (1 - p)^(W - 1) s (T0 - D),   D = max(1, 2 R + 3 - W)

    with clusters = M p / (1 + p (W - 1)), tail what losses among the last R + 3 packets cost
    beyond D, and s = p^(W - R - 2) where the window shuts, else 0: the chance that no packet
    shows that a repair was lost. Against packet-by-packet runs within 0.5 %.
    """
    wait = jnp.maximum(2 * feedback + 3 - window, 1.0)
    clusters = packets * rate / (1 + rate * (window - 1))
    hidden = jnp.maximum(feedback + 1 - wait, 0.0)
    near = jnp.minimum(hidden, jnp.maximum(packets - 1, 0.0))
    tail = near * (hidden - (near - 1) / 2)
    followers = jnp.maximum(window - feedback - 2, 0.0)
    silent = jnp.exp(followers * jnp.log(jnp.maximum(rate, 1e-30)))
    alone = jnp.where(wait > 1, rate * jnp.exp((window - 1) * jnp.log1p(-rate)) * silent, 0.0)
    clean = packets + feedback
    return (
        clean
        + packets * rate / (1 - rate)
        + (wait - 1) * clusters
        + rate * (tail + timeout - wait)
        + clusters * alone * (timeout - wait)
    )


def go_back_n_goodput(rate: Array, window: Array) -> Array:
    """Share of the rate that go-back-N delivers with its window of packets kept full.

        (1 - p) / (1 - p + p W),  W = rate x round trip / packet + 1

    Bertsekas and Gallager, Data Networks, 2.4.2.
    """
    return (1 - rate) / (1 - rate + rate * window)


def selective_repeat_goodput(rate: Array) -> Array:
    """Share of the rate that selective repeat delivers with an open window: 1 - p."""
    return 1 - rate


def timeout_of(exponent: Array) -> Array:
    """Retransmission timer of InfiniBand and RoCE adapters (s): 4.096 us x 2^exponent."""
    return 4.096e-6 * jnp.exp2(exponent)
