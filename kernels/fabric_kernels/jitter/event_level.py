"""Every hop simulated: the truth, for small groups."""

from typing import Annotated

import jax.numpy as jnp

from fabric_kernels.collective import Collective
from fabric_kernels.expert import Expert
from fabric_kernels.inputs import Job
from fabric_kernels.jitter import Jitter
from fabric_kernels.jitter.laws.events import RANKS, event_stall
from fabric_kernels.noise import HopNoise
from fabric_kernels.pipeline import Pipeline
from fabric_kernels.uniform import WideUniform


def event_level(
    collective: Collective,
    expert: Expert,
    pipeline: Pipeline,
    noise: HopNoise,
    data: Annotated[WideUniform, "data.hops"],
    experts: Annotated[WideUniform, "expert.hops"],
    stages: Annotated[WideUniform, "pipeline.hops"],
) -> Jitter:
    """The max-plus recursion of every rank and step, each hop with a draw of its own.

    What the other answers are measured against. For groups of up to 256 ranks and some 10^5 hops a
    sample; NaN where a pattern is larger (`laws.events.event_stall`).
    """
    nothing = jnp.zeros_like(collective.exchange_latency)
    stalls = []
    for record, wide in ((collective, data), (expert, experts), (pipeline, stages)):
        total = nothing
        for traffic in record.traffic:
            total = total + jnp.maximum(event_stall(traffic, noise, wide), 0.0)
        stalls.append(total)
    return Jitter(
        jitter_stall=stalls[0] + stalls[1] + stalls[2],
        data_jitter_stall=stalls[0],
        expert_jitter_stall=stalls[1],
        pipeline_jitter_stall=stalls[2],
    )


def event_level_refusal(job: Job) -> str | None:
    """Why single hops cannot be simulated; None where they may be few enough."""
    ranks = float(job.gpus) / (float(job.tensor_parallel) * float(job.pipeline_parallel))
    shards = float(job.tensor_parallel) * float(job.pipeline_parallel)
    if ranks <= RANKS * 72:
        return None
    return (
        f"jitter event_level with {ranks:.0f} data-parallel ranks: at most {RANKS} NVLink domains "
        f"are simulated hop by hop; set gpus to {RANKS * shards:.0f} or less, or jitter to "
        "surrogate."
    )
