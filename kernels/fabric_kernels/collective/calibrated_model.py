"""Collective calls as published tables show them: bounds of the network, fill and small messages.

    T = min(small + S / r,  large + S / B + fill (S / B) / (fill + S / B))

Every term is physical; how large it is was fitted to published nccl-tests tables by
`kernels/constants/nccl_calibration.py`, which prints how many parameters stand against how many
tables, and the error on each table when it is left out.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from fabric_kernels.collective import ALGORITHMS
from fabric_kernels.collective.nccl_model import (
    OPERATIONS,
    Cost,
    Group,
    faster,
    named,
    unless_alone,
)
from fabric_kernels.collective.nccl_model.tables import LATENCIES
from fabric_kernels.collective.nccl_model.tables import PROTOCOLS as ROW
from fabric_kernels.inputs import Calibration
from fabric_kernels.model import ModelError

TREE_SHARE = 0.92
"""A tree of messages, without switches that add, over a ring (NCCL v2.30.7, tuning.cc)."""

CHAIN_SHARE = TREE_SHARE * 0.85 / 2
"""Algorithm rate of a tree that is a plain chain inside a domain, over its ring's bus rate."""

_LL, _SIMPLE = ROW.index("ll"), ROW.index("simple")
_TREE, _RING, _NVLS = (LATENCIES[name] for name in ("double_binary_tree", "ring", "nvls"))


class Fabric(NamedTuple):
    """What a domain has towards the others and inside."""

    domain_rate: Array  # line rate of all network ports of one domain, B/s
    nvlink_reduction: Array  # 1: the switches of a domain add


def calibrated_cost(operation: str, group: Group, fabric: Fabric, calibration: Calibration) -> Cost:
    """Time of one call of n ranks in N domains of g; A = domain_rate, e = fabric_efficiency.

    Large messages, by the faster of ring and tree:

        ring: B = min(e A, g / (g - 1) ring_rate) n / (2 (n - 1)),  fill = n ring_fill
        tree: B = min(reduction_rate, c e A),  fill = 2 g domain_fill
        c = 1 (N = 2), 2/3 (N = 3), 1/2: what the busiest domain of a double binary tree sends
        large = NVLS hop + 2 floor(log2 N) (chunk_hop_latency + chunk_delay_factor fabric_delay)

    In one domain B is ring_rate n / (2 (n - 1)) or reduction_rate, and the tree fills once; it is
    called `nvls` there where switches add for more than two GPUs. A pipeline takes no longer to
    fill than to run: hence the harmonic sum. Small messages: the
    latency of NCCL's LL protocol (tree for all-reduce, ring else) + start_latency + fabric_delay
    for each hop across. All-gather and reduce-scatter are rings with half of large and fill.

    Between 64 KiB and 64 MiB, where libraries change protocols, errors of a factor 1.5 occur. A
    fabric that oversubscribes, collides or loses packets is not in the tables used. Raises
    ModelError for all-to-all and point-to-point, of which no tables of several domains are public.
    """
    if operation not in OPERATIONS:
        raise ModelError(
            f"no calibration of {operation}: published tables have {', '.join(OPERATIONS)}; "
            "choose another answer of collective."
        )
    large = _large_ring(operation, group, fabric, calibration)
    best, shape = named("ring", "simple", *large), "ring"
    if operation == "all_reduce":
        shape = "double_binary_tree"
        tree = named(shape, "simple", *_tree(group, fabric, calibration))
        adds = (group.nodes < 1.5) & (group.gpus_per_node > 2.5) & (fabric.nvlink_reduction > 0.5)
        code = jnp.where(adds, ALGORITHMS.index("nvls"), tree.algorithm)
        best = faster(best, tree._replace(algorithm=code.astype(tree.algorithm.dtype)))
    best = faster(best, named(shape, "ll", *_small(operation, group, calibration)))
    return unless_alone(best, group.ranks)


def _small(operation: str, group: Group, calibration: Calibration) -> tuple[Array, Array]:
    several = group.nodes > 1.5
    start = jnp.where(several, calibration.start_latency, 0.0)
    transfer = group.payload / calibration.small_message_rate
    if operation == "all_reduce":
        hop = _TREE.network[_LL] + calibration.fabric_delay
        inside = (group.gpus_per_node - 1) * _TREE.nvlink[_LL]
        latency = _TREE.base[_LL] + 2 * (inside + group.levels * hop)
        return latency + start, 2 * transfer
    alone = group.gpus_per_node < 1.5
    hop = jnp.where(alone, _TREE.network[_LL], _RING.network[_LL]) + calibration.fabric_delay
    near = jnp.where(several, calibration.gather_hop_latency, _RING.nvlink[_LL])
    latency = _RING.base[_LL] + (group.ranks - group.nodes) * near + (group.nodes - 1) * hop
    return latency + start, transfer


def _large(latency: Array, fill: Array, transfer: Array) -> tuple[Array, Array]:
    """A pipeline that fills for no longer than it runs; no time at all for no payload."""
    whole = fill + transfer
    return latency + fill * (transfer / jnp.where(whole > 0, whole, 1.0)), transfer


def _chunk_latency(group: Group, calibration: Calibration) -> Array:
    hop = calibration.chunk_hop_latency + calibration.chunk_delay_factor * calibration.fabric_delay
    return _NVLS.nvlink[_SIMPLE] + 2 * group.levels * hop


def _large_ring(
    operation: str, group: Group, fabric: Fabric, calibration: Calibration
) -> tuple[Array, Array]:
    several, ranks = group.nodes > 1.5, group.ranks
    rate = calibration.fabric_efficiency * fabric.domain_rate
    latency, fill = _chunk_latency(group, calibration), calibration.ring_fill * ranks
    steps = 2 * (ranks - 1)
    if operation != "all_reduce":
        rate, steps = rate * calibration.gather_efficiency, ranks - 1
        latency, fill = latency * jnp.where(several, 0.5, 1.0), 0.5 * fill
    # a ring that leaves a domain has one link less inside
    links = group.gpus_per_node / jnp.maximum(group.gpus_per_node - 1, 1.0 / 64)
    rate = jnp.where(
        several, jnp.minimum(rate, links * calibration.ring_rate), calibration.ring_rate
    )
    return _large(latency, fill, group.payload * steps / (ranks * rate))


def _tree(group: Group, fabric: Fabric, calibration: Calibration) -> tuple[Array, Array]:
    domains = group.nodes
    several, alone = domains > 1.5, group.gpus_per_node < 1.5
    share = jnp.where(domains < 2.5, 1.0, jnp.where(domains < 3.5, 2 / 3, 0.5))
    share = share * jnp.where(fabric.nvlink_reduction > 0.5, 1.0, TREE_SHARE)
    across = share * calibration.fabric_efficiency * fabric.domain_rate
    inside = calibration.reduction_rate
    # switches add for more than two GPUs
    few = jnp.minimum(inside, CHAIN_SHARE * calibration.ring_rate)
    inside = jnp.where(group.gpus_per_node < 2.5, few, inside)
    rate = jnp.where(several, jnp.minimum(inside, across), inside)
    rate = jnp.where(several & alone, across, rate)
    fill = calibration.domain_fill * group.gpus_per_node * jnp.where(several, 2.0, 1.0)
    return _large(_chunk_latency(group, calibration), fill, group.payload / rate)
