"""Tensor: what do the GPUs that share a layer send each other?"""

from jax import Array

from fabric_kernels.quantity import quantity, record


@record
class Tensor:
    """What do the GPUs that share a layer send each other? All of it inside the NVLink domain."""

    tensor_transfer_time: Array = quantity(
        "s", "transfer of a step's exchanges between the GPUs of a layer", bounds=(0, 1e6)
    )
    tensor_latency: Array = quantity(
        "s", "hop floors of a step's exchanges between the GPUs of a layer", bounds=(0, 1e4)
    )
