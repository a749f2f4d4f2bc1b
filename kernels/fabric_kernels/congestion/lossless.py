"""Links that never drop: what a loop of credits and a pause need."""

import jax.numpy as jnp
from jax import Array


def credit_loop(cable: Array, turnaround: Array, packet_time: Array) -> Array:
    """Time from a packet to the credit that it gives back, on an empty link.

    2 cable + 2 turnaround + 2 packet, of a cable passed in `cable` seconds, a turnaround at each
    end and a packet that must be whole before it is passed on. InfiniBand Architecture
    Specification 1, flow control; the turnaround is an assumption.
    """
    return 2.0 * cable + 2.0 * turnaround + 2.0 * packet_time


def credit_throughput(buffer: Array, rate: Array, loop: Array) -> Array:
    """Share of the rate that a receive buffer lets through: min(1, buffer / (rate x loop))."""
    return jnp.minimum(1.0, buffer / (rate * loop))


def pause_headroom(packet: Array, rate: Array, cable: Array, response: Array) -> Array:
    """Bytes that still come after a pause: 2 packets + rate x (2 cable + response).

    One packet that has just begun at either end; per port and priority. IEEE 802.1Qbb, annex O,
    with all delays of the ends in one response time.
    """
    return 2.0 * packet + rate * (2.0 * cable + response)
