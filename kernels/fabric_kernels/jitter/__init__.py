"""Jitter: what does the slowest of 100,000 do to everyone?"""

from jax import Array

from fabric_kernels.quantity import quantity, record


@record
class Jitter:
    """What does the slowest of 100,000 do to everyone?"""

    jitter_stall: Array = quantity("s", "time that hop noise adds to the exchange", bounds=(0, 1e6))
