"""Slow ranks, late starts, full receivers and common pauses beside the noise of hops."""

import dataclasses
from typing import Annotated

from jax import Array

from fabric_kernels.collective import Collective
from fabric_kernels.expert import Expert
from fabric_kernels.inputs import HopConditions
from fabric_kernels.jitter import Jitter
from fabric_kernels.jitter.answer import stalled
from fabric_kernels.jitter.laws.conditions import common_pause
from fabric_kernels.jitter.laws.stalls import surrogate_stall
from fabric_kernels.maths.order_statistics import exponential_variate
from fabric_kernels.noise import HopNoise
from fabric_kernels.pattern import Traffic
from fabric_kernels.pipeline import Pipeline
from fabric_kernels.uniform import Uniform


def conditioned(
    collective: Collective,
    expert: Expert,
    pipeline: Pipeline,
    noise: HopNoise,
    conditions: HopConditions,
    data: Annotated[Uniform, "data.slowest"],
    experts: Annotated[Uniform, "expert.slowest"],
    stages: Annotated[Uniform, "pipeline.slowest"],
    slow: Annotated[Uniform, "slow_rank"],
    pause: Annotated[Uniform, "common_pause"],
) -> Jitter:
    """The stalls of `surrogate` with what is not redrawn at every hop.

    A persistently slow rank costs a ring max(c sigma, delay) at each hop and others their delay at
    each; the last rank to arrive and a pause of all are added whole, an upper bound; receivers of
    few slots hold senders back. All zero and eight slots is `surrogate` itself.
    """
    persistent = exponential_variate(slow)

    def law(traffic: Traffic, noise: HopNoise, exponential: Array) -> Array:
        return surrogate_stall(traffic, noise, exponential, conditions, persistent)

    found = stalled(law, collective, expert, pipeline, noise, (data, experts, stages))
    paused = common_pause(conditions, pause)
    return dataclasses.replace(
        found,
        jitter_stall=found.jitter_stall + paused,
        data_jitter_stall=found.data_jitter_stall + paused,
    )
