"""What lost packets cost a ring, whatever repairs them."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from fabric_kernels.collective import Collective
from fabric_kernels.inputs import LossProcess, ScaleOut
from fabric_kernels.maths.chain import chain_length
from fabric_kernels.maths.poisson import largest_of, poisson_quantile
from fabric_kernels.uniform import Uniform
from fabric_kernels.workload import Workload


class Rings(NamedTuple):
    """The rings of one step that run side by side, alike and independent."""

    number: Array
    ranks: Array  # senders into the fabric on one ring
    messages: Array  # messages of one ring across the fabric, all steps
    packets: Array  # packets of one message


def rings_of(workload: Workload, collective: Collective, scale_out: ScaleOut) -> Rings:
    """The rings of all concurrent groups.

    A ring of N senders takes 2 (N - 1) steps; where a step has more messages than that, as many
    rings run in parallel (the rails of a hierarchical exchange).
    """
    senders = collective.fabric_steps / 2 + 1
    parallel = jnp.maximum(collective.fabric_messages / senders, 1.0)
    ranks = jnp.maximum(collective.fabric_messages / parallel, 1.0)
    return Rings(
        number=workload.concurrent_groups * parallel,
        ranks=ranks,
        messages=collective.fabric_steps * (collective.fabric_messages / parallel),
        packets=jnp.maximum(collective.message_payload / scale_out.packet_payload, 1.0),
    )


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
