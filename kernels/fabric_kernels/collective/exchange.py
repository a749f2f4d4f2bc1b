"""From one collective call to the data exchange of a step."""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from fabric_kernels.calls import Call, Network, Part, PartOf, followed, scaled
from fabric_kernels.calls.placement import placement
from fabric_kernels.collective import ALGORITHMS, Collective
from fabric_kernels.inputs import Overlap, ScaleUp
from fabric_kernels.model import ModelError
from fabric_kernels.operation import Operation
from fabric_kernels.pattern import Traffic
from fabric_kernels.workload import Workload, groups_of


class Chosen(NamedTuple):
    """What one call takes, and by which algorithm and protocol: codes of every sample."""

    part: Part
    algorithm: Array
    protocol: Array


ChosenOf = Callable[[Call, Network], Chosen]
"""What one call takes by the algorithm that it is given."""


def fixed(algorithm: str, part_of: PartOf) -> ChosenOf:
    """Every call by one algorithm."""

    def chosen(call: Call, network: Network) -> Chosen:
        part = part_of(call, network)
        code = jnp.full_like(part.latency, ALGORITHMS.index(algorithm))
        return Chosen(part, code, jnp.zeros_like(code))

    return chosen


def exchange(
    algorithm: str,
    chosen_of: ChosenOf,
    operation: Operation,
    workload: Workload,
    overlap: Overlap,
    network: Network,
) -> Collective:
    """The data exchange of a step: every call of the operation on every kind of message.

    Calls follow each other, and a payload in buckets is as many calls of a share each. Algorithm
    and protocol are those of the first call.
    """
    total, traffic, first = None, [], None
    for placed, times in calls_of(algorithm, operation, workload, overlap, network.scale_up):
        chosen = chosen_of(placed.call, network)
        part = scaled(chosen.part, times)
        traffic.append(Traffic(part.patterns, placed.groups))
        total = part if total is None else followed(total, part)
        first = chosen if first is None else first
    if total is None or first is None:
        raise ModelError(f"operation {type(operation).__name__} has no call.")
    return Collective(
        nvlink_transfer_time=total.nvlink_transfer,
        fabric_transfer_time=total.fabric_transfer,
        exchange_latency=total.latency,
        fabric_hops=total.hops,
        collective_algorithm=first.algorithm,
        collective_protocol=first.protocol,
        traffic=tuple(traffic),
    )


class Placed(NamedTuple):
    """A call and how many groups make it at the same time."""

    call: Call
    groups: Array


def calls_of(
    algorithm: str, operation: Operation, workload: Workload, overlap: Overlap, scale_up: ScaleUp
) -> list[tuple[Placed, Array]]:
    """The calls of a step, alike ones together, each with how often it is made."""
    calls = []
    for group in groups_of(workload):
        domains, in_domain = placement(group.ranks, group.spacing, scale_up)
        share = group.payload / overlap.buckets_data
        for name, times in Counter(operation.calls).items():
            call = Call(algorithm, name, share, group.ranks, domains, in_domain)
            calls.append((Placed(call, group.number), overlap.buckets_data * times))
    return calls
