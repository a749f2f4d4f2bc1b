"""Messages from each rank to each other, or to one."""

import jax.numpy as jnp

from fabric_kernels.calls import Call, Network, Part, refused
from fabric_kernels.operation import ALL_TO_ALL, POINT_TO_POINT
from fabric_kernels.pattern import Barrier, Line


def straight(call: Call, network: Network) -> Part:
    """One message, or all at once."""
    if call.operation == POINT_TO_POINT:
        return message(call, network)
    return at_once(call, network)


def only_all_to_all(call: Call) -> None:
    """Refuse every other operation."""
    if call.operation == POINT_TO_POINT:
        raise refused(call, "it sends from each to each", "direct or auto")
    if call.operation != ALL_TO_ALL:
        raise refused(call, "it adds nothing up", "ring or hierarchical")


def message(call: Call, network: Network) -> Part:
    """One message: payload / rate + latency of the network that it takes."""
    path, scale_up = network.path, network.scale_up
    crosses = call.domains > 1
    apart = call.ranks > 1
    hop = jnp.where(crosses, 1.0, 0.0).astype(call.payload.dtype)
    inside = jnp.where(apart & ~crosses, call.payload / scale_up.nvlink_rate, 0.0)
    latency = jnp.where(crosses, path.hop_latency, scale_up.nvlink_latency)
    return Part(
        inside,
        jnp.where(crosses, call.payload / path.gpu_rate, 0.0),
        jnp.where(apart, latency, 0.0),
        hop,
        (Line(jnp.ones_like(hop), call.payload, hop),),
    )


def at_once(call: Call, network: Network) -> Part:
    """All-to-all with all messages on their way together.

        fabric = (g - d) / g x payload / gpu_rate,  NVLink = (d - 1) / g x payload / nvlink_rate
        time = the longer of the two, and one hop

    Each rank sends a g-th of the payload to each other; d of the g ranks share its domain. Bound
    by the ports alone: what meets at a receiver is congestion.
    """
    only_all_to_all(call)
    path, scale_up = network.path, network.scale_up
    share = call.payload / call.ranks
    crosses = call.domains > 1
    fabric = (call.ranks - call.in_domain) * share / path.gpu_rate
    inside = (call.in_domain - 1) * share / scale_up.nvlink_rate
    latency = jnp.where(crosses, path.longest_hop_latency, scale_up.nvlink_latency)
    hop = jnp.where(crosses, 1.0, 0.0).astype(share.dtype)
    pairs = call.ranks * (call.ranks - call.in_domain)
    return Part(
        jnp.maximum(inside - fabric, 0.0),
        fabric,
        jnp.where(call.ranks > 1, latency, 0.0),
        hop,
        (Barrier(pairs, jnp.ones_like(share), share, hop),),
    )


def in_rounds(call: Call, network: Network) -> Part:
    """All-to-all in rounds that wait for each other, g - d of them across the fabric.

        time = (g - d) (share / gpu_rate + hop) + (d - 1) (share / nvlink_rate + NVLink hop)

    Thakur, Rabenseifner, Gropp, Int. J. High Performance Computing Applications 19(1), 2005,
    pairwise exchange; share = payload / g.
    """
    only_all_to_all(call)
    path, scale_up = network.path, network.scale_up
    share = call.payload / call.ranks
    across, inside = call.ranks - call.in_domain, call.in_domain - 1
    latency = across * path.longest_hop_latency + inside * scale_up.nvlink_latency
    return Part(
        inside * share / scale_up.nvlink_rate,
        across * share / path.gpu_rate,
        latency,
        across,
        (Barrier(call.ranks, across, share, jnp.ones_like(share)),),
    )


def rails(call: Call, network: Network) -> Part:
    """All-to-all that moves inside the domain first, then along the rails.

        NVLink = (d - 1) / d x payload / nvlink_rate,  fabric = (G - 1) / G x payload / gpu_rate

    Each rank gathers in its domain what goes to its place in the other domains, so that a message
    across the fabric is d times as large and stays on its rail (the relay of NCCL since 2.12).
    """
    path, scale_up = network.path, network.scale_up
    inside = (call.in_domain - 1) * (call.payload / call.in_domain) / scale_up.nvlink_rate
    share = call.payload / call.domains
    crosses = call.domains > 1
    hop = jnp.where(crosses, 1.0, 0.0).astype(share.dtype)
    latency = jnp.where(call.in_domain > 1, scale_up.nvlink_latency, 0.0)
    messages = call.ranks * (call.domains - 1)
    return Part(
        inside,
        (call.domains - 1) * share / path.gpu_rate,
        latency + hop * path.longest_hop_latency,
        hop,
        (Barrier(messages, jnp.ones_like(share), share, hop),),
    )
