"""The values of a traced computation as the mirror sees them.

A value is an array of the shape that was traced, with 1 in place of the lanes: of numbers where it
is known, else of objects, each the name of an array over the lanes or a plain number.
"""

from typing import Any

import numpy as np

from bench.mirror_source import Name

Value = np.ndarray
Part = Any  # Name or a plain number
KINDS = {"f": "float", "i": "int", "u": "int", "b": "bool"}


def as_float(value: Any) -> Value:
    """A known array in the width that the mirror computes in; another value as it is."""
    value = np.asarray(value)
    kinds = {"f": np.float64, "i": np.intp, "u": np.intp, "b": np.bool_}
    return value.astype(kinds[value.dtype.kind]) if value.dtype.kind in kinds else value


def named(name: Name, shape: tuple[int, ...]) -> Value:
    """The value of one name."""
    return np.full(shape, name, object)


def parts_of(value: Value) -> list[Part]:
    """Names and plain numbers of a value, in order."""
    return value.astype(object).reshape(-1).tolist()


def is_known(value: Value) -> bool:
    """Whether a value is made of numbers alone."""
    return value.dtype != object


def kind_of(part: Part) -> str:
    """Kind of the numbers that a part stands for."""
    return part.kind if isinstance(part, Name) else KINDS[np.asarray(part).dtype.kind]


def shaped(equation: Any, x: Value) -> Value:
    """A value in another shape, by JAX's own rules."""
    parameters = equation.params
    match equation.primitive.name:
        case "broadcast_in_dim":
            shape, axes = parameters["shape"], parameters["broadcast_dimensions"]
            spread = np.ones(len(shape), int)
            spread[list(axes)] = x.shape
            return np.broadcast_to(x.reshape(spread), shape)
        case "slice":
            starts, limits = parameters["start_indices"], parameters["limit_indices"]
            steps = parameters["strides"] or [1] * x.ndim
            return x[tuple(map(slice, starts, limits, steps))]
        case "transpose":
            return x.transpose(parameters["permutation"])
        case _:
            return x.reshape(equation.outvars[0].aval.shape)
