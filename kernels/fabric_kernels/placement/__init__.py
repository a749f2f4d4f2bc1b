"""Placement: where do the NVLink domains stand that send to each other?"""

from jax import Array

from fabric_kernels.quantity import quantity, record


@record
class JobPlacement:
    """Where do the NVLink domains stand that send to each other?

    Shares of a job's hops. Given both, a hop is packed with probability `packed_share`, else
    scattered with `scattered_share`, else it takes the longest way.
    """

    packed_share: Array = quantity(
        "1", "share of hops to the next NVLink domain in the order of the racks", bounds=(0, 1)
    )
    scattered_share: Array = quantity(
        "1",
        "share of the other hops to a domain anywhere in the job, the rest over the top tier",
        bounds=(0, 1),
    )
