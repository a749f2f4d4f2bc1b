"""NCCL's own predictions, in the inputs of the product's copy of its cost model."""

import jax.numpy as jnp

from fabric_kernels.collective.nccl_model import Able, Channels, Group, cost
from fabric_kernels.inputs import CollectiveLibrary
from fabric_kernels.inputs.library import PROCESSORS
from fabricarlo.validation.peer_collectives import BILLION, record_of
from fabricarlo.validation.peer_inputs import Inputs, NotModelledError

ALGORITHMS = {
    "ring": "ring",
    "tree": "double_binary_tree",
    "collnetdirect": "collnet_direct",
    "collnetchain": "collnet_chain",
    "nvls": "nvls",
    "nvlstree": "nvls_tree",
    "pat": "pat",
}
"""NCCL's names of algorithms, in small letters without underscores, and ours."""
PROTOCOLS = {"simple": "simple", "ll": "ll", "ll128": "ll128"}
GENERATIONS = ((100, "blackwell"), (90, "hopper"), (80, "ampere"), (70, "volta"))
"""Least compute capability, times ten, of each generation."""


def time(inputs: Inputs, quantity: str) -> float:
    """Time that NCCL predicts for one collective call, in s.

    With an algorithm and a protocol it is theirs; without, that of NCCL's choice.
    """
    operation = quantity.removesuffix("_time")
    if operation not in ("all_reduce", "all_gather", "reduce_scatter") or operation == quantity:
        raise NotModelledError(f"NCCL has no cost model for {quantity}")
    channels = inputs.number("channels")
    library = record_of(
        CollectiveLibrary,
        {
            "gpu_generation": float(_generation(inputs.number("compcap"))),
            "host_processor": float(_processor(inputs.text("cpu", PROCESSORS[0]))),
            "library_channels": channels,
            "network_overhead": inputs.number("net_overhead_us", 1.0) * 1e-6,
            "network_plugin_latency": inputs.number("latency_inter_us", 0.0) * 1e-6,
            "ring_step_rule": _rule(inputs.text("n_inter_steps", "2*(nNodes-1)")),
        },
    )
    group = (inputs.number("bytes"), inputs.number("nodes"), inputs.number("gpus_per_node"))
    able = jnp.asarray(1.0)
    found = cost(
        operation,
        Group(*(jnp.asarray(value) for value in group)),
        _channels(inputs),
        Able(nvlink=able, fabric=able),
        library,
        **_restricted(inputs),
    )
    seconds = float(found.time)
    if not 0 <= seconds < float("inf"):
        raise NotModelledError("NCCL does not consider this algorithm and protocol here")
    return seconds


def _channels(inputs: Inputs) -> Channels:
    """Rates of a channel: one for all, or inside and between nodes apart."""
    both = inputs.number("bw_per_channel_GBps", 0.0)
    inside = inputs.number("bw_intra_per_channel_GBps", both)
    across = inputs.number("bw_inter_per_channel_GBps", both)
    if not inside or not across:
        raise NotModelledError("the case does not give bw_per_channel_GBps")
    rates = [jnp.asarray(rate * BILLION) for rate in (inside, across)]
    return Channels(inside=rates[0], across=rates[1], multicast=rates[0])


def _restricted(inputs: Inputs) -> dict[str, tuple[str, ...]]:
    """NCCL_ALGO and NCCL_PROTO of the case."""
    found = {}
    for name, place, known in (
        ("algo", "algorithms", ALGORITHMS),
        ("proto", "protocols", PROTOCOLS),
    ):
        word = inputs.text(name, "").lower().replace("_", "")
        if word and word not in known:
            raise NotModelledError(f"{name} {word} is none of {', '.join(known)}")
        if word:
            found[place] = (known[word],)
    return found


def _generation(capability: float) -> int:
    names = [name for _, name in reversed(GENERATIONS)]
    for least, name in GENERATIONS:
        if capability >= least:
            return names.index(name)
    raise NotModelledError(f"compute capability {capability:g} is before Volta")


def _processor(name: str) -> int:
    if name.lower() not in PROCESSORS:
        raise NotModelledError(f"cpu {name} is none of {', '.join(PROCESSORS)}")
    return PROCESSORS.index(name.lower())


def _rule(text: str) -> float:
    """0 for 2 (N - 1) steps across the network, since NCCL 2.23.4; 1 for 2 N before."""
    plain = text.replace(" ", "").lower()
    if plain.startswith("2*(nnodes-1)"):
        return 0.0
    if plain.startswith("2*nnodes"):
        return 1.0
    raise NotModelledError(f"n_inter_steps {text} is no rule of NCCL")
