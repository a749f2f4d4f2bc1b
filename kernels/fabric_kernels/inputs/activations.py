"""What a microbatch carries from layer to layer, from the job alone."""

from jax import Array

from fabric_kernels.inputs.job import Job, Transformer


def microbatches_passed(job: Job) -> Array:
    """Microbatches that the slowest way through the pipeline passes: m + (pp - 1) / v."""
    return job.microbatches + (job.pipeline_parallel - 1) / job.interleave


def activations(job: Job, transformer: Transformer) -> Array:
    """Bytes of one microbatch between two layers."""
    tokens = job.microbatch_size * job.sequence_length
    return tokens * transformer.width * transformer.activation_element_size
