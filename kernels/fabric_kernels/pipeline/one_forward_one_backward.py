"""Stages that alternate one forward and one backward pass."""

import jax.numpy as jnp
from jax import Array

from fabric_kernels.inputs import Job, Overlap, ScaleUp, Transformer
from fabric_kernels.inputs.activations import activations
from fabric_kernels.path import Path
from fabric_kernels.pattern import Line, Traffic
from fabric_kernels.pipeline import Pipeline


def one_forward_one_backward(
    job: Job, transformer: Transformer, overlap: Overlap, path: Path, scale_up: ScaleUp
) -> Pipeline:
    """Messages between stages that the step waits for, under the 1F1B schedule.

        hops = 2 (m - ceil(m / pp) + pp - 2 + [m mod pp = 1])      plain, m microbatches
        hops = 2 (pp v - 1)                                        v = interleave > 1
        message = microbatch_size sequence_length width activation_element_size
        time = hops (message / rate + latency)

    Narayanan et al., SC'21, section 2.2, for the schedules. The counts are those of an event
    simulation with messages that are sent while the next pass computes: the other hops hide.
    (m (pp - 1) / pp + pp - 2, often quoted, is the first where pp divides m.) Sequence parallelism
    sends a tensor_parallel-th of a message (Korthikanti et al., arXiv:2205.05198). Neighbours
    stand in different NVLink domains unless the whole job fits one.
    """
    hops = critical_hops(job)
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
        traffic=(Traffic((line,), job.gpus / job.pipeline_parallel),),
    )


def critical_hops(job: Job) -> Array:
    """Messages between stages that a step waits for one after another."""
    stages, passes = job.pipeline_parallel, job.microbatches
    # half a microbatch keeps whole quotients whole where a division is not exact
    rounds = jnp.floor((passes + stages - 0.5) / stages)
    alone = jnp.where(jnp.abs(passes - 1 - stages * (rounds - 1)) < 0.5, 1.0, 0.0)
    plain = 2 * (passes - rounds + stages - 2 + alone)
    interleaved = 2 * (stages * job.interleave - 1)
    hops = jnp.where(job.interleave > 1.5, interleaved, plain)
    return jnp.where(stages > 1, jnp.maximum(hops, 0.0), 0.0)
