"""Neighbours anywhere."""

import jax.numpy as jnp

from fabric_kernels.inputs import Job
from fabric_kernels.placement import JobPlacement


def scattered(job: Job) -> JobPlacement:
    """Each NVLink domain sends to one drawn evenly from all others.

    What a scheduler without regard to the network leaves of a ring, and what an all-to-all does in
    any placement. A mixture with packed hops: give `packed_share` a value or a law. The job gives
    only the shape.
    """
    return JobPlacement(
        packed_share=jnp.zeros_like(job.gpus), scattered_share=jnp.ones_like(job.gpus)
    )
