"""Nested uniform (Owen) scrambling by a hash."""

import jax.numpy as jnp
from jax import Array

from fabricarlo.sampling.threefry import rotated_left, threefry2x32

RESERVED = 2**32 - 1
"""Second counter word of the key schedule: no draw of a stream has this number j."""

_HASH = (0x3D20ADEA, 0x05526C56, 0x53A22864)
_SWAPS = ((0x55555555, 1), (0x33333333, 2), (0x0F0F0F0F, 4), (0x00FF00FF, 8))


def scramble(reversed_words: Array, key: tuple[Array, Array]) -> Array:
    """Words of the nested uniform scramble that a 64-bit key chooses, for bit-reversed words.

    On the reversed word x, with key words a and c and odd multipliers b and d:

        x ^= x A;  x += a;  x *= b;  x ^= x B;  x ^= c;  x *= d;  x ^= x C;  then reverse the bits

    No step lets a bit change one below it, so points that share leading binary digits share them
    afterwards: a permutation of the elementary intervals, which keeps every net a net. Hashing the
    reversed word is from Laine and Karras, "Stratified sampling for stochastic transparency",
    Computer Graphics Forum 30, 2011, and Burley, "Practical hash-based Owen scrambling", Journal of
    Computer Graphics Techniques 9(4), 2020; the even constants A, B, C are Vegdahl's, "Building a
    better LK hash", 2021. Theirs has one 32-bit key whose lowest bit alone decides the top digit.
    Ours adds a second key word and multiplier, and draws both words by Threefry from all 64 bits.

    The variance of a scrambled net needs the flips of any two nodes to be independent over keys. No
    correlation was found (below 0.005 among the 63 upper nodes over 2^20 keys). Those of three or
    more are not quite independent (correlation up to 0.02 in the upper five levels).
    Key words broadcast against the words; the schedule costs nothing where they are [replicate, 1].
    """
    reserved = jnp.full_like(key[0], RESERVED)
    first, second = threefry2x32(key, (reserved, reserved))
    odd_first = rotated_left(second, 16) | jnp.uint32(1)
    odd_second = rotated_left(first, 16) | jnp.uint32(1)
    x = reversed_words
    x = (x ^ (x * jnp.uint32(_HASH[0]))) + first
    x = x * odd_first
    x = (x ^ (x * jnp.uint32(_HASH[1]))) ^ second
    x = x * odd_second
    x = x ^ (x * jnp.uint32(_HASH[2]))
    return bit_reversed(x)


def bit_reversed(word: Array) -> Array:
    """A uint32 word with its bits in the opposite order."""
    for mask, distance in _SWAPS:
        low, shift = jnp.uint32(mask), jnp.uint32(distance)
        word = ((word & low) << shift) | ((word >> shift) & low)
    return rotated_left(word, 16)
