"""The parts of every exchange, in the order in which effects are counted."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from fabric_kernels.collective import Collective
from fabric_kernels.congestion import Congestion
from fabric_kernels.expert import Expert
from fabric_kernels.pipeline import Pipeline
from fabric_kernels.tensor import Tensor


class Clean(NamedTuple):
    """One exchange when nothing goes wrong (s)."""

    transfer: Array  # NVLink and fabric
    fabric_transfer: Array
    latency: Array
    fabric_hops: Array

    @property
    def time(self) -> Array:
        """Transfer and latency (s)."""
        return self.transfer + self.latency


def data_part(collective: Collective) -> Clean:
    """The data exchange."""
    return Clean(
        collective.nvlink_transfer_time + collective.fabric_transfer_time,
        collective.fabric_transfer_time,
        collective.exchange_latency,
        collective.fabric_hops,
    )


def tensor_part(tensor: Tensor) -> Clean:
    """The exchange between the GPUs of a layer, which never meets the fabric."""
    nothing = jnp.zeros_like(tensor.tensor_latency)
    return Clean(tensor.tensor_transfer_time, nothing, tensor.tensor_latency, nothing)


def expert_part(expert: Expert) -> Clean:
    """The exchange with the experts."""
    return Clean(
        expert.expert_nvlink_transfer_time + expert.expert_fabric_transfer_time,
        expert.expert_fabric_transfer_time,
        expert.expert_latency,
        expert.expert_fabric_hops,
    )


def pipeline_part(pipeline: Pipeline) -> Clean:
    """The exchange between pipeline stages."""
    crosses = pipeline.pipeline_fabric_transfer_time > 0
    return Clean(
        pipeline.pipeline_nvlink_transfer_time + pipeline.pipeline_fabric_transfer_time,
        pipeline.pipeline_fabric_transfer_time,
        pipeline.pipeline_latency,
        jnp.where(crosses, pipeline.pipeline_hops, 0.0),
    )


def delayed(clean: Clean, congestion: Congestion) -> Array:
    """What congestion adds to an exchange (s).

    fabric_transfer (1 / efficiency - 1) + fabric_hops queueing_delay
    """
    lost_rate = (1 - congestion.congestion_efficiency) / congestion.congestion_efficiency
    return clean.fabric_transfer * lost_rate + clean.fabric_hops * congestion.queueing_delay
