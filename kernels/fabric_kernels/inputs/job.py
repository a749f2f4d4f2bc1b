"""The training job."""

from jax import Array

from fabric_kernels.quantity import quantity, record


@record
class Job:
    """The training job: what is trained, and how it is split over the GPUs."""

    gpus: Array = quantity("1", "GPUs in the job", bounds=(1, 2**20), integer=True)
    parameters: Array = quantity("1", "parameters of the dense model", bounds=(1, 1e15))
    gradient_element_size: Array = quantity(
        "B", "bytes of one gradient element", bounds=(0.5, 8), default=2, source="BF16 [A]"
    )
    sequence_length: Array = quantity(
        "1", "tokens in one sequence", bounds=(1, 1e7), default=8192, source="Llama 3 405B [S]"
    )
    microbatch_size: Array = quantity(
        "1", "sequences in one microbatch", bounds=(1, 1e5), default=1, source="[A]"
    )
    microbatches: Array = quantity(
        "1",
        "microbatches of one step and data-parallel rank",
        bounds=(1, 1e6),
        default=16,
        source="[A]",
    )
    tensor_parallel: Array = quantity(
        "1", "GPUs that share each layer", bounds=(1, 4096), default=8, source="[A]", integer=True
    )
    pipeline_parallel: Array = quantity(
        "1", "pipeline stages", bounds=(1, 4096), default=8, source="[A]", integer=True
    )
    interleave: Array = quantity(
        "1",
        "model chunks per pipeline stage (1 = plain 1F1B)",
        bounds=(1, 128),
        default=1,
        source="[A]",
    )
    compute_efficiency: Array = quantity(
        "1",
        "share of the peak rate reached in compute",
        bounds=(1e-3, 1),
        default=0.5,
        source="[A]",
    )
    compute_bound_share: Array = quantity(
        "1",
        "share of compute time that scales with the inverse of the clock",
        bounds=(0, 1),
        default=0.85,
        source="[A]",
    )
