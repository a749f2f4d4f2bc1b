"""Stages that alternate one forward and one backward pass."""

import jax.numpy as jnp

from fabric_kernels.inputs import Job, Overlap, ScaleUp, Transformer
from fabric_kernels.inputs.activations import activations
from fabric_kernels.path import Path
from fabric_kernels.pattern import Line, Traffic
from fabric_kernels.pipeline import Pipeline


def one_forward_one_backward(
    job: Job, transformer: Transformer, overlap: Overlap, path: Path, scale_up: ScaleUp
) -> Pipeline:
    """Messages between stages that the step waits for, under the 1F1B schedule.

        hops = 2 (microbatches (pp - 1) / pp + pp - 2)             (0 without a pipeline)
        message = microbatch_size sequence_length width activation_element_size
        time = hops (message / rate + latency)

    Narayanan et al., SC'21, section 2.2, for the schedule. The count is within 1 of an event
    simulation for microbatches >= pp, whose other hops hide behind compute. Sequence parallelism
    sends a tensor_parallel-th of a message (Korthikanti et al., arXiv:2205.05198). Neighbours
    stand in different NVLink domains unless the whole job fits one. With interleave the count of
    hops on the critical path is that of the plain schedule: a lower bound.
    """
    stages = job.pipeline_parallel
    hops = 2 * (job.microbatches * (stages - 1) / stages + stages - 2)
    hops = jnp.where(stages > 1, jnp.maximum(hops, 0.0), 0.0)
    split = jnp.where(transformer.sequence_parallel > 0.5, job.tensor_parallel, 1.0)
    message = activations(job, transformer) / split / overlap.buckets_pipeline
    messages = hops * overlap.buckets_pipeline
    crosses = job.gpus > scale_up.nvlink_domain
    across, inside = jnp.where(crosses, messages, 0.0), jnp.where(crosses, 0.0, messages)
    line = Line(across, message, jnp.ones_like(across))
    return Pipeline(
        pipeline_nvlink_transfer_time=inside * message / scale_up.nvlink_rate,
        pipeline_fabric_transfer_time=across * message / path.gpu_rate,
        pipeline_latency=across * path.hop_latency + inside * scale_up.nvlink_latency,
        pipeline_hops=messages,
        traffic=(Traffic((line,), job.gpus / stages),),
    )
