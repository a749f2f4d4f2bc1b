"""Congestion: what do queues add?"""

from jax import Array

from fabric_kernels.quantity import quantity, record


@record
class Congestion:
    """What do queues add?"""

    congestion_efficiency: Array = quantity(
        "1", "share of the rate left by congestion control", bounds=(1e-3, 1)
    )
    queueing_delay: Array = quantity(
        "s", "standing queue met by one hop across the fabric", bounds=(0, 1)
    )
