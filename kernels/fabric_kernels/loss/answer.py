"""From the law of one exchange to the stalls of all of a step."""

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

from fabric_kernels.collective import Collective
from fabric_kernels.expert import Expert
from fabric_kernels.loss import Loss
from fabric_kernels.pattern import Traffic
from fabric_kernels.pipeline import Pipeline
from fabric_kernels.uniform import Uniform

Uniforms = tuple[Uniform, ...]
Law = Callable[[Traffic, Uniforms], Array]
"""Stall of one exchange (s) from its traffic and the uniforms of one exchange."""


def stalled(
    law: Law,
    collective: Collective,
    expert: Expert,
    pipeline: Pipeline,
    uniforms: tuple[Uniforms, Uniforms, Uniforms],
) -> Loss:
    """The stalls of the data, expert and pipeline exchange, each from uniforms of its own.

    The uniforms of an exchange that sends nothing are not read.
    """
    nothing = jnp.zeros_like(collective.exchange_latency)
    stalls = []
    for record, drawn in zip((collective, expert, pipeline), uniforms, strict=True):
        total = nothing
        for traffic in record.traffic:
            total = total + law(traffic, drawn)
        stalls.append(total)
    return Loss(
        loss_stall=stalls[0] + stalls[1] + stalls[2],
        data_loss_stall=stalls[0],
        expert_loss_stall=stalls[1],
        pipeline_loss_stall=stalls[2],
    )
