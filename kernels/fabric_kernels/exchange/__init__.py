"""Exchange: what do the exchanges of a step take with every effect in?"""

from jax import Array

from fabric_kernels.quantity import quantity, record


@record
class Exchange:
    """What do the exchanges of a step take with every effect in?"""

    congestion_delay: Array = quantity(
        "s", "time that queues and lost rate add to all exchanges", bounds=(0, 1e6)
    )
    data_congestion_delay: Array = quantity(
        "s", "time that queues and lost rate add to the data exchange", bounds=(0, 1e6)
    )
    expert_congestion_delay: Array = quantity(
        "s", "time that queues and lost rate add to the expert exchange", bounds=(0, 1e6)
    )
    pipeline_congestion_delay: Array = quantity(
        "s", "time that queues and lost rate add to the pipeline exchange", bounds=(0, 1e6)
    )
    allreduce_time: Array = quantity(
        "s", "data exchange (all-reduce of the gradients), every effect in", bounds=(0, 1e7)
    )
    tensor_exchange_time: Array = quantity(
        "s", "exchange between the GPUs of a layer, every effect in", bounds=(0, 1e7)
    )
    expert_exchange_time: Array = quantity(
        "s", "exchange with the experts, every effect in", bounds=(0, 1e7)
    )
    pipeline_exchange_time: Array = quantity(
        "s", "exchange between pipeline stages, every effect in", bounds=(0, 1e7)
    )
    algorithm_bandwidth: Array = quantity(
        "B s-1",
        "payload of the data exchange over its clean time (transfer and latency)",
        bounds=(0, 1e14),
    )
    bus_bandwidth: Array = quantity(
        "B s-1",
        "algorithm bandwidth times the share that crosses a bus: 2 (g - 1) / g for an all-reduce "
        "over g ranks",
        bounds=(0, 1e14),
    )
