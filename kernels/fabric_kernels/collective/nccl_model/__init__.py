"""NCCL's own cost model as a pure function: `cost`."""

from fabric_kernels.collective.nccl_model.choice import Cost, faster, named, unless_alone
from fabric_kernels.collective.nccl_model.cost import (
    NCCL_ALGORITHMS,
    NCCL_PROTOCOLS,
    OPERATIONS,
    cost,
)
from fabric_kernels.collective.nccl_model.group import Able, Asked, Channels, Group
from fabric_kernels.collective.nccl_model.search import channels_of

__all__ = [
    "NCCL_ALGORITHMS",
    "NCCL_PROTOCOLS",
    "OPERATIONS",
    "Able",
    "Asked",
    "Channels",
    "Cost",
    "Group",
    "channels_of",
    "cost",
    "faster",
    "named",
    "unless_alone",
]
