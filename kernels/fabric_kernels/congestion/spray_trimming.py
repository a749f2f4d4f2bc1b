"""Transports that spray packets over all ways, hold windows, and trim at a full queue."""

import dataclasses

import jax.numpy as jnp

from fabric_kernels.congestion import Congestion
from fabric_kernels.congestion.bottleneck import bottleneck, queued, quiet, regime
from fabric_kernels.incast import Incast
from fabric_kernels.inputs import Contention, Flows, ScaleOut, SprayTransport
from fabric_kernels.path import Path


def spray_trimming(
    path: Path,
    incast: Incast,
    flows: Flows,
    scale_out: ScaleOut,
    contention: Contention,
    spray_transport: SprayTransport,
) -> Congestion:
    """Windows keep a small queue; what comes before they know, or beyond them, is trimmed.

        first burst = N initial_window pipe,  pipe = C RTT
        trimmed at first = 1 - (pipe + buffer) / first burst, at least 0
        trimmed for ever = 1 - (pipe + buffer) / (N packet), at least 0
        loss = for ever + (1 - for ever) unsolicited_share x at first
        efficiency = 1 / (1 + loss trimmed_packet / packet)
        queue = target_queue_time C, or N packet - pipe where that is more, up to the buffer

    Ultra Ethernet 1.0 (NSCC with trimming), MRC; Handley et al., NDP, SIGCOMM'17, for trimming.
    The headers of trimmed packets pass the full link, their payloads never do, and each comes
    again: what that costs in time is the question loss. Collisions between switches are gone
    because packets are sprayed, at the efficiency that is in the rate of the path (routing
    `spraying` or `adaptive`, several planes): not again here. One packet of each flow is always
    on its way, so very many flows trim for ever.
    """
    link = bottleneck(path, incast, flows, scale_out, contention)
    pipe = link.rate * link.round_trip
    room = pipe + link.buffer
    burst = link.flows * spray_transport.initial_window * jnp.maximum(pipe, link.packet)
    least = link.flows * link.packet
    at_first = jnp.maximum(1.0 - room / burst, 0.0)
    for_ever = jnp.maximum(1.0 - room / least, 0.0)
    loss = for_ever + (1.0 - for_ever) * spray_transport.unsolicited_share * at_first
    target = spray_transport.target_queue_time * link.rate
    standing = jnp.minimum(jnp.maximum(target, least - pipe), link.buffer)
    busy = dataclasses.replace(
        quiet(jnp.ones_like(link.rate)),
        congestion_efficiency=1.0 / (1.0 + loss * spray_transport.trimmed_packet / link.packet),
        congestion_regime=jnp.where(loss > 0, regime("trimming"), regime("window_controlled")),
        standing_queue=standing,
        largest_queue=jnp.minimum(jnp.maximum(burst - pipe, standing), link.buffer),
        needed_buffer=jnp.maximum(burst - pipe, standing),
        congestion_loss_rate=loss,
    )
    return queued(link, busy, jnp.zeros_like(pipe))
