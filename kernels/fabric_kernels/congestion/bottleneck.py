"""The fullest link on the way of a message, which every answer looks at."""

import dataclasses
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from fabric_kernels.congestion import REGIMES, Congestion
from fabric_kernels.incast import Incast
from fabric_kernels.inputs import Contention, Flows, ScaleOut
from fabric_kernels.path import Path
from fabric_kernels.quantity import quantities


class Bottleneck(NamedTuple):
    """The fullest link: bytes and seconds."""

    rate: Array
    flows: Array
    ports: Array  # that send them
    contended: Array  # bool: more flows than one port sends, so that there is a queue at all
    round_trip: Array  # of one packet, with empty queues
    packet: Array
    buffer: Array
    victims: Array  # share of the traffic on a held link that is bound for elsewhere


def bottleneck(
    path: Path, incast: Incast, flows: Flows, scale_out: ScaleOut, contention: Contention
) -> Bottleneck:
    """The fullest link of the way, at line rate.

    Its N flows decide how long the queue is. That each gets 1 / N of the link is in the rate of
    the path or in the collective's own bytes, never here. Flows of one port come at no more than
    line rate: no queue.
    """
    number = incast.flows_per_bottleneck
    found = Bottleneck(
        rate=scale_out.link_rate,
        flows=number,
        ports=jnp.maximum(number / flows.flows_per_port, 1.0),
        contended=number > flows.flows_per_port,
        round_trip=2.0 * path.hop_latency + scale_out.packet_payload / scale_out.link_rate,
        packet=scale_out.packet_payload,
        buffer=contention.port_buffer,
        victims=contention.victim_share,
    )
    return Bottleneck(*jnp.broadcast_arrays(*found))


def regime(name: str) -> float:
    """The code of a regime."""
    return float(REGIMES.index(name))


def quiet(one: Array) -> Congestion:
    """No queue and nothing lost, in the shape of an array of ones: what an answer starts from."""
    nothing = Congestion(**dict.fromkeys(quantities(Congestion), jnp.zeros_like(one)))
    return dataclasses.replace(
        nothing, congestion_efficiency=jnp.ones_like(one), phase_margin=jnp.full_like(one, jnp.pi)
    )


def queued(link: Bottleneck, busy: Congestion, response: Array) -> Congestion:
    """`busy` where several ports meet, with its queue taken to the buffer; else `quiet`.

    A buffer that is full for a share of the time holds the links into the switch for that share
    (`pause_fraction` of `busy`, when the full queue is above it). The held links lose
    victims x pause_fraction of what is bound for elsewhere, which is what this exchange loses
    as a victim of its own kind; the fullest link itself stays busy. `response` is the headroom.
    """
    held = busy.pause_fraction > 0
    lost = link.victims * busy.pause_fraction
    full = dataclasses.replace(
        busy,
        congestion_efficiency=jnp.maximum(busy.congestion_efficiency * (1.0 - lost), 1e-3),
        queueing_delay=jnp.minimum(busy.standing_queue, link.buffer) / link.rate,
        standing_queue=jnp.minimum(busy.standing_queue, link.buffer),
        congestion_regime=jnp.where(held, regime("pause_limited"), busy.congestion_regime),
        needed_buffer=busy.needed_buffer + response,
        victim_loss=lost,
    )
    calm = quiet(jnp.ones_like(link.rate))
    return Congestion(
        **{
            n: jnp.where(link.contended, getattr(full, n), getattr(calm, n))
            for n in quantities(Congestion)
        }
    )
