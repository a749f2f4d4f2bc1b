"""DCQCN in time: the delayed equations integrated, for what a fixed point does not say."""

import jax
import jax.numpy as jnp
from jax import Array

from fabric_kernels.congestion import Congestion
from fabric_kernels.congestion.bottleneck import Bottleneck, bottleneck, queued, regime
from fabric_kernels.congestion.dcqcn import curve_of, headroom_of, reaction_of, share_above
from fabric_kernels.congestion.dcqcn_delayed import Start, motion
from fabric_kernels.congestion.dcqcn_law import Reaction, balance
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
from fabric_kernels.maths.delayed import Schedule
from fabric_kernels.path import Path

SCHEDULE = Schedule(settling=1000, blocks=500, stride=60, memory=128)
"""90,000 steps, 90 ms at the default interval, of which the last third is counted."""

_STEPS_AN_INTERVAL = 50.0
_LEAST_STEPS_AN_INTERVAL = 10.0
_SWING = 0.05  # of the mean queue: less is called a fixed point


def dcqcn_fluid(
    path: Path,
    incast: Incast,
    flows: Flows,
    scale_out: ScaleOut,
    contention: Contention,
    marking_curve: MarkingCurve,
    rate_reaction: RateReaction,
    pause_control: PauseControl,
) -> Congestion:
    """What queue and rates of DCQCN do, integrated over 1800 notification intervals.

    `dcqcn_delayed.motion` with steps of a fiftieth of the interval, longer (up to a tenth) where
    the round trip is above 126 of them, so that the delay is a whole number of steps; a delay of
    more than 12 intervals is taken as 12. Starts at line rate with
    the alpha of the fixed point and counts the last third, so that it also serves where there is
    no fixed point or an unstable one. Costs some ms a sample on one core (7 transcendental
    functions a step): for small sweeps and as a check of `dcqcn`. standing_queue is the mean,
    largest_queue the 99th percentile; limit_cycle where the queue's deviation is above a twentieth
    of its mean, underflow where it also runs empty; marking_probability is the mean over time.
    """
    link = bottleneck(path, incast, flows, scale_out, contention)
    reaction, curve = reaction_of(link, rate_reaction), curve_of(link, marking_curve)
    point = balance(reaction)
    step, lag = steps_of(link, reaction, SCHEDULE.memory)
    begin = Start(reaction.capacity, point.alpha)
    found = motion(reaction, curve, begin, step, lag, SCHEDULE)
    mean, top = found.queue.mean * link.packet, found.queue_p99 * link.packet
    steady = found.queue.deviation <= _SWING * found.queue.mean
    swinging = jnp.where(found.queue.least > 0, regime("limit_cycle"), regime("underflow"))
    margin = phase_margin(reaction, curve, point, link.round_trip)
    busy = Congestion(
        congestion_efficiency=jnp.clip(found.utilisation, 1e-3, 1.0),
        queueing_delay=mean / link.rate,
        congestion_regime=jnp.where(steady, regime("fixed_point"), swinging),
        marking_probability=found.marking,
        standing_queue=mean,
        largest_queue=top,
        needed_buffer=found.queue.most * link.packet,
        pause_fraction=share_above(top, link.buffer),
        victim_loss=jnp.zeros_like(mean),
        congestion_loss_rate=jnp.zeros_like(mean),
        phase_margin=jnp.where(point.marking <= curve.largest, margin, 0.0),
    )
    return queued(link, busy, headroom_of(link, scale_out, pause_control))


def steps_of(link: Bottleneck, reaction: Reaction, memory: int) -> tuple[Array, Array]:
    """A step in seconds that the round trip is a whole number of, and that number."""
    fine = reaction.notification_interval / _STEPS_AN_INTERVAL
    whole = jnp.clip(jnp.round(link.round_trip / fine), 1.0, memory - 2.0)
    whole = jax.lax.stop_gradient(whole)
    short = link.round_trip < 0.5 * fine
    coarse = reaction.notification_interval / _LEAST_STEPS_AN_INTERVAL
    step = jnp.where(short, fine, jnp.minimum(link.round_trip / whole, coarse))
    return step, jnp.where(short, 0.0, whole).astype(jnp.int32)
