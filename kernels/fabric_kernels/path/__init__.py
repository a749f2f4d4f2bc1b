"""Path: what does one hop cost, and what rate does a GPU get?"""

from jax import Array

from fabric_kernels.quantity import quantity, record

SECONDS_PER_METRE = 4.9e-9
"""Delay of one metre of fibre: group index 1.468 over the speed of light."""


@record
class Path:
    """What does one hop cost, and what rate does a GPU get?

    Where messages follow each other, as around a ring, the mean of their floors counts; where the
    slowest of many is waited for, as in a tree or at a barrier, the longest.
    """

    fabric_tiers: Array = quantity("1", "tiers of switches", bounds=(1, 4))
    hop_latency: Array = quantity(
        "s", "mean floor of one message between two NVLink domains", bounds=(0, 1)
    )
    longest_hop_latency: Array = quantity(
        "s", "floor of one message over the longest way of the job", bounds=(0, 1)
    )
    gpu_rate: Array = quantity(
        "B s-1", "rate of one GPU across the fabric without congestion", bounds=(1e3, 1e13)
    )
    switch_hops: Array = quantity(
        "1", "mean number of switches that a message passes", bounds=(1, 7)
    )
    path_length: Array = quantity(
        "m", "mean length of cable that a message passes", bounds=(0, 1e10)
    )
    network_switches: Array = quantity("1", "switches of the network", bounds=(1, 1e8))
    network_links: Array = quantity(
        "1", "cables of the network, those to the GPUs with them", bounds=(1, 1e9)
    )
    bisection_fraction: Array = quantity(
        "1",
        "rate between the two halves of the job as a share of that of their GPUs' ports",
        bounds=(0, 1),
    )
