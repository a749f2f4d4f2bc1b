"""Collective: how long does the data exchange take when nothing goes wrong?"""

from jax import Array

from fabric_kernels.quantity import quantity, record


@record
class Collective:
    """How long does the data exchange take when nothing goes wrong?"""

    nvlink_transfer_time: Array = quantity(
        "s", "transfer inside the NVLink domain", bounds=(0, 1e6)
    )
    fabric_transfer_time: Array = quantity(
        "s", "transfer across the fabric without congestion", bounds=(0, 1e6)
    )
    exchange_latency: Array = quantity(
        "s", "sum of the hop floors on the critical path", bounds=(0, 1e4)
    )
    fabric_hops: Array = quantity(
        "1", "hops across the fabric on the critical path", bounds=(0, 1e8)
    )
    fabric_steps: Array = quantity(
        "1", "algorithm steps in which a message crosses the fabric", bounds=(0, 1e8)
    )
    fabric_messages: Array = quantity(
        "1", "messages of one group that cross the fabric in one such step", bounds=(0, 2**20)
    )
    message_payload: Array = quantity(
        "B", "bytes of one message across the fabric", bounds=(0, 1e16)
    )
