"""A model without experts."""

import jax.numpy as jnp

from fabric_kernels.expert import Expert
from fabric_kernels.model import ModelError
from fabric_kernels.workload import Workload


def none(workload: Workload) -> Expert:
    """No token leaves its GPU: dense models. The workload gives only the shape."""
    if len(workload.messages) > 1:
        raise ModelError(
            "expert is none for a workload with experts: their tokens travel; choose expert direct "
            "or relayed."
        )
    nothing = jnp.zeros_like(workload.payload)
    return Expert(
        expert_nvlink_transfer_time=nothing,
        expert_fabric_transfer_time=nothing,
        expert_latency=nothing,
        expert_fabric_hops=nothing,
        traffic=(),
    )
