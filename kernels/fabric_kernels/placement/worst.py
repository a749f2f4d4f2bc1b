"""Neighbours as far apart as they can be."""

import jax.numpy as jnp

from fabric_kernels.inputs import Job
from fabric_kernels.placement import JobPlacement


def worst(job: Job) -> JobPlacement:
    """Every hop goes over the top tier: a bound for any placement.

    The default, because nothing is known of a job's placement unless it is said. The job gives
    only the shape.
    """
    nothing = jnp.zeros_like(job.gpus)
    return JobPlacement(packed_share=nothing, scattered_share=nothing)
