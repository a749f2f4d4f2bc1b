"""The part of a hierarchical collective inside the NVLink domain."""

import jax.numpy as jnp
from jax import Array

from fabric_kernels.calls import Call, Network, Part
from fabric_kernels.operation import ALL_REDUCE
from fabric_kernels.pattern import Pattern


def _inside(transfer: Array, latency: Array) -> Part:
    none: tuple[Pattern, ...] = ()
    return Part(transfer, jnp.zeros_like(transfer), latency, jnp.zeros_like(transfer), none)


def phases(call: Call) -> int:
    """2 for an all-reduce, which reduces and then gathers; 1 for either alone."""
    return 2 if call.operation == ALL_REDUCE else 1


def ring_inside(call: Call, network: Network) -> Part:
    """A ring of the d ranks of a domain, once for each phase.

        transfer = phases (d - 1) / d x payload / nvlink_rate
        latency = phases (d - 1) nvlink_latency

    Patarasuk and Yuan, J. Parallel and Distributed Computing 69(2), 2009.
    """
    scale_up = network.scale_up
    steps = phases(call) * (call.in_domain - 1)
    chunk = call.payload / call.in_domain
    return _inside(steps * chunk / scale_up.nvlink_rate, steps * scale_up.nvlink_latency)


def doubling_inside(call: Call, network: Network) -> Part:
    """Halving and doubling among the d ranks of a domain: log2(d) hops for each phase.

        transfer = phases (d - 1) / d x payload / nvlink_rate
        latency = phases log2(d) nvlink_latency

    As `doubling_across`; NaN where d is not a power of two, whose fold would cost as much again.
    """
    scale_up = network.scale_up
    levels = jnp.round(jnp.log2(call.in_domain))
    whole = jnp.round(jnp.exp2(levels)) == call.in_domain
    steps = phases(call) * (call.in_domain - 1)
    transfer = steps * (call.payload / call.in_domain) / scale_up.nvlink_rate
    latency = phases(call) * levels * scale_up.nvlink_latency
    return _inside(transfer, jnp.where(whole, latency, jnp.nan))


def nvls_inside(call: Call, network: Network) -> Part:
    """The NVLink switch adds and multicasts (NVLink SHARP).

        transfer = (1 + 1 / d) x payload / (efficiency nvlink_rate)       (all-reduce)
        transfer = payload / (efficiency nvlink_rate)                     (one phase alone)
        latency = phases nvlink_latency x 2                               (up and down)

    Each GPU sends its whole payload to be added and its d-th share to be multicast (Klenk et al.,
    ISCA'20, section 4); it gets as much in return. A phase alone fills one direction of the port
    with the whole payload. NaN where the switches cannot add.
    """
    scale_up, reduction = network.scale_up, network.reduction
    alone = call.in_domain <= 1
    able = reduction.nvlink_reduction > 0.5
    rate = scale_up.nvlink_rate * reduction.nvlink_reduction_efficiency
    share = call.payload / call.in_domain
    bytes_ = call.payload + share if phases(call) > 1 else call.payload
    latency = 2 * phases(call) * scale_up.nvlink_latency
    times = [jnp.where(alone, 0.0, jnp.where(able, t, jnp.nan)) for t in (bytes_ / rate, latency)]
    return _inside(times[0], times[1])
