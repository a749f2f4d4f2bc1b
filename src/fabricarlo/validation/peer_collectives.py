"""Collectives of other tools, expressed in the inputs of the product's kernels."""

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp

from fabric_kernels.collective import Collective
from fabric_kernels.collective import hierarchical as staged
from fabric_kernels.collective import ring as flat
from fabric_kernels.collective.seed_document import seed_document, seed_document_as_written
from fabric_kernels.operation import Operation
from fabric_kernels.operation.gradients import replicated
from fabric_kernels.operation.single import all_gather, reduce_scatter
from fabric_kernels.quantity import quantities
from fabric_kernels.workload import Message, Workload
from fabricarlo.nccl_tests import bus_factor
from fabricarlo.validation.peer_inputs import Inputs, NotModelledError

Stage = Callable[..., Collective]

OPERATIONS = {
    "all_reduce_time": replicated(),
    "all_gather_time": all_gather(),
    "reduce_scatter_time": reduce_scatter(),
}
ALL_REDUCE = OPERATIONS["all_reduce_time"]
BILLION = 1e9
GIB = 2.0**30
TABULATED = 2.0**20
"""SimAI takes messages below this size from a table instead of its formula."""


ALONE = {
    # a fabric of one tier whose switches add at once; a domain of one rank
    "fabric_tiers": 1.0,
    "fabric_reduction": 1.0,
    "fabric_reduction_latency": 0.0,
    "nvlink_domain": 1.0,
    "nvlink_rate": BILLION,
    "nvlink_latency": 0.0,
    "concurrent_groups": 1.0,
}
"""What a case of a flat network leaves out."""


def seconds(stage: Stage, operation: Operation, given: Mapping[str, float]) -> float:
    """Time of one call of a collective on an empty fabric.

    `given` holds payload, data_parallel (its ranks), hop_latency, gpu_rate and what else the stage
    needs and ALONE does not give.
    """
    far = {"longest_hop_latency": given["hop_latency"]}
    hints = inspect.get_annotations(stage, eval_str=True)
    records = {
        name: operation if hint is Operation else record_of(hint, {**ALONE, **far, **given})
        for name, hint in hints.items()
        if name != "return"
    }
    found = stage(**records)
    return float(found.nvlink_transfer_time + found.fabric_transfer_time + found.exchange_latency)


def record_of(kind: type, given: Mapping[str, float]) -> Any:
    """A record of single numbers; what is neither given nor has a default is NaN.

    So a result that depends on a number that the case does not give is no number either.
    """
    fields: dict[str, Any] = {
        name: jnp.asarray(given.get(name, math.nan if q.default is None else q.default))
        for name, q in quantities(kind).items()
    }
    if kind is Workload:
        one = jnp.asarray(1.0)  # one kind of group, which has the whole payload to itself
        fields["messages"] = (Message(share=one, held=one, spacing=one),)
    return kind(**fields)


def _operation(quantity: str) -> Operation:
    if quantity not in OPERATIONS:
        raise NotModelledError(f"{quantity} is no time of a collective here")
    return OPERATIONS[quantity]


def _flat_ring(
    operation: Operation, payload: float, ranks: float, rate: float, hop: float
) -> float:
    """A ring of ranks that all stand alone: every hop crosses the fabric."""
    given = {"payload": payload, "data_parallel": ranks, "gpu_rate": rate, "hop_latency": hop}
    return seconds(flat.ring, operation, given)


def ring(inputs: Inputs, quantity: str) -> float:
    """Alpha-beta ring: bytes, ranks, GBps (decimal), alpha_us."""
    return _flat_ring(
        _operation(quantity),
        inputs.number("bytes"),
        inputs.number("ranks"),
        inputs.number("GBps") * BILLION,
        inputs.number("alpha_us") * 1e-6,
    )


def hierarchical(inputs: Inputs, quantity: str) -> float:
    """Ring inside every node, ring of the nodes on every rail."""
    nodes, in_node = inputs.number("nodes"), inputs.number("gpus_per_node")
    given = {
        "payload": inputs.number("bytes"),
        "data_parallel": nodes * in_node,
        "nvlink_domain": in_node,
        "nvlink_rate": inputs.number("intra_GBps") * BILLION,
        "nvlink_latency": inputs.number("intra_alpha_us") * 1e-6,
        "gpu_rate": inputs.number("inter_GBps") * BILLION,
        "hop_latency": inputs.number("inter_alpha_us") * 1e-6,
    }
    return seconds(staged.hierarchical, _operation(quantity), given)


def one_latency(inputs: Inputs, quantity: str) -> float:
    """latency + bytes x scalar (1 + offset/n) / rate, with one latency whatever the ranks.

    A scalar of 1 without offset is the fabric that adds (`sharp`); (1 - 1/n) once or twice is a
    ring whose hops together cost the one latency.
    """
    operation, ranks = _operation(quantity), inputs.number("ranks")
    payload, latency = inputs.number("bytes"), inputs.number("latency_s")
    rate = inputs.number("GBps") * BILLION * inputs.number("efficiency", 1.0)
    shape = (inputs.number("scalar", 1.0), inputs.number("offset", 0.0))
    if operation == ALL_REDUCE and shape == (1.0, 0.0):
        given = {"payload": payload, "data_parallel": ranks}
        return seconds(staged.sharp, operation, given | {"gpu_rate": rate, "hop_latency": latency})
    if shape == (2.0 if operation == ALL_REDUCE else 1.0, -1.0):
        steps = shape[0] * (ranks - 1)
        return _flat_ring(operation, payload, ranks, rate, latency / max(steps, 1.0))
    raise NotModelledError(
        f"no answer moves {shape[0]:g} (1 {shape[1]:+g}/n) of the payload in {quantity}"
    )


def log_gops_ring(inputs: Inputs, quantity: str) -> float:
    """Ring all-reduce of eager messages under LogGOPS: every step costs 2 o + L + (s - 1) G.

    The kernel's hop costs 2 o + L - G, and its rate is 1/G. Where the gap g between two messages
    of a rank is longer than a step it would set the pace, which no kernel here knows.
    """
    if quantity != "makespan":
        raise NotModelledError(f"{quantity} is no makespan")
    inputs.only("O", 0)
    inputs.only("eager", allowed=True)
    ranks, payload = inputs.number("ranks"), inputs.number("bytes")
    gap_per_byte = inputs.number("G_ns_per_B") * 1e-9
    hop = (2 * inputs.number("o_ns") + inputs.number("L_ns")) * 1e-9 - gap_per_byte
    if inputs.number("g_ns", 0.0) * 1e-9 > hop + payload / ranks * gap_per_byte:
        raise NotModelledError("the gap between messages is longer than a step of the ring")
    if gap_per_byte == 0:
        raise NotModelledError("bytes that cost nothing: a rate without bound")
    return _flat_ring(ALL_REDUCE, payload, ranks, 1 / gap_per_byte, hop)


def simai(inputs: Inputs, quantity: str) -> float:
    """Ring without latency over the NIC of a GPU; that tool's GB is 2^30 B."""
    payload, rails = inputs.number("bytes"), inputs.number("nics_per_server")
    if payload < TABULATED:
        raise NotModelledError("messages below 1 MiB are a table by ranks in that tool")
    if inputs.number("tp") != rails:
        raise NotModelledError("only one NIC for each data-parallel group of a server is modelled")
    rate = inputs.number("nic_GBps")
    if inputs.number("nvlink_GBps") < rate:
        raise NotModelledError("NVLink slower than the NIC")
    inputs.number("gpus")
    return _flat_ring(_operation(quantity), payload, inputs.number("dp_ranks"), rate * GIB, 0.0)


def _seed(inputs: Inputs, *, as_written: bool) -> float:
    element = inputs.number("bytes_per_param", 2.0)
    ranks = inputs.number("gpus")
    payload = inputs.number("params_b") * BILLION * element
    rate = inputs.number("gbps") * BILLION / 8
    hop = inputs.number("latency_us") * 1e-6
    steps = inputs.text("latency_steps", "log2(n)")
    if steps in ("2(n-1)", "2*(n-1)", "ring") and not as_written:
        return _flat_ring(ALL_REDUCE, payload, ranks, rate, hop)
    if steps != "log2(n)":
        raise NotModelledError(f"latency of {steps} steps is of no answer")
    stage = seed_document_as_written if as_written else seed_document
    given = {"data_parallel": ranks, "payload": payload, "link_rate": rate, "hop_latency": hop}
    return seconds(stage, ALL_REDUCE, given)


def seed(inputs: Inputs, quantity: str) -> float:
    """The seed document's formula with its units put right."""
    return _seed(inputs, as_written=False)


def seed_as_written(inputs: Inputs, quantity: str) -> float:
    """The seed document's formula as it was printed."""
    return _seed(inputs, as_written=True)


def bus_bandwidth(inputs: Inputs, quantity: str) -> float:
    """busbw of a measured time, as nccl-tests defines it."""
    if quantity != "bus_bandwidth":
        raise NotModelledError(f"a measurement has no {quantity} that could be computed")
    inputs.text("algo", "")
    operation = inputs.text("collective", "all_reduce")
    rate = inputs.number("bytes") / (inputs.number("time_us") * 1e-6)
    return rate * bus_factor(operation, inputs.number("ranks"))
