"""Optics: what does the network draw, and what would the saving feed?"""

from jax import Array

from fabric_kernels.quantity import quantity, record


@record
class Optics:
    """What does the scale-out network draw, and what would the saving feed?"""

    network_power: Array = quantity(
        "W", "switches, their optics and the optics of the GPUs' ports", bounds=(0, 1e10)
    )
    network_power_share: Array = quantity(
        "1", "power of the network over that of all IT", bounds=(0, 1)
    )
    network_power_saving: Array = quantity(
        "W", "power of the compared network less that of this one", bounds=(-1e10, 1e10)
    )
    gpus_at_same_power: Array = quantity(
        "1", "GPUs that this network leaves power for, where the compared one feeds the job's"
    )
    network_rack_units: Array = quantity(
        "1", "rack units that the network's switches fill", bounds=(0, 1e9)
    )
