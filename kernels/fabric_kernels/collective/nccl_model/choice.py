"""One call's cost by a named algorithm, and the faster of two."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from fabric_kernels.collective import ALGORITHMS, PROTOCOLS


class Cost(NamedTuple):
    """What one collective call takes, and by what."""

    time: Array  # s: transfer + latency
    transfer: Array  # s
    latency: Array  # s
    algorithm: Array  # code: place in `collective.ALGORITHMS`
    protocol: Array  # code: place in `collective.PROTOCOLS`


def named(algorithm: str, protocol: str, latency: Array, transfer: Array) -> Cost:
    """The cost of an algorithm with a protocol."""
    time = latency + transfer
    return Cost(
        time,
        jnp.broadcast_to(transfer, time.shape),
        jnp.broadcast_to(latency, time.shape),
        jnp.full_like(time, ALGORITHMS.index(algorithm)),
        jnp.full_like(time, PROTOCOLS.index(protocol)),
    )


def faster(one: Cost, other: Cost) -> Cost:
    """The faster of two, the first where they are equal."""
    better = other.time < one.time
    return Cost(
        jnp.where(better, other.time, one.time),
        jnp.where(better, other.transfer, one.transfer),
        jnp.where(better, other.latency, one.latency),
        jnp.where(better, other.algorithm, one.algorithm),
        jnp.where(better, other.protocol, one.protocol),
    )


def unless_alone(cost: Cost, ranks: Array) -> Cost:
    """No time where one rank is alone."""
    alone = ranks < 1.5
    return cost._replace(
        time=jnp.where(alone, 0.0, cost.time),
        transfer=jnp.where(alone, 0.0, cost.transfer),
        latency=jnp.where(alone, 0.0, cost.latency),
    )
