"""Polynomials in one and two coordinates, with coefficients from a table."""

import jax.numpy as jnp
from jax import Array

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
    """Sum of table[i][j][k] first^i second^j third^k; all coordinates in [-1, 1]."""
    total = across(table[-1], second, third)
    for inner in reversed(table[:-1]):
        total = total * first + across(inner, second, third)
    return total
