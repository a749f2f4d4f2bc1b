"""Flat calls that are no ring: a tree with chains, and halving and doubling."""

import jax.numpy as jnp

from fabric_kernels.calls import Call, Network, Part, followed, no_message
from fabric_kernels.calls.across import doubling_across, tree_across
from fabric_kernels.calls.inside import doubling_inside


def chained_tree(call: Call, network: Network) -> Part:
    """One call of the tree."""
    no_message(call)
    scale_up, reduction = network.scale_up, network.reduction
    part = tree_across(call, network)
    chain = call.in_domain - 1
    inside = 2 * chain * (call.payload / call.in_domain) / scale_up.nvlink_rate
    slot = jnp.maximum(part.fabric_transfer, inside) / reduction.tree_chunks
    across = part.fabric_transfer / reduction.tree_chunks
    levels = 0.5 * part.hops
    steps = jnp.maximum(2 * (levels + chain) - 1, 0.0)
    fill = steps * slot - jnp.maximum(2 * levels - 1, 0.0) * across
    return part._replace(
        nvlink_transfer=jnp.maximum(inside - part.fabric_transfer, 0.0),
        latency=part.latency + 2 * chain * scale_up.nvlink_latency + fill,
    )


def doubled(call: Call, network: Network) -> Part:
    """One call of halving and doubling."""
    no_message(call)
    return followed(doubling_inside(call, network), doubling_across(call, network))
