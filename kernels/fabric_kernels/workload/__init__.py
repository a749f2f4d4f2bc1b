"""Workload: what must be computed and exchanged in one step?"""

from typing import NamedTuple

from jax import Array

from fabric_kernels.quantity import quantity, record, structure


class Message(NamedTuple):
    """Gradients that one kind of group exchanges, in terms of the workload's own numbers.

    So that a payload or a number of ranks given from outside counts here too.
    """

    share: Array  # of the payload
    held: Array  # data-parallel ranks that hold one copy of it together: 1, each has its own
    spacing: Array  # GPUs of other groups between two neighbours of a group, plus one


@record
class Workload:
    """What must be computed and exchanged in one step?"""

    data_parallel: Array = quantity("1", "ranks of one data-parallel group", bounds=(1, 2**20))
    concurrent_groups: Array = quantity(
        "1", "data-parallel groups that exchange at once", bounds=(1, 2**20)
    )
    payload: Array = quantity(
        "B", "gradient bytes of one GPU, the message of the data exchange", bounds=(0, 1e16)
    )
    active_parameters: Array = quantity("1", "parameters that work on one token", bounds=(1, 1e15))
    tokens_per_step: Array = quantity("1", "tokens trained in one step", bounds=(1, 1e15))
    full_clock_compute_time: Array = quantity(
        "s", "compute of one step at full clock", bounds=(0, 1e6)
    )
    bubble_share: Array = quantity("1", "pipeline bubble as a share of compute", bounds=(0, 1e4))
    messages: tuple[Message, ...] = structure()


class Group(NamedTuple):
    """What one kind of group exchanges."""

    payload: Array  # B, of one GPU
    ranks: Array  # GPUs of one group
    spacing: Array
    number: Array  # groups that do so at the same time


def groups_of(workload: Workload) -> list[Group]:
    """The groups that exchange gradients, one kind after another."""
    return [
        Group(
            workload.payload * message.share,
            workload.data_parallel / message.held,
            message.spacing,
            workload.concurrent_groups * message.held,
        )
        for message in workload.messages
    ]
