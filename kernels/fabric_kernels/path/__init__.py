"""Path: what does one hop cost, and what rate does a GPU get?"""

from jax import Array

from fabric_kernels.quantity import quantity, record

SECONDS_PER_METRE = 4.9e-9
"""Delay of one metre of fibre: group index 1.468 over the speed of light."""


@record
class Path:
    """What does one hop cost, and what rate does a GPU get?"""

    fabric_tiers: Array = quantity("1", "tiers of switches", bounds=(1, 4))
    hop_latency: Array = quantity(
        "s", "floor of one message between two NVLink domains", bounds=(0, 1)
    )
    gpu_rate: Array = quantity(
        "B s-1", "rate of one GPU across the fabric without congestion", bounds=(1e3, 1e13)
    )
