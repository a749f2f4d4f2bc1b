"""How a job is split over its GPUs, whatever the model is."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from fabric_kernels.inputs import Gpu, Job, ScaleUp


class Split(NamedTuple):
    """Ranks, tokens and compute of one step."""

    data_parallel: Array  # NaN where the GPUs do not divide
    shards: Array  # GPUs that hold one copy of the model
    tokens: Array
    compute_time: Array  # s at full clock
    bubble_share: Array


def split(job: Job, gpu: Gpu, active_parameters: Array) -> Split:
    """The split of a job by tensor, pipeline and data parallelism.

        data_parallel = gpus / (tensor_parallel pipeline_parallel)
        tokens = data_parallel microbatches microbatch_size sequence_length
        compute_time = 6 active_parameters tokens / (gpus peak_flops compute_efficiency)
        bubble_share = (pipeline_parallel - 1) / (microbatches interleave)

    Six floating point operations per parameter and token: Kaplan et al., arXiv:2001.08361,
    section 2.1; attention itself is left out, which is right while the sequence is short against
    12 x width. Bubble: Narayanan et al., SC'21, section 2.2. Parameters are taken to spread evenly
    over the pipeline. GPUs that the split does not divide have no data-parallel group: NaN there.
    """
    shards = job.tensor_parallel * job.pipeline_parallel
    data_parallel = divided(job.gpus, shards)
    tokens = data_parallel * (job.microbatches * job.microbatch_size * job.sequence_length)
    per_token = 6 * active_parameters / (job.gpus * gpu.peak_flops * job.compute_efficiency)
    bubble_share = (job.pipeline_parallel - 1) / (job.microbatches * job.interleave)
    return Split(data_parallel, shards, tokens, per_token * tokens, bubble_share)


def divided(whole: Array, part: Array) -> Array:
    """whole / part where that is a whole number of at least 1, else NaN."""
    quotient = whole / part
    # division is not exact on every device, a whole quotient must be
    ranks = quotient + jax.lax.stop_gradient(jnp.round(quotient) - quotient)
    return jnp.where((ranks * part == whole) & (ranks >= 1), ranks, jnp.nan)


def split_refusal(job: Job, scale_up: ScaleUp) -> str | None:
    """Why a job cannot be split like this, for records of plain numbers; None where it can."""
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
    return (
        f"gpus is {gpus:.0f}: a whole multiple of tensor_parallel x pipeline_parallel = "
        f"{tensor:.0f} x {pipeline:.0f} = {shards:.0f} is needed; "
        f"set gpus to {nearest_multiples(gpus, shards)}."
    )


def nearest_multiples(value: float, of: float) -> str:
    """The multiples of `of` next to a value, in words."""
    below, above = math.floor(value / of) * of, math.ceil(value / of) * of
    return " or ".join(f"{v:.0f}" for v in dict.fromkeys((below, above)) if v >= of)
