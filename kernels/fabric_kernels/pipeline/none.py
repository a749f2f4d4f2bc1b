"""A job without a pipeline, or one whose messages all hide."""

import jax.numpy as jnp

from fabric_kernels.inputs import Job
from fabric_kernels.pipeline import Pipeline


def none(job: Job) -> Pipeline:
    """Nothing is sent between stages: jobs of one stage. The job gives only the shape."""
    nothing = jnp.zeros_like(job.gpus)
    return Pipeline(
        pipeline_nvlink_transfer_time=nothing,
        pipeline_fabric_transfer_time=nothing,
        pipeline_latency=nothing,
        pipeline_hops=nothing,
        traffic=(),
    )


def none_refusal(job: Job) -> str | None:
    """Why there must be messages; None where there is one stage."""
    stages = float(job.pipeline_parallel)
    if stages <= 1:
        return None
    return (
        f"pipeline is none with pipeline_parallel {stages:.0f}: stages send each other "
        "activations; set pipeline to one_forward_one_backward, or pipeline_parallel to 1."
    )
