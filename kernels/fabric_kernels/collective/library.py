"""What a library's call means for the rest of the step, whatever its cost model is."""

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

from fabric_kernels.calls import Call, Network, Part, chosen_patterns
from fabric_kernels.calls.across import star, tree_across
from fabric_kernels.calls.flat_ring import flat_ring
from fabric_kernels.collective import ALGORITHMS
from fabric_kernels.collective.exchange import Chosen
from fabric_kernels.collective.nccl_model import Cost, Group
from fabric_kernels.operation import ALL_REDUCE
from fabric_kernels.pattern import Doubling, Pattern

CostOf = Callable[[str, Group, Call], Cost]
"""Cost of an operation of a group of ranks."""


def chosen_by(cost_of: CostOf, call: Call, network: Network) -> Chosen:
    """One call as the library makes it: its cost, and the pattern of the algorithm it takes.

    Transfer counts as NVLink's inside one domain and as the fabric's beyond; ranks that do not fill
    their domains count as if they did, with as many as the emptiest holds.
    """
    group = Group(call.payload, call.domains, call.in_domain)
    cost = cost_of(call.operation, group, call)
    crosses = call.domains > 1.5
    patterns, hops = _patterns(call, network, cost.algorithm)
    part = Part(
        jnp.where(crosses, 0.0, cost.transfer),
        jnp.where(crosses, cost.transfer, 0.0),
        cost.latency,
        hops,
        patterns,
    )
    return Chosen(part, cost.algorithm, cost.protocol)


def _patterns(call: Call, network: Network, algorithm: Array) -> tuple[tuple[Pattern, ...], Array]:
    """The pattern of the algorithm of every sample, and its hops across the fabric."""
    ring = flat_ring(call, network)
    found: list[tuple[tuple[str, ...], Array, tuple[Pattern, ...]]]
    found = [(("ring",), ring.hops, ring.patterns)]
    if call.operation == ALL_REDUCE:
        tree = tree_across(call, network)
        found.append((("double_binary_tree", "nvls_tree"), tree.hops, tree.patterns))
        added = star(call)
        one = jnp.where(call.domains > 1, 1.0, 0.0).astype(call.payload.dtype)
        found.append((("collnet_direct", "collnet_chain", "nvls"), one, (added,)))
    else:
        levels = jnp.ceil(jnp.log2(jnp.maximum(call.domains, 1.0)) - 1e-6)
        repeats = jnp.where(levels > 0, 1.0, 0.0).astype(levels.dtype)
        mean = call.payload / jnp.maximum(levels, 1.0)
        pairs = Doubling(call.domains, levels, mean, call.in_domain, repeats)
        found.append((("pat",), levels, (pairs,)))
    choices, hops = [], jnp.zeros_like(ring.hops)
    for names, crossed, these in found:
        codes = [ALGORITHMS.index(name) for name in names]
        mine = sum((algorithm == code for code in codes[1:]), algorithm == codes[0])
        choices.append((mine, these))
        hops = jnp.where(mine, crossed, hops)
    return chosen_patterns(choices), hops
