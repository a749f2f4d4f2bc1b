"""Exchange: what does the data exchange take with every effect in?"""

from jax import Array

from fabric_kernels.quantity import quantity, record


@record
class DataExchange:
    """What does the data exchange take with every effect in?"""

    congestion_delay: Array = quantity(
        "s", "time that queues and lost rate add to the exchange", bounds=(0, 1e6)
    )
    allreduce_time: Array = quantity(
        "s", "all-reduce of the gradients, every effect in", bounds=(0, 1e7)
    )
    algorithm_bandwidth: Array = quantity(
        "B s-1", "payload over clean all-reduce time (transfer and latency)", bounds=(0, 1e14)
    )
    bus_bandwidth: Array = quantity(
        "B s-1", "algorithm bandwidth times 2 (g - 1) / g for g ranks", bounds=(0, 1e14)
    )
