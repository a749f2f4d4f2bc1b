"""From random words to uniforms that keep both tails."""

import jax.numpy as jnp
from jax import Array
from jax.typing import DTypeLike

from fabric_kernels.uniform import DeepUniform, Uniform

EXACT = 2**24
"""Integers below it are exact in float32."""


def uniform(word: Array, *, dtype: DTypeLike = jnp.float32) -> Uniform:
    """The uniform of one 32-bit word: the top bit picks the end, 31 bits the distance from it.

        distance = (m + 1/2) 2^-32,  m = the other bits, complemented at the upper end

    The distance is the exact value rounded once, the same bits on every device. It lies on a grid
    of 2^32 points of (0, 1): nothing nearer to an end than 2^-33 occurs.
    """
    upper = word >= jnp.uint32(2**31)
    odd = (_from_the_end(word, word) << jnp.uint32(1)) | jnp.uint32(1)
    return Uniform(upper, odd.astype(dtype) * 2.0**-33)


def deep_uniform(word: Array, low_word: Array, *, dtype: DTypeLike = jnp.float32) -> DeepUniform:
    """The uniform of two 32-bit words: the top bit picks the end, 63 bits the distance from it.

        distance = (m + 1/2) 2^-64,  m = the other bits, complemented at the upper end

    In float32 the distance is the exact value rounded once below 2^-32 and above 2^-8; between
    them it is rounded twice, which moves fewer than one value in 2^20 there to the neighbour of
    the nearest float32. Nothing nearer to an end than 2^-65 occurs.
    """
    upper = word >= jnp.uint32(2**31)
    high, low = _from_the_end(word, word), _from_the_end(low_word, word)
    wide = high >= jnp.uint32(EXACT)
    if jnp.dtype(dtype).itemsize > 4:
        wide = jnp.zeros_like(wide)
    # a long upper part is rounded with its tail as a half: adding the tail later rounds twice
    whole = (high << jnp.uint32(1)) | wide.astype(jnp.uint32)
    halves = (low >> jnp.uint32(16), low & jnp.uint32(0xFFFF))
    tail = halves[0].astype(dtype) * 2.0**16 + (halves[1].astype(dtype) + 0.5)
    tail = jnp.where(wide, jnp.zeros_like(tail), tail)
    return DeepUniform(upper, whole.astype(dtype) * 2.0**-33 + tail * 2.0**-64)


def _from_the_end(part: Array, word: Array) -> Array:
    """Bits of `part` counted from the end that `word`'s top bit picks; of `word` itself, 31."""
    flip = jnp.uint32(0) - (word >> jnp.uint32(31))
    return part ^ flip
