"""A dense transformer, split by data, tensor and pipeline parallelism."""

import math

import jax
import jax.numpy as jnp

from fabric_kernels.inputs import Gpu, Job, ScaleUp
from fabric_kernels.workload import Workload


def dense(job: Job, gpu: Gpu) -> Workload:
    """A dense model whose gradients are replicated over the data-parallel ranks.

        data_parallel = gpus / (tensor_parallel pipeline_parallel)
        payload = parameters / (tensor_parallel pipeline_parallel) x gradient_element_size
        tokens = data_parallel microbatches microbatch_size sequence_length
        t0 = 6 parameters tokens / (gpus peak_flops compute_efficiency)
        bubble_share = (pipeline_parallel - 1) / (microbatches interleave)

    Six floating point operations per parameter and token: Kaplan et al., arXiv:2001.08361,
    section 2.1; attention itself is left out, which is right while the sequence is short against
    12 x width. Bubble: Narayanan et al., SC'21, section 2.2. Parameters are taken to spread evenly
    over the pipeline. GPUs that the split does not divide have no data-parallel group: NaN there.
    """
    shards = job.tensor_parallel * job.pipeline_parallel
    quotient = job.gpus / shards
    # division is not exact on every device, a whole quotient must be
    ranks = quotient + jax.lax.stop_gradient(jnp.round(quotient) - quotient)
    fits = (ranks * shards == job.gpus) & (ranks >= 1)
    data_parallel = jnp.where(fits, ranks, jnp.nan)
    tokens = data_parallel * (job.microbatches * job.microbatch_size * job.sequence_length)
    per_token = 6 * job.parameters / (job.gpus * gpu.peak_flops * job.compute_efficiency)
    return Workload(
        data_parallel=data_parallel,
        concurrent_groups=shards,
        payload=job.parameters / shards * job.gradient_element_size,
        tokens_per_step=tokens,
        full_clock_compute_time=per_token * tokens,
        bubble_share=(job.pipeline_parallel - 1) / (job.microbatches * job.interleave),
    )


def dense_refusal(job: Job, scale_up: ScaleUp) -> str | None:
    """Why `dense` cannot be split like this, for records of plain numbers; None where it can."""
    gpus, tensor, pipeline = (
        float(value) for value in (job.gpus, job.tensor_parallel, job.pipeline_parallel)
    )
    domain = float(scale_up.nvlink_domain)
    if tensor > domain:
        return (
            f"tensor_parallel is {tensor:.0f} in an NVLink domain of {domain:.0f} GPUs: at most "
            f"nvlink_domain is allowed; set tensor_parallel to {domain:.0f} or less."
        )
    shards = tensor * pipeline
    if gpus >= shards and gpus % shards == 0:
        return None
    below, above = math.floor(gpus / shards) * shards, math.ceil(gpus / shards) * shards
    fitting = " or ".join(f"{value:.0f}" for value in (below, above) if value >= shards)
    return (
        f"gpus is {gpus:.0f}: a whole multiple of tensor_parallel x pipeline_parallel = "
        f"{tensor:.0f} x {pipeline:.0f} = {shards:.0f} is needed; set gpus to {fitting}."
    )
