"""What losses cost, for every way to repair them: stalls of one message of one flow.

Times in packet times: M packets of the message, R from the end of a packet to the sender's
knowing, W the window. A clean message takes M + R.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

from fabric_kernels.loss.laws.critical import Stalls
from fabric_kernels.loss.laws.flow import Flow, Losses, Repair, weighed

RepairOf = Callable[[Array], Repair]
"""What the losses of a message of this many bytes cost."""


def go_back_n_repair(flow: Flow, losses: Losses) -> RepairOf:
    """Go-back-N, the receiver reporting a packet as often as it is lost.

        told:   rate (M - 1) e,  cost (R + 2 + p / (1 - p)) packet times
        timed:  rate of a lost last packet,  cost the timer

    A lost packet costs R + 2, and one more for every packet behind it that is lost too, because
    the next one that arrives makes the receiver speak. With e = -log(1 - p) the chance of no
    stall is exact, and so is the mean: cost x p / ((1 - p) e). A burst hits go-back-N once:
    p / (1 + severity (length - 1)) bursts a packet, again if it outlasts R + 2. Source: mean
    W p / (1 - p) as of Bertsekas and Gallager, Data Networks, 2.4.2; compared with
    `go_back_n_moments`. For W >= R + 2.
    """
    slots = flow.round_trip / flow.packet_time
    again = losses.bursts.loss_burst_severity * losses.persists(slots + 2)
    event = losses.exponent / losses.per_event
    lost = losses.rate / (1 - losses.rate)
    # mean number over Poisson rate, 1 where losses are rare
    repeats = _over(lost, losses.exponent) / (1 - jnp.minimum(again, 0.999) * _hits(losses))
    cost = flow.packet_time * (slots + 2 + lost) * repeats
    timed = Stalls(flow.timeout * _over(lost, losses.exponent), losses.exponent)

    def of(payload: Array) -> Repair:
        return Repair(Stalls(cost, (flow.packets(payload) - 1) * event), timed)

    return of


def go_back_n_single_nak_repair(flow: Flow, losses: Losses) -> RepairOf:
    """Go-back-N, the receiver reporting a packet once and then silent until it comes.

    As `go_back_n_repair`, but a second loss of the same packet waits for the timer: M p^2 / (1 -
    p) timers a message, which dominate once p x timer > R. In a burst that outlasts R + 2 the
    second loss is likely.
    """
    slots = flow.round_trip / flow.packet_time
    event = losses.exponent / losses.per_event
    second = losses.again(slots + 2)
    cost = flow.packet_time * (slots + 2 + losses.rate) * _over(losses.rate, losses.exponent)
    lost = losses.rate / (1 - losses.rate)
    tail = Stalls(flow.timeout * _over(lost, losses.exponent), losses.exponent)

    def of(payload: Array) -> Repair:
        followed = flow.packets(payload) - 1
        twice = Stalls(flow.timeout / (1 - second), followed * event * second)
        return Repair(Stalls(cost, followed * event), weighed(twice, tail))

    return of


def selective_repeat_repair(flow: Flow, losses: Losses) -> RepairOf:
    """Selective repeat in a window: what was lost is sent again, and nothing else.

        D = max(1, 2 R + 3 - W)
        told: clusters M p / (1 + p (W - 1)), cost D - 1 and a packet time for every loss; and
              among the last R + 3 packets what the window no longer hides

    With W >= 2 R + 2, two bandwidth-delay products, a loss costs one packet time; below, the
    window shuts until the repair is known, and losses within W of the first share that wait. With
    W of one product it saves little over go-back-N. The timer repairs a lost last packet; and a
    repair that is lost again when no packet may follow it, which needs a shut window: the W - R -
    2 packets that still may are lost too. True while the timer is far above R.
    """
    slots = flow.round_trip / flow.packet_time
    window = flow.window
    wait = jnp.maximum(2 * slots + 3 - window, 1.0)
    shared = 1 + losses.rate * (window - 1)
    clusters = losses.exponent / jnp.maximum(shared, losses.per_event)
    per_cluster = jnp.maximum(shared, losses.per_event)
    cost = flow.packet_time * (wait - 1 + per_cluster / (1 - losses.rate))
    last = Stalls(jnp.maximum(flow.timeout, 0.0) + 0 * cost, losses.exponent)
    followers = jnp.maximum(window - slots - 2, 0.0)
    # log of the chance that all of them are lost; 0 for none
    silent = jnp.exp(followers * jnp.log(jnp.maximum(losses.rate, 1e-30)))
    alone = losses.rate * jnp.exp(-(window - 1) * losses.exponent) * silent
    alone = jnp.where(wait > 1, alone, 0.0)

    def of(payload: Array) -> Repair:
        packets = flow.packets(payload)
        hidden = jnp.maximum(slots + 1 - wait, 0.0)
        near = jnp.minimum(packets - 1, hidden)
        late = Stalls(flow.packet_time * (hidden - (near - 1) / 2), near * losses.exponent)
        told = Stalls(cost, (packets - 1) * clusters)
        # the late wait comes on top of what the same loss costs anyway
        told = Stalls(_with(told, late), told.rate)
        return Repair(told, weighed(Stalls(flow.timeout, packets * clusters * alone), last))

    return of


def trimming_repair(flow: Flow, losses: Losses) -> RepairOf:
    """Trimming: a full queue forwards the header, and the receiver asks for the payload.

        told: cost R + lost payload / rate;  no timer

    Source: Handley et al., SIGCOMM'17 (NDP); Ultra Ethernet 1.0 makes it optional. Every lost
    packet, the last one too, is known at once. True for packets that queues drop; a packet that
    the wire destroys leaves no header: take `selective_repeat` for those.
    """
    event = losses.exponent / losses.per_event
    again = _over(losses.rate / (1 - losses.rate), losses.exponent)
    cost = (flow.round_trip + flow.packet_time * losses.per_event) * again

    def of(payload: Array) -> Repair:
        return Repair(Stalls(cost, flow.packets(payload) * event), None)

    return of


def link_retry_repair(flow: Flow, losses: Losses) -> RepairOf:
    """Link retry: the port repeats the broken frame, and nothing is lost end to end.

        told: cost R + 2 frames;  no timer

    The round trip of the flow is that of one link: out and back on the cable with both
    turnarounds. Go-back-N on one link.
    """
    event = losses.exponent / losses.per_event
    again = _over(losses.rate / (1 - losses.rate), losses.exponent)
    cost = (flow.round_trip + 2 * flow.packet_time) * again

    def of(payload: Array) -> Repair:
        return Repair(Stalls(cost, flow.packets(payload) * event), None)

    return of


def _with(first: Stalls, extra: Stalls) -> Array:
    """Cost of the first kind with that of the other spread over it."""
    return first.cost + extra.cost * extra.rate / jnp.where(first.rate > 0, first.rate, 1.0)


def _hits(losses: Losses) -> Array:
    """Chance that a burst loses any packet before it ends, from within."""
    severity, length = losses.bursts.loss_burst_severity, losses.bursts.loss_burst_length
    return severity * length / (1 + severity * (length - 1))


def _over(part: Array, whole: Array) -> Array:
    """part / whole, 1 where both vanish."""
    return jnp.where(whole > 0, part / jnp.where(whole > 0, whole, 1.0), 1.0)
