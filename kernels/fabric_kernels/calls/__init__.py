"""One collective call over the networks, and the parts that it is made of."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from fabric_kernels.inputs import Reduction, ScaleUp
from fabric_kernels.model import ModelError
from fabric_kernels.operation import ALL_TO_ALL, POINT_TO_POINT
from fabric_kernels.path import Path
from fabric_kernels.pattern import Pattern, repeated


class Call(NamedTuple):
    """One collective call of one group."""

    algorithm: str
    operation: str
    payload: Array  # B in the sense of nccl-tests: of all ranks together where it is gathered
    ranks: Array
    domains: Array  # NVLink domains that the group touches
    in_domain: Array  # its ranks in the domain that holds fewest


class Network(NamedTuple):
    """What a call goes over."""

    path: Path
    scale_up: ScaleUp
    reduction: Reduction


class Part(NamedTuple):
    """What a call or a stage of one takes; stages follow each other."""

    nvlink_transfer: Array  # s
    fabric_transfer: Array  # s without congestion
    latency: Array  # s
    hops: Array  # across the fabric on the critical path
    patterns: tuple[Pattern, ...] = ()


PartOf = Callable[[Call, Network], Part]
"""What one call of an algorithm takes."""


def followed(first: Part, second: Part) -> Part:
    """One after the other."""
    return Part(
        first.nvlink_transfer + second.nvlink_transfer,
        first.fabric_transfer + second.fabric_transfer,
        first.latency + second.latency,
        first.hops + second.hops,
        first.patterns + second.patterns,
    )


def scaled(part: Part, times: Array) -> Part:
    """The same call `times` as often."""
    return Part(
        part.nvlink_transfer * times,
        part.fabric_transfer * times,
        part.latency * times,
        part.hops * times,
        repeated(part.patterns, times),
    )


def refused(call: Call, why: str, instead: str) -> ModelError:
    """What to say when a model is built of an algorithm and an operation that do not fit."""
    return ModelError(f"{call.algorithm} has no {call.operation}: {why}; choose {instead}.")


def only_where(happens: Array, patterns: tuple[Pattern, ...]) -> tuple[Pattern, ...]:
    """The patterns where they happen; elsewhere numbers that harm nobody, 0 times."""
    kept = jax.tree.map(lambda number: jnp.where(happens, number, 1.0), patterns)
    return repeated(kept, jnp.where(happens, 1.0, 0.0))


def no_message(call: Call) -> None:
    """Refuse what is sent from each to each or from one to one."""
    if call.operation in (ALL_TO_ALL, POINT_TO_POINT):
        raise refused(call, "it only reduces and gathers", "direct")
