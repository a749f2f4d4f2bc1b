"""The fastest collective that applies."""

import jax.numpy as jnp
from jax import Array

from fabric_kernels.calls import Call, Network, Part, PartOf, chosen_patterns
from fabric_kernels.calls.flat_ring import flat_ring
from fabric_kernels.calls.staged import STAGED
from fabric_kernels.calls.straight import in_rounds, straight
from fabric_kernels.calls.tree import chained_tree, doubled
from fabric_kernels.collective import ALGORITHMS, Collective
from fabric_kernels.collective.exchange import Chosen, exchange
from fabric_kernels.inputs import Overlap, Reduction, ScaleUp
from fabric_kernels.model import ModelError
from fabric_kernels.operation import Operation
from fabric_kernels.path import Path
from fabric_kernels.workload import Workload

CANDIDATES: dict[str, PartOf] = {
    "ring": flat_ring,
    "double_binary_tree": chained_tree,
    "recursive_halving_doubling": doubled,
    **STAGED,
    "direct": straight,
    "pairwise": in_rounds,
}
"""One call of every algorithm, by name."""


def auto(
    operation: Operation,
    workload: Workload,
    overlap: Overlap,
    path: Path,
    scale_up: ScaleUp,
    reduction: Reduction,
) -> Collective:
    """The algorithm with the least transfer and latency, chosen for every call and sample.

    Chosen before congestion, jitter and loss, as a library chooses from its own table; what needs
    switches that add takes part where they can. collective_algorithm is that of the first call.
    """
    network = Network(path, scale_up, reduction)
    return exchange("auto", fastest, operation, workload, overlap, network)


def fastest(call: Call, network: Network) -> Chosen:
    """The fastest algorithm of one call; the patterns of the others never happen."""
    parts = {name: part for name in CANDIDATES if (part := _applied(name, call, network))}
    times = {n: p.nvlink_transfer + p.fabric_transfer + p.latency for n, p in parts.items()}
    names = list(parts)
    best, code = times[names[0]], jnp.full_like(times[names[0]], ALGORITHMS.index(names[0]))
    for name in names[1:]:
        # not a number where it cannot be used: never less
        better = (times[name] < best) | (jnp.isnan(best) & ~jnp.isnan(times[name]))
        best = jnp.where(better, times[name], best)
        code = jnp.where(better, float(ALGORITHMS.index(name)), code)
    return Chosen(_of_code(parts, code), code, jnp.zeros_like(code))


def _applied(name: str, call: Call, network: Network) -> Part | None:
    try:
        return CANDIDATES[name](call._replace(algorithm=name), network)
    except ModelError:
        return None


def _of_code(parts: dict[str, Part], code: Array) -> Part:
    choices = {name: code == ALGORITHMS.index(name) for name in parts}
    first, *others = parts
    values = list(parts[first][:4])
    for name in others:
        pairs = zip(parts[name][:4], values, strict=True)
        values = [jnp.where(choices[name], new, old) for new, old in pairs]
    patterns = chosen_patterns([(choices[name], part.patterns) for name, part in parts.items()])
    return Part(values[0], values[1], values[2], values[3], patterns)
