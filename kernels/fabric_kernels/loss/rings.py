"""What lost packets cost a ring, whatever repairs them."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from fabric_kernels.inputs import LossProcess, ScaleOut
from fabric_kernels.maths.chain import chain_length
from fabric_kernels.maths.poisson import largest_of, poisson_quantile
from fabric_kernels.pattern import Barrier, Doubling, Line, Pattern, Ring, Traffic, Tree
from fabric_kernels.uniform import Uniform


class Rings(NamedTuple):
    """The rings of one step that run side by side, alike and independent."""

    number: Array
    ranks: Array  # senders into the fabric on one ring
    messages: Array  # messages of one ring across the fabric, all steps
    packets: Array  # packets of one message


def rings_of(traffic: Traffic, scale_out: ScaleOut) -> list[Rings]:
    """The rings of all concurrent groups; other patterns as if each stall held up all the next."""
    return [_rings(pattern, traffic.groups, scale_out) for pattern in traffic.patterns]


def _rings(pattern: Pattern, groups: Array, scale_out: ScaleOut) -> Rings:
    one = jnp.ones_like(groups)
    match pattern:
        case Ring():
            number, ranks = groups * pattern.parallel, pattern.ranks
            messages = pattern.steps * pattern.ranks * pattern.repeats
        case Tree():
            number, ranks = groups * pattern.parallel * pattern.trees, one
            messages = pattern.legs * pattern.chunks * pattern.ranks * pattern.repeats
        case Doubling():
            number, ranks = groups * pattern.parallel, one
            messages = pattern.levels * pattern.ranks * pattern.repeats
        case Barrier():
            number, ranks = groups, one
            messages = pattern.messages * pattern.rounds * pattern.repeats
        case Line():
            number, ranks, messages = groups, one, pattern.hops * pattern.repeats
    packets = jnp.maximum(pattern.payload / scale_out.packet_payload, 1.0)
    return Rings(number, ranks, messages, packets)


def losses(packets: Array, loss_process: LossProcess) -> Array:
    """Poisson rate of the losses among packets: P(none) = exp(-rate) = (1 - p)^packets exactly."""
    return -packets * jnp.log1p(-loss_process.packet_loss_rate)


def stall(cost: Array, rate: Array, rings: Rings, u: Uniform) -> Array:
    """Time that events of one cost, Poisson with `rate` on each ring, add to the slowest ring.

        cost x C(n),  n the largest of `rings.number` Poisson counts

    C is the mean length of the chain of n stalls (`chain_length`). Where events are rare this is
    cost with probability -expm1(-rings.number x rate).
    """
    counted = poisson_quantile(rate, largest_of(rings.number, u))
    return cost * chain_length(counted, rings.ranks)
