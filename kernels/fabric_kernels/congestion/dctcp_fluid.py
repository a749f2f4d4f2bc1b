"""DCTCP in time: the delayed equations of windows integrated."""

import jax.numpy as jnp

from fabric_kernels.congestion import Congestion
from fabric_kernels.congestion.bottleneck import bottleneck, queued, regime
from fabric_kernels.congestion.dcqcn import headroom_of, share_above
from fabric_kernels.congestion.dctcp import senders_of
from fabric_kernels.congestion.dctcp_law import motion
from fabric_kernels.incast import Incast
from fabric_kernels.inputs import (
    Contention,
    Flows,
    PauseControl,
    ScaleOut,
    WindowReaction,
)
from fabric_kernels.maths.delayed import Schedule
from fabric_kernels.path import Path

LAG = 128
SCHEDULE = Schedule(settling=200, blocks=200, stride=128, memory=LAG + 1)
"""400 delays; the second half is counted."""


def dctcp_fluid(
    path: Path,
    incast: Incast,
    flows: Flows,
    scale_out: ScaleOut,
    contention: Contention,
    window_reaction: WindowReaction,
    pause_control: PauseControl,
) -> Congestion:
    """What queue and windows of DCTCP do, integrated over 400 delays of 128 steps.

    `dctcp_law.motion`; the delay is RTT + K / C. Costs about 1 ms a sample on one core: for small
    sweeps and as a check of `dctcp`. standing_queue is the mean, largest_queue the 99th
    percentile; underflow where the queue runs empty. marking_probability is the mean of alpha.
    """
    link = bottleneck(path, incast, flows, scale_out, contention)
    senders = senders_of(link, window_reaction)
    delay = senders.round_trip + senders.threshold / senders.capacity
    lag = jnp.full(delay.shape, LAG, jnp.int32)
    found = motion(senders, delay / LAG, lag, SCHEDULE)
    mean, top = found.queue.mean * link.packet, found.queue_p99 * link.packet
    runs_empty = found.queue.least <= 0
    busy = Congestion(
        congestion_efficiency=jnp.clip(found.utilisation, 1e-3, 1.0),
        queueing_delay=mean / link.rate,
        congestion_regime=jnp.where(runs_empty, regime("underflow"), regime("sawtooth")),
        marking_probability=found.alpha.mean,
        standing_queue=mean,
        largest_queue=top,
        needed_buffer=found.queue.most * link.packet,
        pause_fraction=share_above(top, link.buffer),
        victim_loss=jnp.zeros_like(mean),
        congestion_loss_rate=jnp.zeros_like(mean),
        phase_margin=jnp.full_like(mean, jnp.pi),
    )
    return queued(link, busy, headroom_of(link, scale_out, pause_control))
