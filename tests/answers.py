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


def uniform_of(upper: ArrayLike, distance: ArrayLike, dtype: DTypeLike) -> Uniform:
    """A point of (0, 1) by its nearer end and the distance to it."""
    return Uniform(jnp.asarray(upper, bool), jnp.asarray(distance, dtype))


def answer(
    question: str,
    name: str,
    given: Mapping[str, ArrayLike],
    *,
    uniforms: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
    records: Mapping[str, Any] | None = None,
    dtype: DTypeLike = np.float64,
) -> dict[str, np.ndarray]:
    """The quantities that one answer computes, evaluated in `dtype`.

    `uniforms` are (upper, distance) by slot parameter; `records` are ready-made records by
    parameter; every other parameter is built from `given`.
    """
    stage = ANSWERS[question][name]
    hints = inspect.get_annotations(stage, eval_str=True)
    hints.pop("return")
    with precision(dtype):
        arguments: dict[str, Any] = dict(records or {})
        for parameter, hint in hints.items():
            if parameter in arguments:
                continue
            if get_origin(hint) is None:
                arguments[parameter] = record_of(hint, given, dtype)
            else:
                arguments[parameter] = uniform_of(*(uniforms or {})[parameter], dtype)
        answered = jax.jit(stage)(**arguments)
        return {field: np.asarray(getattr(answered, field)) for field in quantities(type(answered))}
