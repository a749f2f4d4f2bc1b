"""Polynomials in one and two coordinates, with coefficients from a table."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

Row = tuple[float, ...]
Table = tuple[Row, ...]


def along(row: Row, at: Array) -> Array:
    """Sum of row[k] at^k, by Horner's rule."""
    total = jnp.full_like(at, row[-1])
    for coefficient in reversed(row[:-1]):
        total = total * at + coefficient
    return total


def across(table: Table, first: Array, second: Array) -> Array:
    """Sum of table[j][k] first^j second^k; both coordinates in [-1, 1]."""
    total = along(table[-1], second)
    if len(table[-1]) == 1:
        total = jnp.full_like(first, table[-1][0])
    for row in reversed(table[:-1]):
        total = total * first + (row[0] if len(row) == 1 else along(row, second))
    return total


def centred(value: Array, ends: tuple[float, float]) -> Array:
    """The value on the scale on which `ends` are -1 and 1, kept inside."""
    half = 0.5 * (ends[1] - ends[0])
    return jnp.clip((value - 0.5 * (ends[0] + ends[1])) * (1.0 / half), -1.0, 1.0)


def through(table: tuple[Table, ...], first: Array, second: Array, third: Array) -> Array:
    """Sum of table[i][j][k] first^i second^j third^k; all coordinates in [-1, 1].

    A loop over the first power: written out, such a sum is one block of code that a compiler needs
    gigabytes for.
    """
    lanes = jnp.broadcast_shapes(first.shape, second.shape, third.shape)
    like = jnp.zeros(lanes, jnp.result_type(first, second, third))

    def inwards(total: Array, inner: Array) -> tuple[Array, None]:
        sum_ = like
        for row in inner[::-1]:
            term = like + row[-1]
            for coefficient in row[-2::-1]:
                term = term * third + coefficient
            sum_ = sum_ * second + term
        return total * first + sum_, None

    rows = jnp.asarray(_rectangular(table), like.dtype)
    return jax.lax.scan(inwards, like, rows[::-1])[0]


@functools.cache
def _rectangular(table: tuple[Table, ...]) -> NDArray[np.float64]:
    """The coefficients as one array, filled up with zeros."""
    wide, deep = max(map(len, table)), max(len(row) for inner in table for row in inner)
    filled = np.zeros((len(table), wide, deep))
    for i, inner in enumerate(table):
        for j, row in enumerate(inner):
            filled[i, j, : len(row)] = row
    return filled
