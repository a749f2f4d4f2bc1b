"""Energy: what does a step cost in joules, and how does its power swing?"""

from jax import Array

from fabric_kernels.quantity import quantity, record


@record
class Energy:
    """What does a step cost in joules, and how does its power swing?"""

    energy_per_step: Array = quantity(
        "J", "energy of one step, building included", bounds=(0, 1e18)
    )
    tokens_per_joule: Array = quantity("J-1", "tokens trained per joule", bounds=(0, 1e9))
    mean_facility_power: Array = quantity(
        "W", "energy of a step over its time, building included", bounds=(0, 1e12)
    )
    energy_without_fans: Array = quantity(
        "J", "energy of one step if fans inside the servers counted as cooling", bounds=(0, 1e18)
    )
    power_swing: Array = quantity(
        "W", "power of all GPUs in compute less that in exchange", bounds=(-1e10, 1e10)
    )
