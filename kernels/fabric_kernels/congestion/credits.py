"""InfiniBand: a sender spends credits, and congestion spreads upstream instead of losing."""

import jax.numpy as jnp

from fabric_kernels.congestion import Congestion
from fabric_kernels.congestion.bottleneck import bottleneck, regime
from fabric_kernels.congestion.lossless import credit_loop, credit_throughput
from fabric_kernels.incast import Incast
from fabric_kernels.inputs import Contention, Flows, LinkCredits, ScaleOut
from fabric_kernels.path import SECONDS_PER_METRE, Path


def credits(
    path: Path,
    incast: Incast,
    flows: Flows,
    scale_out: ScaleOut,
    contention: Contention,
    link_credits: LinkCredits,
) -> Congestion:
    """The loop of credits of each link, and the tree of held links behind a full one.

        need = C loop,  share = min(1, lane_buffer / need)
        efficiency = 1 / (1 / share + h (N - 1)),  h = hot_share / virtual_lanes
        queue = (N - 1) min(lane_buffer, need)

    loop of `lossless.credit_loop`, over a cable of mean length. The inputs of N ports wait in turn
    at a full output, each with what its credits let it send. A lane is first in, first out: a
    packet for the full output in front takes N times as long, so a lane with a share h of such
    packets passes one in 1 + h (N - 1) times. The same share at every switch back to the senders,
    which is the tree of held links: it counts once, not once a tier. More lanes spread the hot
    packets. Without end-to-end congestion control (FECN); never a loss. needed_buffer is one
    lane's, for the whole rate.
    """
    link = bottleneck(path, incast, flows, scale_out, contention)
    loop = credit_loop(
        scale_out.cable_length * SECONDS_PER_METRE,
        link_credits.credit_turnaround,
        link.packet / link.rate,
    )
    need = link.rate * loop
    share = credit_throughput(link_credits.lane_buffer, link.rate, loop)
    others = link.ports - 1.0
    blocked = link_credits.hot_share / link_credits.virtual_lanes * others
    used = jnp.maximum(1.0 / (1.0 / share + blocked), 1e-3)
    standing = others * jnp.minimum(link_credits.lane_buffer, need)
    held = jnp.where(others > 0, regime("pause_limited"), regime("quiet"))
    return Congestion(
        congestion_efficiency=used,
        queueing_delay=standing / link.rate,
        congestion_regime=jnp.where(share < 1.0, regime("credit_limited"), held),
        marking_probability=jnp.zeros_like(used),
        standing_queue=standing,
        largest_queue=standing,
        needed_buffer=need,
        pause_fraction=1.0 - used,
        victim_loss=blocked / (1.0 + blocked),
        congestion_loss_rate=jnp.zeros_like(used),
        phase_margin=jnp.full_like(used, jnp.pi),
    )


def credits_refusal(scale_out: ScaleOut, link_credits: LinkCredits) -> str | None:
    """Why a lane cannot hold a packet, for records of plain numbers."""
    buffer, packet = float(link_credits.lane_buffer), float(scale_out.packet_payload)
    if buffer >= packet:
        return None
    return (
        f"lane_buffer is {buffer:g} B and packet_payload {packet:g} B: a lane must hold one "
        f"packet; set lane_buffer to {packet:g} B or more."
    )
