"""NCCL's prediction for one collective call, and what it chooses."""

from collections.abc import Iterator

import jax.numpy as jnp
from jax import Array

from fabric_kernels.collective.nccl_model import tables
from fabric_kernels.collective.nccl_model.bandwidth import rate
from fabric_kernels.collective.nccl_model.choice import Cost, faster, named, unless_alone
from fabric_kernels.collective.nccl_model.group import Able, Asked, Channels, Group
from fabric_kernels.collective.nccl_model.latency import latency
from fabric_kernels.inputs import CollectiveLibrary
from fabric_kernels.model import ModelError

OPERATIONS = ("all_reduce", "reduce_scatter", "all_gather")
"""Operations that NCCL models; it sends all-to-all and point-to-point without a choice."""

NCCL_ALGORITHMS = tuple(tables.LATENCIES)
"""Algorithms in the order in which NCCL tries them: the first of the fastest is taken."""

NCCL_PROTOCOLS = tables.PROTOCOLS
"""Protocols in the order in which NCCL tries them."""

_ALL_REDUCE_ONLY = ("double_binary_tree", "collnet_direct", "collnet_chain", "nvls_tree")
_SIMPLE_ONLY = ("collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat")


def cost(
    operation: str,
    group: Group,
    channels: Channels,
    able: Able,
    library: CollectiveLibrary,
    *,
    algorithms: tuple[str, ...] = NCCL_ALGORITHMS,
    protocols: tuple[str, ...] = NCCL_PROTOCOLS,
) -> Cost:
    """Time, algorithm and protocol that NCCL's cost model gives for one collective call.

        time = latency + payload / rate,  least over algorithms and protocols

    NVIDIA/nccl v2.30.7, `src/graph/tuning.cc`: formulas in `latency` and `bandwidth`, numbers in
    `tables`. `algorithms` and `protocols` restrict the choice as NCCL_ALGO and NCCL_PROTO do; time
    and transfer are infinite where none of them can be used. One rank alone takes no time.

    CollNet is modelled for all-reduce alone. The model knows no congestion, oversubscription,
    loss, jitter or spread, and its constants are those of NVIDIA's own machines: it gives 0.5 to
    0.9 of measured bandwidth in published tables, which `calibrated` is for. Raises ModelError for
    an operation that NCCL has no model of, an unknown name, and a restriction that leaves nothing.
    """
    asked = Asked(operation, group, channels, able, library)
    best: Cost | None = None
    for algorithm, protocol in _candidates(operation, algorithms, protocols):
        found = _one(asked, algorithm, protocol)
        best = found if best is None else faster(best, found)
    if best is None:
        raise ModelError(
            f"NCCL has no {operation} by {', '.join(algorithms)} with {', '.join(protocols)}: "
            "allow more algorithms or protocols."
        )
    return unless_alone(best, group.ranks)


def _candidates(
    operation: str, algorithms: tuple[str, ...], protocols: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    if operation not in OPERATIONS:
        raise ModelError(
            f"NCCL has no cost model of {operation}, only of {', '.join(OPERATIONS)}: "
            "choose another answer of collective."
        )
    for given, known in ((algorithms, NCCL_ALGORITHMS), (protocols, NCCL_PROTOCOLS)):
        if wrong := [name for name in given if name not in known]:
            raise ModelError(f"{wrong[0]!r} is none of NCCL's: choose from {', '.join(known)}.")
    for algorithm in (name for name in NCCL_ALGORITHMS if name in algorithms):
        if operation == "all_reduce" and algorithm == "pat":
            continue
        if operation != "all_reduce" and algorithm in _ALL_REDUCE_ONLY:
            continue
        for protocol in (name for name in NCCL_PROTOCOLS if name in protocols):
            if protocol == "simple" or algorithm not in _SIMPLE_ONLY:
                yield algorithm, protocol


def _one(asked: Asked, algorithm: str, protocol: str) -> Cost:
    payload = asked.group.payload
    able = _available(asked, algorithm, protocol)
    # a rate of 0 is never divided by: those lanes cannot be used
    speed = jnp.where(able, rate(asked, algorithm, protocol), 1.0)
    transfer = jnp.where(able, payload / speed, jnp.inf)
    return named(algorithm, protocol, latency(asked, algorithm, protocol), transfer)


def _available(asked: Asked, algorithm: str, protocol: str) -> Array:
    """Whether NCCL considers it here.

    LL128 needs NVLink inside a node. NVLS needs NVLink switches that add (since Hopper), more
    than two GPUs a node and two channels; over several nodes CollNet for NVLS itself. NVLS tree
    needs several nodes, PAT one GPU on each of several, CollNet switches of the fabric that add.
    """
    group, library = asked.group, asked.library
    several, nvlink = group.nodes > 1.5, library.scale_up_link < 0.5
    able = jnp.ones_like(asked.steps * group.payload) > 0
    if protocol == "ll128":
        able = able & nvlink
    if algorithm in ("collnet_direct", "collnet_chain"):
        able = able & several & (asked.able.fabric > 0.5)
    if algorithm == "collnet_direct":
        able = able & nvlink
    if algorithm == "pat":
        able = able & several & (group.gpus_per_node < 1.5)
    if algorithm in ("nvls", "nvls_tree"):
        able = able & nvlink & (asked.able.nvlink > 0.5) & (library.gpu_generation > 1.5)
        able = able & (group.gpus_per_node > 2.5) & (library.library_channels > 1.5)
    if algorithm == "nvls_tree":
        able = able & several
    if algorithm == "nvls":
        able = able & (~several | (asked.able.fabric > 0.5))
        if not asked.all_reduce:
            widest = jnp.maximum(group.gpus_per_node, library.library_channels)
            able = able & (widest <= tables.NVLS_ARITY)
    return able
