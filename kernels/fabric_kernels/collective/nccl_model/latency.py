"""Latency of every algorithm of NCCL's cost model, s."""

import jax.numpy as jnp
from jax import Array

from fabric_kernels.collective.nccl_model import tables
from fabric_kernels.collective.nccl_model.group import Asked, by_generation


def latency(asked: Asked, algorithm: str, protocol: str) -> Array:
    """Latency of one operation, formulas of the functions below."""
    place = tables.PROTOCOLS.index(protocol)
    base = tables.LATENCIES[algorithm].base[place]
    if algorithm == "ring":
        return _ring(asked, protocol)
    inside = _inside(asked, algorithm, place)
    network = _network(asked, algorithm, place)
    others = asked.group.gpus_per_node - 1
    if algorithm == "double_binary_tree":
        return base + 2 * (others * inside + asked.group.levels * network)
    if algorithm == "collnet_direct":
        steps = jnp.minimum(others, 1.0) * inside + others * tables.DIRECT_ARITY_LATENCY
        return 2 * steps + network
    if algorithm == "collnet_chain":
        return 2 * others * inside + network
    if algorithm == "nvls":
        return inside + jnp.where(asked.group.nodes > 1, network, 0.0)
    if algorithm == "nvls_tree":
        return inside + 2 * asked.group.levels * network
    level = network * tables.PAT_NETWORK_SHARE
    return base + asked.group.levels * level + tables.PAT_RANK_LATENCY * asked.group.ranks


def _ring(asked: Asked, protocol: str) -> Array:
    """base + (steps - k) max(inside, overhead) + k network, k steps across the network.

    k = 2 (N - 1) for an all-reduce over N nodes, N - 1 for one of its halves, 0 on one node; the
    all-reduce before NCCL 2.23.4 counts 2 N. Simple: overhead x 3; large messages of an
    all-reduce over several nodes: all x 1.4 (x 1.9 before Ampere), the plateau.
    """
    place = tables.PROTOCOLS.index(protocol)
    nodes, library = asked.group.nodes, asked.library
    several = nodes > 1
    crossing = nodes - 1
    if asked.all_reduce:
        crossing = 2 * jnp.where(library.ring_step_rule > 0.5, nodes, crossing)
    crossing = jnp.where(several, crossing, 0.0)
    simple = protocol == "simple"
    overhead = library.network_overhead * (3 if simple else 1)
    inside = _inside(asked, "ring", place)
    inside = jnp.where(several, jnp.maximum(inside, overhead), inside)
    base = tables.LATENCIES["ring"].base[place]
    found = base + (asked.steps - crossing) * inside + crossing * _network(asked, "ring", place)
    if not (simple and asked.all_reduce):
        return found
    share = asked.group.payload / (library.library_channels * asked.group.ranks)
    plateau = several & (share >= tables.PLATEAU_BYTES)
    return found * jnp.where(plateau, by_generation(asked, tables.RING_PLATEAU), 1.0)


def _inside(asked: Asked, algorithm: str, place: int) -> Array:
    row = tables.LATENCIES[algorithm]
    return jnp.where(asked.library.scale_up_link > 0.5, row.pcie[place], row.nvlink[place])


def _network(asked: Asked, algorithm: str, place: int) -> Array:
    """One hop across the network; with one GPU a node the tree's; the plugin's on top.

    Simple counts the plugin's latency twice, for the flush.
    """
    own = tables.LATENCIES[algorithm].network[place]
    tree = tables.LATENCIES["double_binary_tree"].network[place]
    hop = jnp.where(asked.group.gpus_per_node < 1.5, tree, own)
    times = 2 if tables.PROTOCOLS[place] == "simple" else 1
    return hop + times * asked.library.network_plugin_latency
