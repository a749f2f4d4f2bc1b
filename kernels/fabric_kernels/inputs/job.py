"""The training job."""

from jax import Array

from fabric_kernels.quantity import quantity, record


@record
class Job:
    """The training job: what is trained, and how it is split over the GPUs."""

    gpus: Array = quantity("1", "GPUs in the job", bounds=(1, 2**20), integer=True)
    parameters: Array = quantity("1", "parameters of the model, experts included", bounds=(1, 1e15))
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


@record
class Transformer:
    """The layers of the model: what they send each other."""

    layers: Array = quantity(
        "1", "layers of the model", bounds=(1, 1e5), default=126, source="Llama 3 405B [S]"
    )
    width: Array = quantity(
        "1",
        "width of the hidden state",
        bounds=(1, 1e6),
        default=16384,
        source="Llama 3 405B [S]",
    )
    activation_element_size: Array = quantity(
        "B", "bytes of one element of an activation", bounds=(0.5, 8), default=2, source="BF16 [A]"
    )
    sequence_parallel: Array = quantity(
        "1",
        "whether the GPUs of one layer share its activations out between pipeline stages",
        bounds=(0, 1),
        default=1,
        source="Korthikanti et al., arXiv:2205.05198 [V]",
        flags=("no", "yes"),
    )


@record
class Experts:
    """The experts of a mixture-of-experts model."""

    expert_parameter_share: Array = quantity(
        "1",
        "share of the model's parameters that is in its experts",
        bounds=(0, 1),
        default=0.97,
        source="DeepSeek-V3, arXiv:2412.19437, 58 layers of 257 experts of 3 x 7168 x 2048 [C]",
    )
    experts: Array = quantity(
        "1",
        "experts of one layer among which a token chooses",
        bounds=(1, 1e5),
        default=256,
        source="DeepSeek-V3, arXiv:2412.19437 [S]",
    )
    active_experts: Array = quantity(
        "1",
        "experts that work on one token of a layer",
        bounds=(1, 1e5),
        default=8,
        source="DeepSeek-V3, arXiv:2412.19437 [S]",
    )
    expert_layers: Array = quantity(
        "1",
        "layers with experts",
        bounds=(1, 1e5),
        default=58,
        source="DeepSeek-V3, arXiv:2412.19437 [S]",
    )
    expert_parallel: Array = quantity(
        "1",
        "GPUs that share the experts of one layer",
        bounds=(1, 2**20),
        default=8,
        source="[A]",
        integer=True,
    )


@record
class Overlap:
    """What part of an exchange compute may hide."""

    overlap_window_data: Array = quantity(
        "1",
        "share of full-clock compute under which the data exchange may hide",
        bounds=(0, 1),
        default=0,
        source="nothing overlaps unless it is said [A]",
    )
    overlap_window_expert: Array = quantity(
        "1",
        "share of full-clock compute under which the expert exchange may hide",
        bounds=(0, 1),
        default=0,
        source="nothing overlaps unless it is said [A]",
    )
    overlap_window_pipeline: Array = quantity(
        "1",
        "share of full-clock compute under which the pipeline exchange may hide",
        bounds=(0, 1),
        default=0,
        source="nothing overlaps unless it is said [A]",
    )
    buckets_data: Array = quantity(
        "1",
        "parts in which the gradients are exchanged, of which the last cannot hide",
        bounds=(1, 1e5),
        default=1,
        source="[A]",
    )
    buckets_expert: Array = quantity(
        "1",
        "parts of each expert exchange, of which the last cannot hide",
        bounds=(1, 1e5),
        default=1,
        source="[A]",
    )
    buckets_pipeline: Array = quantity(
        "1",
        "parts of each message between pipeline stages, of which the last cannot hide",
        bounds=(1, 1e5),
        default=1,
        source="[A]",
    )
