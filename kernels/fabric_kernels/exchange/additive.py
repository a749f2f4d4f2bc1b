"""Every effect adds to the time of the exchange."""

import jax.numpy as jnp
from jax import Array

from fabric_kernels.collective import Collective
from fabric_kernels.congestion import Congestion
from fabric_kernels.exchange import DataExchange
from fabric_kernels.jitter import Jitter
from fabric_kernels.loss import Loss
from fabric_kernels.workload import Workload


def additive(
    workload: Workload,
    collective: Collective,
    congestion: Congestion,
    jitter: Jitter,
    loss: Loss,
) -> DataExchange:
    """The exchange as the sum of its transfer, latency, congestion, jitter and loss.

        clean = nvlink_transfer + fabric_transfer + latency
        congestion_delay = fabric_transfer (1 / efficiency - 1) + fabric_hops queueing_delay
        allreduce_time = clean + congestion_delay + jitter_stall + loss_stall
        algorithm_bandwidth = payload / clean,  bus_bandwidth = that x 2 (g - 1) / g

    Bandwidths in the sense of NVIDIA's nccl-tests (doc/PERFORMANCE.md), from the clean time; 0
    where a group of one rank exchanges nothing. An upper bound: a stall that hides behind another
    is counted as if it did not.
    """
    ranks = workload.data_parallel
    transfer = collective.nvlink_transfer_time + collective.fabric_transfer_time
    clean = transfer + collective.exchange_latency
    lost_rate = (1 - congestion.congestion_efficiency) / congestion.congestion_efficiency
    congestion_delay = (
        collective.fabric_transfer_time * lost_rate
        + collective.fabric_hops * congestion.queueing_delay
    )
    bandwidth = _over_positive(workload.payload, clean)
    return DataExchange(
        congestion_delay=congestion_delay,
        allreduce_time=clean + congestion_delay + jitter.jitter_stall + loss.loss_stall,
        algorithm_bandwidth=bandwidth,
        bus_bandwidth=bandwidth * (2 * (ranks - 1) / ranks),
    )


def _over_positive(payload: Array, time: Array) -> Array:
    # written so that a time that is not a number stays so
    nothing = time <= 0
    return jnp.where(nothing, 0.0, payload / jnp.where(nothing, 1.0, time))
