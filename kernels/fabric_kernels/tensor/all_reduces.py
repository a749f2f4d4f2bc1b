"""Four all-reduces a layer and microbatch between the GPUs that share it."""

import jax.numpy as jnp

from fabric_kernels.calls import Call, Network, PartOf
from fabric_kernels.calls.inside import nvls_inside, ring_inside
from fabric_kernels.inputs import Job, Reduction, ScaleUp, Transformer
from fabric_kernels.inputs.activations import activations, microbatches_passed
from fabric_kernels.operation import ALL_REDUCE
from fabric_kernels.path import Path
from fabric_kernels.tensor import Tensor


def ring_reduced(
    job: Job, transformer: Transformer, path: Path, scale_up: ScaleUp, reduction: Reduction
) -> Tensor:
    """All-reduces of the activations by a ring (`all_reduces`, `ring_inside`)."""
    return all_reduces(job, transformer, Network(path, scale_up, reduction), ring_inside)


def switch_reduced(
    job: Job, transformer: Transformer, path: Path, scale_up: ScaleUp, reduction: Reduction
) -> Tensor:
    """All-reduces of the activations by NVLink switches that add (`all_reduces`, `nvls_inside`)."""
    return all_reduces(job, transformer, Network(path, scale_up, reduction), nvls_inside)


def all_reduces(job: Job, transformer: Transformer, network: Network, part_of: PartOf) -> Tensor:
    """What tensor parallelism exchanges in a step.

        calls = 4 layers / pipeline_parallel x (microbatches + (pipeline_parallel - 1) / interleave)
        message = microbatch_size sequence_length width activation_element_size

    Two all-reduces forward and two backward in every layer (Shoeybi et al., Megatron-LM,
    arXiv:1909.08053, section 3); sequence parallelism replaces each by a reduce-scatter and an
    all-gather of the same bytes. The calls of the pipeline's filling count too: every stage waits
    for them. Nothing hides it. 0 where a layer is not shared.
    """
    calls = 4 * (transformer.layers / job.pipeline_parallel) * microbatches_passed(job)
    one = jnp.ones_like(job.tensor_parallel)
    call = Call(
        "tensor",
        ALL_REDUCE,
        activations(job, transformer),
        job.tensor_parallel,
        one,
        job.tensor_parallel,
    )
    part = part_of(call, network)
    return Tensor(
        tensor_transfer_time=calls * part.nvlink_transfer, tensor_latency=calls * part.latency
    )
