"""Pipeline: what do the stages of a pipeline send each other?"""

from jax import Array

from fabric_kernels.pattern import Traffic
from fabric_kernels.quantity import quantity, record, structure


@record
class Pipeline:
    """What do the stages of a pipeline send each other, when nothing goes wrong?"""

    pipeline_nvlink_transfer_time: Array = quantity(
        "s", "transfer between pipeline stages inside the NVLink domain", bounds=(0, 1e6)
    )
    pipeline_fabric_transfer_time: Array = quantity(
        "s", "transfer between pipeline stages across the fabric", bounds=(0, 1e6)
    )
    pipeline_latency: Array = quantity(
        "s", "hop floors between pipeline stages on the critical path", bounds=(0, 1e4)
    )
    pipeline_hops: Array = quantity(
        "1", "messages between pipeline stages on the critical path of a step", bounds=(0, 1e8)
    )
    traffic: tuple[Traffic, ...] = structure()
