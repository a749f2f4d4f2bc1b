"""From the law of one exchange to the stalls of all of a step."""

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

from fabric_kernels.collective import Collective
from fabric_kernels.expert import Expert
from fabric_kernels.jitter import Jitter
from fabric_kernels.maths.order_statistics import exponential_variate
from fabric_kernels.noise import HopNoise
from fabric_kernels.pattern import Traffic
from fabric_kernels.pipeline import Pipeline
from fabric_kernels.uniform import Uniform

Law = Callable[[Traffic, HopNoise, Array], Array]
"""Stall of one exchange (s) from its traffic, the noise of a hop and E = -log u."""


def stalled(
    law: Law,
    collective: Collective,
    expert: Expert,
    pipeline: Pipeline,
    noise: HopNoise,
    uniforms: tuple[Uniform, Uniform, Uniform],
) -> Jitter:
    """The stalls of the data, expert and pipeline exchange, each from a uniform of its own.

    Parts of one exchange are taken at the same level: an upper bound where they differ. The
    uniform of an exchange that sends nothing is not read.
    """
    nothing = jnp.zeros_like(collective.exchange_latency)
    stalls = []
    for record, u in zip((collective, expert, pipeline), uniforms, strict=True):
        total = nothing
        for traffic in record.traffic:
            total = total + jnp.maximum(law(traffic, noise, exponential_variate(u)), 0.0)
        stalls.append(total)
    return Jitter(
        jitter_stall=stalls[0] + stalls[1] + stalls[2],
        data_jitter_stall=stalls[0],
        expert_jitter_stall=stalls[1],
        pipeline_jitter_stall=stalls[2],
    )
