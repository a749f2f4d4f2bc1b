"""Routing: which way do packets take?"""

from jax import Array

from fabric_kernels.quantity import quantity, record


@record
class Routing:
    """Which way do packets take, and what do those that meet lose?"""

    collision_efficiency: Array = quantity(
        "1", "share of the uplinks' capacity left where flows take the same way", bounds=(1e-4, 1)
    )
    flows_per_link: Array = quantity(
        "1", "flows on the fullest uplink of a leaf switch", bounds=(1, 1e6)
    )
