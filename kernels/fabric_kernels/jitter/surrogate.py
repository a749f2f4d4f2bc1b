"""The law of each pattern, measured on single hops once and for all."""

from typing import Annotated

from fabric_kernels.collective import Collective
from fabric_kernels.expert import Expert
from fabric_kernels.jitter import Jitter
from fabric_kernels.jitter.answer import stalled
from fabric_kernels.jitter.laws.stalls import surrogate_stall
from fabric_kernels.noise import HopNoise
from fabric_kernels.pipeline import Pipeline
from fabric_kernels.uniform import Uniform


def surrogate(
    collective: Collective,
    expert: Expert,
    pipeline: Pipeline,
    noise: HopNoise,
    data: Annotated[Uniform, "data.slowest"],
    experts: Annotated[Uniform, "expert.slowest"],
    stages: Annotated[Uniform, "pipeline.slowest"],
) -> Jitter:
    """Stall of exchanges whose ranks wait for their neighbours only, as they do.

        ring of K hops:  K (m + c_N sigma) and the spread of last-passage percolation
        trees, pairs:    tables of their exact recursions
        rounds, lines:   the sum of largest of `barrier`

    m and sigma are mean and deviation of a hop's noise; c_N and what the tables hold come from
    simulations of single hops (`laws.ring`, `laws.waits`, whose docstrings give their errors). The
    slowest of the concurrent groups is taken by the level, and patterns one after another at the
    same level: an upper bound where there are several.
    """
    return stalled(surrogate_stall, collective, expert, pipeline, noise, (data, experts, stages))
