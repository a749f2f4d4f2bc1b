"""Expert: what do tokens cost on their way to the experts and back?"""

from jax import Array

from fabric_kernels.pattern import Traffic
from fabric_kernels.quantity import quantity, record, structure


@record
class Expert:
    """What do tokens cost on their way to the experts and back, when nothing goes wrong?"""

    expert_nvlink_transfer_time: Array = quantity(
        "s", "transfer of a step's tokens to experts inside the NVLink domain", bounds=(0, 1e6)
    )
    expert_fabric_transfer_time: Array = quantity(
        "s", "transfer of a step's tokens to experts across the fabric", bounds=(0, 1e6)
    )
    expert_latency: Array = quantity(
        "s", "hop floors of a step's exchanges with experts", bounds=(0, 1e4)
    )
    expert_fabric_hops: Array = quantity(
        "1", "hops across the fabric of a step's exchanges with experts", bounds=(0, 1e9)
    )
    traffic: tuple[Traffic, ...] = structure()
