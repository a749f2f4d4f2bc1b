"""Call an answer of the catalogue on plain numbers, as a model would."""

import inspect
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, get_origin

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from fabric_kernels.catalogue import ANSWERS
from fabric_kernels.collective import Collective
from fabric_kernels.errors import Errors, MarginalPaths
from fabric_kernels.expert import Expert
from fabric_kernels.operation import Operation
from fabric_kernels.operation.gradients import Replicated
from fabric_kernels.pattern import Barrier, Doubling, Line, Pattern, Ring, Traffic, Tree
from fabric_kernels.pipeline import Pipeline
from fabric_kernels.quantity import has_structure, quantities
from fabric_kernels.uniform import Uniform
from fabric_kernels.workload import Message, Workload


def precision(dtype: DTypeLike) -> AbstractContextManager[None]:
    """Within it, JAX keeps numbers of this type as they are."""
    return jax.enable_x64(np.dtype(dtype) == np.float64)


PATH: Mapping[str, float] = dict.fromkeys(
    (
        "longest_hop_latency", "switch_hops", "path_length", "network_switches", "network_links",
        "bisection_fraction",
    ),
    1.0,
)  # fmt: skip
"""Numbers of a path for answers that only look at its rate and its hops."""

CLEAN: Mapping[str, float] = {
    n: 0.0 for kind in (Collective, Expert, Pipeline) for n in quantities(kind)
}
"""Times of exchanges for answers that only look at their traffic."""


def record_of(
    kind: type, given: Mapping[str, ArrayLike], dtype: DTypeLike, traffic: Traffic | None = None
) -> Any:
    """A record of lanes from numbers by name; a quantity without a number takes its default.

    A workload has one message, its payload over its data-parallel ranks, which stand
    tensor_parallel apart; an operation is the all-reduce. An exchange sends `traffic`, of plain
    numbers, or nothing. Paths are marginal where a number of marginal links is given.
    """
    if kind is Operation:
        return Replicated()
    values: dict[str, Any] = {}
    for name, declared in quantities(kind).items():
        value = given.get(name, declared.default)
        assert value is not None, f"{kind.__name__}.{name} has no default: give a number"
        values[name] = jnp.asarray(value, dtype)
    if kind is Workload:
        one, apart = jnp.ones((), dtype), jnp.asarray(given.get("tensor_parallel", 1), dtype)
        values["messages"] = (Message(one, one, apart),)
    elif kind is Errors:
        rate, number = values["marginal_path_loss_rate"], values["marginal_links"]
        marginal = np.any(given.get("marginal_links", 0))
        values["marginal"] = (MarginalPaths(rate, number),) if marginal else ()
    elif has_structure(kind):
        made = jax.tree.map(lambda number: jnp.asarray(number, dtype), traffic)
        values["traffic"] = () if traffic is None else (made,)
    return kind(**values)


def hop_noise(name: str, given: Mapping[str, ArrayLike], dtype: DTypeLike) -> Any:
    """The hop noise that the law of this name makes of its quantities."""
    stage = ANSWERS["noise"][name]
    [kind] = (v for k, v in inspect.get_annotations(stage, eval_str=True).items() if k != "return")
    return stage(record_of(kind, given, dtype))


def _arguments(
    stage: Any,
    given: Mapping[str, ArrayLike],
    uniforms: Mapping[str, tuple[ArrayLike, ArrayLike]],
    records: Mapping[str, Any],
    traffic: Mapping[str, Traffic],
    dtype: DTypeLike,
) -> dict[str, Any]:
    """Every parameter of the stage, from ready-made records, uniforms or numbers by name."""
    hints = inspect.get_annotations(stage, eval_str=True)
    hints.pop("return")
    arguments: dict[str, Any] = {}
    for parameter, hint in hints.items():
        if parameter in records:
            arguments[parameter] = records[parameter]
        elif get_origin(hint) is None:
            arguments[parameter] = record_of(hint, given, dtype, traffic.get(parameter))
        else:
            upper, distance = uniforms[parameter]
            arguments[parameter] = Uniform(jnp.asarray(upper, bool), jnp.asarray(distance, dtype))
    return arguments


def answer(
    question: str,
    name: str,
    given: Mapping[str, ArrayLike],
    *,
    uniforms: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
    records: Mapping[str, Any] | None = None,
    traffic: Mapping[str, Traffic] | None = None,
    dtype: DTypeLike = np.float64,
) -> dict[str, np.ndarray]:
    """The quantities that one answer computes, evaluated in `dtype` on equal lanes.

    `uniforms` are (upper, distance) by slot parameter; `records` are ready-made records by
    parameter; every other parameter is built from `given`, an exchange with the `traffic` of its
    parameter. Lanes are padded to few sizes, so that a test file compiles an answer once or twice.
    """
    made = answered(
        question, name, given, uniforms=uniforms, records=records, traffic=traffic, dtype=dtype
    )
    return {f: np.asarray(getattr(made, f)) for f in quantities(type(made))}


def messages_of(made: Any) -> tuple[np.ndarray, np.ndarray]:
    """Messages across the fabric of one group in a step, and their bytes, of a record's traffic."""
    counted, carried = np.zeros(()), np.zeros(())
    for traffic in made.traffic:
        for pattern in traffic.patterns:
            messages = _messages(pattern) * pattern.repeats
            counted = counted + messages
            carried = carried + messages * pattern.payload
    return counted, carried


def _messages(pattern: Pattern) -> Any:
    match pattern:
        case Ring():
            return pattern.steps * pattern.ranks * pattern.parallel
        case Tree():
            edges = (pattern.ranks - 1) * pattern.legs * pattern.trees
            return edges * pattern.chunks * pattern.parallel
        case Doubling():
            return pattern.levels * pattern.ranks * pattern.parallel
        case Barrier():
            return pattern.messages * pattern.rounds
        case Line():
            return pattern.hops


def answered(
    question: str,
    name: str,
    given: Mapping[str, ArrayLike],
    *,
    uniforms: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
    records: Mapping[str, Any] | None = None,
    traffic: Mapping[str, Traffic] | None = None,
    dtype: DTypeLike = np.float64,
) -> Any:
    """The record that one answer gives, structures included, as NumPy arrays; see `answer`."""
    stage = ANSWERS[question][name]
    with precision(dtype):
        arguments = _arguments(stage, given, uniforms or {}, records or {}, traffic or {}, dtype)
        shape = np.broadcast_shapes(*(leaf.shape for leaf in jax.tree.leaves(arguments)))
        lanes = int(np.prod(shape))
        padding = (0, (256 if lanes <= 256 else 1024) - lanes)

        def padded(leaf: Any) -> Any:
            flat = np.broadcast_to(np.asarray(leaf), shape).ravel()
            return jnp.asarray(np.pad(flat, padding, mode="edge"))

        made = jax.jit(stage)(**jax.tree.map(padded, arguments))
        return jax.tree.map(lambda leaf: np.asarray(leaf)[:lanes].reshape(shape), made)
