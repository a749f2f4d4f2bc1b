"""Every effect adds to the time of its exchange."""

import jax.numpy as jnp
from jax import Array

from fabric_kernels.calls.clean import (
    data_part,
    delayed,
    expert_part,
    pipeline_part,
    tensor_part,
)
from fabric_kernels.collective import Collective
from fabric_kernels.congestion import Congestion
from fabric_kernels.exchange import Exchange
from fabric_kernels.expert import Expert
from fabric_kernels.jitter import Jitter
from fabric_kernels.loss import Loss
from fabric_kernels.operation import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    POINT_TO_POINT,
    REDUCE_SCATTER,
    Operation,
)
from fabric_kernels.pipeline import Pipeline
from fabric_kernels.tensor import Tensor
from fabric_kernels.workload import Workload, groups_of


def additive(
    operation: Operation,
    workload: Workload,
    collective: Collective,
    tensor: Tensor,
    expert: Expert,
    pipeline: Pipeline,
    congestion: Congestion,
    jitter: Jitter,
    loss: Loss,
) -> Exchange:
    """Each exchange as the sum of its transfer, latency, congestion, jitter and loss.

        clean = nvlink_transfer + fabric_transfer + latency
        congestion_delay = fabric_transfer (1 / efficiency - 1) + fabric_hops queueing_delay
        exchange_time = clean + congestion_delay + jitter_stall + loss_stall
        algorithm_bandwidth = calls payload / clean,  bus_bandwidth = that x bus share

    Bandwidths of the data exchange in the sense of NVIDIA's nccl-tests (doc/PERFORMANCE.md), from
    the clean time; 0 where a group of one rank exchanges nothing. An upper bound: a stall that
    hides behind another is counted as if it did not.
    """
    data, layer = data_part(collective), tensor_part(tensor)
    experts, stages = expert_part(expert), pipeline_part(pipeline)
    delays = [delayed(clean, congestion) for clean in (data, experts, stages)]
    stalls = (
        jitter.data_jitter_stall + loss.data_loss_stall,
        jitter.expert_jitter_stall + loss.expert_loss_stall,
        jitter.pipeline_jitter_stall + loss.pipeline_loss_stall,
    )
    sent, across = _sent(operation, workload)
    return Exchange(
        congestion_delay=delays[0] + delays[1] + delays[2],
        data_congestion_delay=delays[0],
        expert_congestion_delay=delays[1],
        pipeline_congestion_delay=delays[2],
        allreduce_time=data.time + delays[0] + stalls[0],
        tensor_exchange_time=layer.time,
        expert_exchange_time=experts.time + delays[1] + stalls[1],
        pipeline_exchange_time=stages.time + delays[2] + stalls[2],
        algorithm_bandwidth=_over_positive(sent, data.time),
        bus_bandwidth=_over_positive(across, data.time),
    )


def bus_share(operation: str, ranks: Array) -> Array:
    """Share of a payload that crosses each bus, as nccl-tests counts."""
    if operation == POINT_TO_POINT:
        return jnp.ones_like(ranks)
    phases = {ALL_REDUCE: 2, REDUCE_SCATTER: 1, ALL_GATHER: 1, ALL_TO_ALL: 1}[operation]
    return phases * (ranks - 1) / ranks


def _sent(operation: Operation, workload: Workload) -> tuple[Array, Array]:
    """Bytes of all calls of the data exchange, as they are and as they cross a bus."""
    sent, across = jnp.zeros_like(workload.payload), jnp.zeros_like(workload.payload)
    for group in groups_of(workload):
        for call in operation.calls:
            sent = sent + group.payload
            across = across + group.payload * bus_share(call, group.ranks)
    return sent, across


def _over_positive(payload: Array, time: Array) -> Array:
    # written so that a time that is not a number stays so
    nothing = time <= 0
    return jnp.where(nothing, 0.0, payload / jnp.where(nothing, 1.0, time))
