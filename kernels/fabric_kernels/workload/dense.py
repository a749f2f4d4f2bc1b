"""A dense transformer, split by data, tensor and pipeline parallelism."""

import jax.numpy as jnp

from fabric_kernels.inputs import Gpu, Job, ScaleUp
from fabric_kernels.workload import Message, Workload
from fabric_kernels.workload.split import split, split_refusal


def dense(job: Job, gpu: Gpu) -> Workload:
    """A dense model: every parameter works on every token.

        payload = parameters / (tensor_parallel pipeline_parallel) x gradient_element_size

    Times and tokens as in `split`, whose sources and limits hold here. Every data-parallel rank
    has the gradients of its whole share of the model to exchange.
    """
    parts = split(job, gpu, job.parameters)
    whole = jnp.ones_like(parts.shards)
    return Workload(
        data_parallel=parts.data_parallel,
        concurrent_groups=parts.shards,
        payload=job.parameters / parts.shards * job.gradient_element_size,
        active_parameters=job.parameters,
        tokens_per_step=parts.tokens,
        full_clock_compute_time=parts.compute_time,
        bubble_share=parts.bubble_share,
        messages=(Message(whole, whole, job.tensor_parallel),),
    )


def dense_refusal(job: Job, scale_up: ScaleUp) -> str | None:
    """Why `dense` cannot be split like this, for records of plain numbers; None where it can."""
    return split_refusal(job, scale_up)
