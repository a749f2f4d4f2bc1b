"""DCQCN: senders that follow the marks of the switch, where they balance."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from fabric_kernels.congestion import Congestion
from fabric_kernels.congestion.bottleneck import Bottleneck, bottleneck, queued, regime
from fabric_kernels.congestion.dcqcn_law import Balance, Reaction, balance
from fabric_kernels.congestion.lossless import pause_headroom
from fabric_kernels.congestion.marking import Curve, queue_at
from fabric_kernels.congestion.stability import phase_margin
from fabric_kernels.incast import Incast
from fabric_kernels.inputs import (
    Contention,
    Flows,
    MarkingCurve,
    PauseControl,
    RateReaction,
    ScaleOut,
)
from fabric_kernels.path import SECONDS_PER_METRE, Path


class Cycle(NamedTuple):
    """Where marks have no fixed point: the queue moves about the end of the marking curve."""

    mean: Array  # packets
    highest: Array
    utilisation: Array


def dcqcn(
    path: Path,
    incast: Incast,
    flows: Flows,
    scale_out: ScaleOut,
    contention: Contention,
    marking_curve: MarkingCurve,
    rate_reaction: RateReaction,
    pause_control: PauseControl,
) -> Congestion:
    """The fixed point of DCQCN and its queue; a limit cycle where the curve has none.

        R = C / N,  p* of `dcqcn_law.balance`
        p* <= largest_marking: queue = start + p* / largest_marking (end - start), all of the rate
        p* above: no fixed point, `limit_cycle` about the end of the curve

    Zhu et al., SIGCOMM'15; Zhu, Ghobadi, Misra, Padhye, CoNEXT'16, with the curve as switches have
    it, p = 1 beyond its end. A round trip with empty queues is the delay of the loop. Only
    phase_margin says whether the fixed point is stable: a loop that is not oscillates about the
    same mean and may lose a tenth of the rate (`dcqcn_fluid`). marking_probability is p* in both
    cases. Pauses back the buffer up. What flows do when they start is not in it.
    """
    link = bottleneck(path, incast, flows, scale_out, contention)
    reaction = reaction_of(link, rate_reaction)
    curve = curve_of(link, marking_curve)
    point = balance(reaction)
    fixed = point.marking <= curve.largest
    cycle = limit_cycle(reaction, curve, point, link.round_trip)
    # of a curve that is not reached, a value inside it
    standing = queue_at(curve, jnp.minimum(point.marking, curve.largest))
    mean = jnp.where(fixed, standing, cycle.mean) * link.packet
    top = jnp.where(fixed, standing, cycle.highest) * link.packet
    margin = phase_margin(reaction, curve, point, link.round_trip)
    busy = Congestion(
        congestion_efficiency=jnp.where(fixed, 1.0, cycle.utilisation),
        queueing_delay=mean / link.rate,
        congestion_regime=jnp.where(fixed, regime("fixed_point"), regime("limit_cycle")),
        marking_probability=point.marking,
        standing_queue=mean,
        largest_queue=top,
        needed_buffer=top,
        pause_fraction=share_above(top, link.buffer),
        victim_loss=jnp.zeros_like(mean),
        congestion_loss_rate=jnp.zeros_like(mean),
        phase_margin=jnp.where(fixed, margin, 0.0),
    )
    return queued(link, busy, headroom_of(link, scale_out, pause_control))


def reaction_of(link: Bottleneck, rate_reaction: RateReaction) -> Reaction:
    """The senders of a link, in packets."""
    return Reaction(
        capacity=link.rate / link.packet,
        flows=link.flows,
        alpha_gain=rate_reaction.alpha_gain,
        notification_interval=rate_reaction.notification_interval,
        alpha_timer=rate_reaction.alpha_timer,
        increase_timer=rate_reaction.increase_timer,
        byte_counter=rate_reaction.byte_counter / link.packet,
        recovery_steps=rate_reaction.recovery_steps,
        additive_increase=rate_reaction.additive_increase / link.packet,
    )


def curve_of(link: Bottleneck, marking_curve: MarkingCurve) -> Curve:
    """The marking curve of a link, in packets."""
    capacity = link.rate / link.packet
    end = marking_curve.marking_end_time * capacity
    start = marking_curve.marking_start_time * capacity
    return Curve(start, end, marking_curve.largest_marking + jnp.zeros_like(end), end)


def headroom_of(link: Bottleneck, scale_out: ScaleOut, pause_control: PauseControl) -> Array:
    """Bytes that still come after a pause of this link."""
    cable = scale_out.cable_length * SECONDS_PER_METRE
    return pause_headroom(link.packet, link.rate, cable, pause_control.pause_response)


def share_above(top: Array, buffer: Array) -> Array:
    """Share of time in which a queue that swings between 0 and `top` holds the links into it.

    Above the buffer for 1 - buffer / top of the time, and growing for half of that.
    """
    return 0.5 * jnp.maximum(1.0 - buffer / jnp.maximum(top, 1e-30), 0.0)


def limit_cycle(reaction: Reaction, curve: Curve, point: Balance, delay: Array) -> Cycle:
    """What the queue does when marks on the slope of the curve are too few.

        growth r = N R_AI / (C T),  fall s = alpha* / (2 tau)
        highest = end + C (e delay + r delay^2 / 2 + (e + r delay)^2 / (2 s)),
            e = sqrt(2 r end / C)
        utilisation = 1 - (1 - exp(-s delay)) / 2
        mean = end (1 - min(1, 2 delay / tau) / 2)

    A relay: rates grow while the queue fills, cross its end with the excess e, and fall only when
    the marks have come back; they are cut for a delay too long and win half of that back. Against
    the fluid model (40 to 800G, 16 to 256 flows, delays of 4 to 85 us): utilisation from 0.02
    below to 0.06 above, mean within a factor of 3.2, highest from 2 % below to 70 % above, most
    where the delay is short, as the queue then does not fall to 0.
    """
    interval = reaction.notification_interval
    growth = reaction.flows * reaction.additive_increase
    growth = growth / (reaction.capacity * reaction.increase_timer)
    fall = 0.5 * point.alpha / interval
    end = curve.end / reaction.capacity
    excess = jnp.sqrt(2.0 * growth * end)
    most = jnp.minimum(excess + growth * delay, jnp.maximum(reaction.flows - 1.0, 0.0))
    over = excess * delay + 0.5 * growth * delay * delay + 0.5 * most * most / fall
    return Cycle(
        mean=curve.end * (1.0 - 0.5 * jnp.minimum(2.0 * delay / interval, 1.0)),
        highest=curve.end + reaction.capacity * over,
        utilisation=1.0 + 0.5 * jnp.expm1(-fall * delay),
    )


def dcqcn_refusal(
    scale_out: ScaleOut, contention: Contention, marking_curve: MarkingCurve
) -> str | None:
    """Why there is no such marking curve or buffer, for records of plain numbers."""
    start, end = float(marking_curve.marking_start_time), float(marking_curve.marking_end_time)
    if not start < end:
        return (
            f"marking_start_time is {start:g} s and marking_end_time {end:g} s: a curve that rises "
            "needs its start below its end; set one of them."
        )
    return buffer_refusal(scale_out, contention)


def buffer_refusal(scale_out: ScaleOut, contention: Contention) -> str | None:
    """Why a buffer cannot hold a packet, for records of plain numbers."""
    buffer, packet = float(contention.port_buffer), float(scale_out.packet_payload)
    if buffer >= packet:
        return None
    return (
        f"port_buffer is {buffer:g} B and packet_payload {packet:g} B: a buffer must hold one "
        f"packet; set port_buffer to {packet:g} B or more."
    )
