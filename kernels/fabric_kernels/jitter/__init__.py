"""Jitter: what does the slowest of 100,000 do to everyone?"""

from jax import Array

from fabric_kernels.quantity import quantity, record


@record
class Jitter:
    """What does the slowest of 100,000 do to everyone?"""

    jitter_stall: Array = quantity(
        "s", "time that hop noise adds to all exchanges", bounds=(0, 1e6)
    )
    data_jitter_stall: Array = quantity(
        "s", "time that hop noise adds to the data exchange", bounds=(0, 1e6)
    )
    expert_jitter_stall: Array = quantity(
        "s", "time that hop noise adds to the expert exchange", bounds=(0, 1e6)
    )
    pipeline_jitter_stall: Array = quantity(
        "s", "time that hop noise adds to the pipeline exchange", bounds=(0, 1e6)
    )
