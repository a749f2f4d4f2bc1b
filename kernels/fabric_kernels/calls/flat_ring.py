"""One flat ring over all ranks of a group."""

import jax.numpy as jnp

from fabric_kernels.calls import Call, Network, Part, no_message
from fabric_kernels.calls.inside import phases
from fabric_kernels.pattern import Ring


def flat_ring(call: Call, network: Network) -> Part:
    """One call of the ring."""
    no_message(call)
    path, scale_up = network.path, network.scale_up
    ranks, d, turns = call.ranks, call.in_domain, phases(call)
    crosses = call.domains > 1
    hops = turns * (ranks - 1)
    fabric_hops = jnp.where(crosses, turns * call.domains - jnp.floor((turns + 0.5) / d), 0.0)
    payload = call.payload * (hops / ranks)
    inside, outside = (d - 1) / scale_up.nvlink_rate, 1 / path.gpu_rate
    across = payload / d * jnp.maximum(inside, outside)
    # d rings in parallel, each with G messages across in a step
    pattern = Ring(
        ranks=ranks,
        steps=hops,
        payload=call.payload / (ranks * d),
        parallel=jnp.ones_like(hops),
        repeats=jnp.where(crosses, 1.0, 0.0).astype(hops.dtype),
        crossings=fabric_hops,
    )
    return Part(
        jnp.where(crosses, 0.0, payload / scale_up.nvlink_rate),
        jnp.where(crosses, across, 0.0),
        fabric_hops * path.hop_latency + (hops - fabric_hops) * scale_up.nvlink_latency,
        fabric_hops,
        (pattern,),
    )
