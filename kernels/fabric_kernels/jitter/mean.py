"""Nobody waits for the slowest: a lower bound."""

from typing import Annotated

from fabric_kernels.collective import Collective
from fabric_kernels.expert import Expert
from fabric_kernels.jitter import Jitter
from fabric_kernels.jitter.answer import stalled
from fabric_kernels.jitter.laws.stalls import mean_stall
from fabric_kernels.noise import HopNoise
from fabric_kernels.pipeline import Pipeline
from fabric_kernels.uniform import Uniform


def mean(
    collective: Collective,
    expert: Expert,
    pipeline: Pipeline,
    noise: HopNoise,
    data: Annotated[Uniform, "data.slowest"],
    experts: Annotated[Uniform, "expert.slowest"],
    stages: Annotated[Uniform, "pipeline.slowest"],
) -> Jitter:
    """The hops of one path times the mean of their noise: what an exchange pays at the very least.

    A lower bound of the mean stall, without any spread, to see what waiting for others costs.
    """
    return stalled(mean_stall, collective, expert, pipeline, noise, (data, experts, stages))
