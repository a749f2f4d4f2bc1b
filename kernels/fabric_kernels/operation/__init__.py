"""Operation: what do data-parallel ranks do with their gradients?"""

import abc
from typing import ClassVar

from fabric_kernels.quantity import record

ALL_REDUCE = "all_reduce"
REDUCE_SCATTER = "reduce_scatter"
ALL_GATHER = "all_gather"
ALL_TO_ALL = "all_to_all"
POINT_TO_POINT = "point_to_point"


@record
class Operation(abc.ABC):
    """What do data-parallel ranks do with their gradients? Known when a model is built."""

    calls: ClassVar[tuple[str, ...]]
    """Collective calls of one step, one after another, each with the whole payload."""
