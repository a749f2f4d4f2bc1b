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
from fabric_kernels.quantity import quantities
from fabric_kernels.uniform import Uniform


def precision(dtype: DTypeLike) -> AbstractContextManager[None]:
    """Within it, JAX keeps numbers of this type as they are."""
    return jax.enable_x64(np.dtype(dtype) == np.float64)


def record_of(kind: type, given: Mapping[str, ArrayLike], dtype: DTypeLike) -> Any:
    """A record of lanes from numbers by name; a quantity without a number takes its default."""
    values = {}
    for name, declared in quantities(kind).items():
        value = given.get(name, declared.default)
        assert value is not None, f"{kind.__name__}.{name} has no default: give a number"
        values[name] = jnp.asarray(value, dtype)
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
            arguments[parameter] = record_of(hint, given, dtype)
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
    dtype: DTypeLike = np.float64,
) -> dict[str, np.ndarray]:
    """The quantities that one answer computes, evaluated in `dtype` on equal lanes.

    `uniforms` are (upper, distance) by slot parameter; `records` are ready-made records by
    parameter; every other parameter is built from `given`. Lanes are padded to few sizes, so that
    a test file compiles an answer once or twice.
    """
    stage = ANSWERS[question][name]
    with precision(dtype):
        arguments = _arguments(stage, given, uniforms or {}, records or {}, dtype)
        shape = np.broadcast_shapes(*(leaf.shape for leaf in jax.tree.leaves(arguments)))
        lanes = int(np.prod(shape))
        padding = (0, (256 if lanes <= 256 else 1024) - lanes)

        def padded(leaf: Any) -> Any:
            flat = np.broadcast_to(np.asarray(leaf), shape).ravel()
            return jnp.asarray(np.pad(flat, padding, mode="edge"))

        made = jax.jit(stage)(**jax.tree.map(padded, arguments))
        fields = quantities(type(made))
        return {f: np.asarray(getattr(made, f))[:lanes].reshape(shape) for f in fields}
