"""One collective call alone, to compare with a benchmark."""

from fabric_kernels.operation import (
    ALL_GATHER,
    ALL_TO_ALL,
    POINT_TO_POINT,
    REDUCE_SCATTER,
    Operation,
)
from fabric_kernels.quantity import record


@record
class ReduceScatter(Operation):
    """One reduce-scatter."""

    calls = (REDUCE_SCATTER,)


@record
class AllGather(Operation):
    """One all-gather."""

    calls = (ALL_GATHER,)


@record
class AllToAll(Operation):
    """One all-to-all."""

    calls = (ALL_TO_ALL,)


@record
class PointToPoint(Operation):
    """One message to another rank."""

    calls = (POINT_TO_POINT,)


def reduce_scatter() -> Operation:
    """One reduce-scatter; the payload is that of all ranks together, as nccl-tests counts."""
    return ReduceScatter()


def all_gather() -> Operation:
    """One all-gather; the payload is that of all ranks together, as nccl-tests counts."""
    return AllGather()


def all_to_all() -> Operation:
    """One all-to-all; the payload is what one rank sends to all, as nccl-tests counts."""
    return AllToAll()


def point_to_point() -> Operation:
    """One message from each rank to another."""
    return PointToPoint()
