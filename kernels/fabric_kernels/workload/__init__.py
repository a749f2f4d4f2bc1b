"""Workload: what must be computed and exchanged in one step?"""

from jax import Array

from fabric_kernels.quantity import quantity, record


@record
class Workload:
    """What must be computed and exchanged in one step?"""

    data_parallel: Array = quantity("1", "ranks of one data-parallel group", bounds=(1, 2**20))
    concurrent_groups: Array = quantity(
        "1", "data-parallel groups that exchange at once", bounds=(1, 2**20)
    )
    payload: Array = quantity(
        "B", "gradient bytes of one GPU, the message of the data exchange", bounds=(0, 1e16)
    )
    tokens_per_step: Array = quantity("1", "tokens trained in one step", bounds=(1, 1e15))
    full_clock_compute_time: Array = quantity(
        "s", "compute of one step at full clock", bounds=(0, 1e6)
    )
    bubble_share: Array = quantity("1", "pipeline bubble as a share of compute", bounds=(0, 1e4))
