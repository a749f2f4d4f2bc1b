"""The counter-based generator Threefry2x32-20."""

import jax.numpy as jnp
from jax import Array

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


def rotated_left(word: Array, distance: int) -> Array:
    """A 32-bit word with its bits moved `distance` places up, the upper ones re-entering below."""
    return (word << jnp.uint32(distance)) | (word >> jnp.uint32(32 - distance))


def threefry2x32(key: tuple[Array, Array], counter: tuple[Array, Array]) -> tuple[Array, Array]:
    """Two random words of a counter under a key: Threefry2x32 with 20 rounds, elementwise.

        x1 = rotate(x1, R) xor (x0 + x1)   20 times, a key word added after every 4th

    Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC11, 2011; the
    rotations and the parity constant are those of Random123. Key and counter are uint32 and
    broadcast. For one key it is a permutation of the 2^64 counters, so two words together never
    repeat under one key.
    """
    words = (key[0], key[1], key[0] ^ key[1] ^ jnp.uint32(PARITY))
    first, second = counter[0] + words[0], counter[1] + words[1]
    for group in range(5):
        for distance in ROTATIONS[group % 2]:
            first = first + second
            second = rotated_left(second, distance) ^ first
        first = first + words[(group + 1) % 3]
        second = second + (words[(group + 2) % 3] + jnp.uint32(group + 1))
    return first, second
