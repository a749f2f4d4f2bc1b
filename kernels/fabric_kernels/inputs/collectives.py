"""What the collectives of a job may use."""

from jax import Array

from fabric_kernels.quantity import quantity, record


@record
class Reduction:
    """Switches that add, and how finely trees are pipelined."""

    nvlink_reduction: Array = quantity(
        "1",
        "whether the switches of an NVLink domain can add (NVLS)",
        bounds=(0, 1),
        default=1,
        source="NVLink switches since Hopper [V]",
        flags=("no", "yes"),
    )
    nvlink_reduction_efficiency: Array = quantity(
        "1",
        "share of the NVLink rate that reduction in the switch reaches",
        bounds=(0.01, 1),
        default=0.69,
        source="H100, 8 GPUs: 274 GB/s x 9/8 of 450 GB/s in a published nccl-tests table [M]",
    )
    fabric_reduction: Array = quantity(
        "1",
        "whether the switches of the fabric can add (SHARP)",
        bounds=(0, 1),
        default=0,
        source="none unless the fabric says so [A]",
        flags=("no", "yes"),
    )
    fabric_reduction_latency: Array = quantity(
        "s",
        "time that one switch of the fabric takes to add, beside its own latency",
        bounds=(0, 1e-3),
        default=0.3e-6,
        source="[A]",
    )
    tree_chunks: Array = quantity(
        "1",
        "pieces in which a tree passes a message on",
        bounds=(1, 1e6),
        default=64,
        source="[A]",
    )
