"""One way to repair losses, for every exchange of a step."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from fabric_kernels.collective import Collective
from fabric_kernels.errors import Errors
from fabric_kernels.expert import Expert
from fabric_kernels.inputs import Retransmission, ScaleOut
from fabric_kernels.inputs.loss import LossBursts, Transport
from fabric_kernels.loss import Loss
from fabric_kernels.loss.answer import Uniforms, stalled
from fabric_kernels.loss.laws.exchange import Drawn, Scheme, exchange_stall
from fabric_kernels.loss.laws.flow import Flow
from fabric_kernels.path import Path
from fabric_kernels.pattern import Traffic
from fabric_kernels.pipeline import Pipeline
from fabric_kernels.uniform import Uniform


class Exchanges(NamedTuple):
    """What a step exchanges, and the uniforms of losses and timers of each exchange."""

    collective: Collective
    expert: Expert
    pipeline: Pipeline
    uniforms: tuple[Uniforms, Uniforms, Uniforms]
    chain: Uniform  # how stalls lie to each other, one for all exchanges


def flow_over(path: Path, scale_out: ScaleOut, transport: Transport, timeout: Array) -> Flow:
    """The flow between two neighbours across the fabric, its queues empty."""
    packet = scale_out.packet_payload
    return Flow(
        round_trip=2 * path.hop_latency,
        packet_time=packet / path.gpu_rate,
        packet_payload=packet,
        timeout=timeout,
        window=transport.send_window / packet,
    )


def recovered(
    scheme: Scheme,
    flow: Flow,
    errors: Errors,
    bursts: LossBursts,
    transport: Transport,
    exchanges: Exchanges,
) -> Loss:
    """The stalls of all exchanges under one way of recovery (`laws.exchange`)."""

    def law(traffic: Traffic, drawn: Uniforms) -> Array:
        lost, timed_out = drawn
        luck = Drawn(lost, timed_out, exchanges.chain)
        return exchange_stall((traffic,), scheme, flow, errors, bursts, transport.channels, luck)

    return stalled(
        law, exchanges.collective, exchanges.expert, exchanges.pipeline, exchanges.uniforms
    )


def timer_refusal(retransmission: Retransmission, scale_out: ScaleOut) -> str | None:
    """Why a timer cannot be waited for, for records of plain numbers; None where it can.

    A timer below the shortest round trip, over one switch with empty queues, would send every
    packet again.
    """
    timeout = float(retransmission.retransmission_timeout)
    link = float(scale_out.error_correction_latency) + 4.9e-9 * float(scale_out.cable_length)
    trip = 2 * (float(scale_out.adapter_latency) + 2 * link + float(scale_out.switch_latency))
    if timeout >= trip:
        return None
    return (
        f"retransmission_timeout is {timeout:.4g} s, below the shortest round trip of "
        f"{trip:.4g} s: every packet would be sent again; at least that is allowed, 4 round trips "
        "or more are usual."
    )


def no_timer(like: Array) -> Array:
    """The timer of a scheme that has none: its class never strikes."""
    return jnp.zeros_like(like)
