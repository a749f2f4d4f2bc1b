"""The longest chain of stalls in a ring: how many of them does the last rank wait for?"""

import jax.numpy as jnp
import numpy as np
from jax import Array

from fabric_kernels.maths.chain_coefficients import CHAIN


def chain_length(stalls: Array, ranks: Array) -> Array:
    """Mean number of equal stalls on the critical path of a ring all-reduce without barrier.

        C(n) = L(n) + (n - L(n)) / N

    `stalls` n happen anywhere in the 2 (N - 1) steps of `ranks` N. L(n), about sqrt(2 n), is the
    longest chain of n random points on a cylinder of height 2 circumferences, one point after
    another if a message can get from one to the other: last-passage percolation with rare, equal
    weights (kernels/constants/chain_length.py), a monotone cubic in sqrt(n) up to 2000 points;
    beyond, its last ratio to sqrt(2 n) is kept, 1.030, which truly falls slowly to 1. (n - L) / N
    are stalls that meet in one message, where few ranks must share many.

    A mean: a single run lies around it by 0.5 to 2. Against event-level rings it is exact for
    N = 1 and n <= 1, within 7 % for 2 to 8 ranks and within 3 % beyond.
    """
    length = _longest_chain(jnp.maximum(stalls, 1.0))
    return jnp.where(stalls > 0, length + (stalls - length) / ranks, 0.0)


def _longest_chain(points: Array) -> Array:
    root = jnp.sqrt(points)
    length = _BEYOND * root
    for start, end, cubic in reversed(_CUBICS):
        step = root - start
        piece = cubic[3] * step
        for coefficient in cubic[2:0:-1]:
            piece = (piece + coefficient) * step
        length = jnp.where(root < end, piece + cubic[0], length)
    return length


def _cubics() -> list[tuple[float, float, tuple[float, ...]]]:
    """Start, end and coefficients in root - start of every piece between two knots."""
    root, length, slope = np.sqrt([c[0] for c in CHAIN]), *np.array(CHAIN).T[1:]
    width = np.diff(root)
    secant = np.diff(length) / width
    second = (3 * secant - 2 * slope[:-1] - slope[1:]) / width
    third = (slope[:-1] + slope[1:] - 2 * secant) / width**2
    rows = np.stack([length[:-1], slope[:-1], second, third], axis=1)
    return [
        (float(start), float(end), tuple(map(float, row)))
        for start, end, row in zip(root[:-1], root[1:], rows, strict=True)
    ]


_CUBICS = _cubics()
_BEYOND = CHAIN[-1][1] / CHAIN[-1][0] ** 0.5
