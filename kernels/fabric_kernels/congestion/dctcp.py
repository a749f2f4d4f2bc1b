"""DCTCP: windows that are cut in proportion to the marks, as a sawtooth."""

import jax.numpy as jnp
from jax import Array

from fabric_kernels.congestion import Congestion
from fabric_kernels.congestion.bottleneck import Bottleneck, bottleneck, queued, regime
from fabric_kernels.congestion.dcqcn import headroom_of, share_above
from fabric_kernels.congestion.dctcp_law import Sawtooth, Senders, least_threshold, sawtooth
from fabric_kernels.incast import Incast
from fabric_kernels.inputs import (
    Contention,
    Flows,
    PauseControl,
    ScaleOut,
    WindowReaction,
)
from fabric_kernels.path import Path


def dctcp(
    path: Path,
    incast: Incast,
    flows: Flows,
    scale_out: ScaleOut,
    contention: Contention,
    window_reaction: WindowReaction,
    pause_control: PauseControl,
) -> Congestion:
    """The sawtooth of N windows in step, its queue, and what is lost where the queue runs empty.

        queue from Q_min to Q_max of `dctcp_law.sawtooth`, at least N packets - C RTT
        mean = Q_max - A / 2, or Q_max^2 / (2 A) where Q_min < 0
        efficiency = 1 - Q_min^2 / (2 A C RTT) there

    Alizadeh et al., SIGCOMM'10. Where Q_min < 0 the link idles once a period; that needs K below
    C RTT / 7 for some N. With more flows than packets in the loop each still has one packet on its
    way: the queue then grows with N whatever is marked. marking_probability is alpha. An upper
    bound of the swing: senders out of step smooth it. needed_buffer is that of the whole rate.
    """
    link = bottleneck(path, incast, flows, scale_out, contention)
    senders = senders_of(link, window_reaction)
    found = sawtooth(senders)
    bandwidth_delay = senders.capacity * senders.round_trip
    mean, share = _queue(found, senders, bandwidth_delay)
    top = jnp.maximum(found.highest, senders.flows - bandwidth_delay) * link.packet
    enough = (least_threshold(bandwidth_delay) + senders.flows) * link.packet
    runs_empty = share < 1.0
    busy = Congestion(
        congestion_efficiency=jnp.clip(share, 1e-3, 1.0),
        queueing_delay=mean * link.packet / link.rate,
        congestion_regime=jnp.where(runs_empty, regime("underflow"), regime("sawtooth")),
        marking_probability=found.alpha,
        standing_queue=mean * link.packet,
        largest_queue=top,
        needed_buffer=jnp.maximum(top, enough),
        pause_fraction=share_above(top, link.buffer),
        victim_loss=jnp.zeros_like(mean),
        congestion_loss_rate=jnp.zeros_like(mean),
        phase_margin=jnp.full_like(mean, jnp.pi),
    )
    return queued(link, busy, headroom_of(link, scale_out, pause_control))


def _queue(found: Sawtooth, senders: Senders, bandwidth_delay: Array) -> tuple[Array, Array]:
    """Mean queue in packets, and the share of the rate that is used."""
    below = jnp.maximum(-found.lowest, 0.0)
    clipped = 0.5 * found.highest * found.highest / found.amplitude
    mean = jnp.where(below > 0, clipped, found.highest - 0.5 * found.amplitude)
    least = senders.flows - bandwidth_delay
    idle = 0.5 * below * below / (found.amplitude * jnp.maximum(bandwidth_delay, 1e-6))
    full = (least >= 0) | (below <= 0)
    return jnp.maximum(mean, least), jnp.where(full, 1.0, 1.0 - idle)


def senders_of(link: Bottleneck, window_reaction: WindowReaction) -> Senders:
    """The senders of a link, in packets."""
    capacity = link.rate / link.packet
    return Senders(
        capacity=capacity,
        flows=link.flows,
        round_trip=link.round_trip,
        threshold=capacity * window_reaction.marking_threshold_time,
        gain=window_reaction.window_gain + jnp.zeros_like(capacity),
    )
