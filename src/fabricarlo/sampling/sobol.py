"""Sobol' points, addressable by index."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from fabricarlo.sampling.joe_kuo import JOE_KUO

BITS = 32


def _directions(polynomial: int, initial: tuple[int, ...]) -> list[int]:
    """Direction numbers of one dimension, most significant first, as 32-bit fractions.

    Bratley and Fox, ACM Transactions on Mathematical Software 14, 88-100, 1988, equation 2.
    """
    degree = len(initial)
    if not degree:
        return [1 << (BITS - 1 - k) for k in range(BITS)]
    numbers = [m << (BITS - 1 - k) for k, m in enumerate(initial)]
    for k in range(degree, BITS):
        number = numbers[k - degree] ^ (numbers[k - degree] >> degree)
        for power in range(1, degree):
            if (polynomial >> (degree - power)) & 1:
                number ^= numbers[k - power]
        numbers.append(number)
    return numbers


DIRECTIONS: NDArray[np.uint32] = np.array([_directions(*row) for row in JOE_KUO], dtype=np.uint32)
"""Direction numbers [dimension, bit of the index], as fractions of 2^32."""


def bit_reversed(words: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Words with their 32 bits in the opposite order (on the host)."""
    shifts = np.arange(BITS, dtype=np.uint32)
    bits = (words[..., None] >> shifts) & np.uint32(1)
    return np.bitwise_or.reduce(bits << shifts[::-1], axis=-1)


_REVERSED = bit_reversed(DIRECTIONS)


def reversed_words(index: Array, dimensions: NDArray[np.integer] | Sequence[int]) -> Array:
    """Sobol' integers of the points `index`, bits reversed: uint32 [dimension, column].

        x(n) = xor of v_k over the bits k of n that are 1,  u = x 2^-32

    in natural order (SciPy's Gray-code order gives the same set at every power of two). The lowest
    bit of a reversed word is the most significant of the point, as `scramble` wants it. One of
    these words serves all replicates: run it as a program of its own, over the columns only, or
    XLA computes it again for every lane. `dimensions` are rows of `DIRECTIONS`, known beforehand.
    """
    directions = _REVERSED[np.asarray(dimensions)]
    words = jnp.zeros((len(directions), *index.shape), dtype=jnp.uint32)
    for bit in range(BITS):
        chosen = jnp.uint32(0) - ((index >> jnp.uint32(bit)) & jnp.uint32(1))
        words = words ^ (jnp.asarray(directions[:, bit, None]) & chosen[None, :])
    return words
