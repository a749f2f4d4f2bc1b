"""Incast: who meets at the fullest link?"""

from jax import Array

from fabric_kernels.quantity import quantity, record


@record
class Incast:
    """Who meets at the fullest link on the way of a message?"""

    senders_per_receiver: Array = quantity(
        "1", "ranks that send to one rank across the fabric at once", bounds=(1, 1e5)
    )
    flows_per_bottleneck: Array = quantity(
        "1", "flows (queue pairs) that share the fullest link of the way", bounds=(1, 1e6)
    )
