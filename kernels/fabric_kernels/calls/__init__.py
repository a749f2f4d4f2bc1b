"""One collective call over the networks, and the parts that it is made of."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from fabric_kernels.inputs import Reduction, ScaleUp
from fabric_kernels.model import ModelError
from fabric_kernels.operation import ALL_TO_ALL, POINT_TO_POINT
from fabric_kernels.path import Path
from fabric_kernels.pattern import Pattern, Ring, repeated


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


def chosen_patterns(choices: Sequence[tuple[Array, tuple[Pattern, ...]]]) -> tuple[Pattern, ...]:
    """The patterns of what is chosen in each lane; at most one of every type.

    One pattern of a type stands for those of all choices, so that the laws of jitter and loss are
    computed once a type and not once a choice. Where none is chosen it happens 0 times.
    """
    found: dict[type, Pattern] = {}
    for happens, patterns in choices:
        for pattern in map(_explicit, patterns):
            kind = type(pattern)
            # numbers that harm nobody where the pattern never happens
            never = jax.tree.map(jnp.ones_like, pattern)
            never = never._replace(repeats=jnp.zeros_like(pattern.repeats))
            before = found.get(kind, never)
            found[kind] = jax.tree.map(partial(jnp.where, happens), pattern, before)
    return tuple(found.values())


def _explicit(pattern: Pattern) -> Pattern:
    if isinstance(pattern, Ring) and pattern.crossings is None:
        return pattern._replace(crossings=pattern.steps)
    return pattern


def no_message(call: Call) -> None:
    """Refuse what is sent from each to each or from one to one."""
    instead = {
        ALL_TO_ALL: "direct, pairwise, hierarchical or auto",
        POINT_TO_POINT: "direct or auto",
    }
    if call.operation in instead:
        raise refused(call, "it only reduces and gathers", instead[call.operation])
