"""Random words in plain Python integers: slow, and written from the definitions.

Threefry-2x32-20 (Salmon et al., SC'11), Sobol' points in natural order from SciPy's table of
Joe-Kuo direction numbers, nested uniform (Owen) scrambling as a binary tree, and the exact number
that a word stands for.
"""

import hashlib
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from importlib import resources

import numpy as np

_MASK = 0xFFFFFFFF
_ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
_PARITY = 0x1BD11BDA


def threefry(key: tuple[int, int], counter: tuple[int, int]) -> tuple[int, int]:
    """Threefry-2x32 with 20 rounds; the key is injected after every fourth round."""
    schedule = (key[0], key[1], _PARITY ^ key[0] ^ key[1])
    left, right = (counter[0] + key[0]) & _MASK, (counter[1] + key[1]) & _MASK
    for turn in range(20):
        left = (left + right) & _MASK
        shift = _ROTATIONS[turn % 8]
        right = ((right << shift | right >> (32 - shift)) & _MASK) ^ left
        if turn % 4 == 3:
            injection = turn // 4 + 1
            left = (left + schedule[injection % 3]) & _MASK
            right = (right + schedule[(injection + 1) % 3] + injection) & _MASK
    return left, right


def stream_key(seed: int, stream: str, replicate: int, high: int) -> tuple[int, int]:
    """Two key words: the first 8 bytes of SHA-256 of ``1/seed/stream/replicate/high``."""
    digest = hashlib.sha256(f"1/{seed}/{stream}/{replicate}/{high}".encode()).digest()
    return int.from_bytes(digest[:4], "big"), int.from_bytes(digest[4:8], "big")


@lru_cache
def direction_numbers(dimension: int) -> tuple[int, ...]:
    """The 32 direction numbers of a Sobol' dimension, the first with only the top bit set.

    m_k = 2 a_1 m_(k-1) ^ 4 a_2 m_(k-2) ^ ... ^ 2^s m_(k-s) ^ m_(k-s), v_k = m_k 2^(32-k).
    """
    file = resources.files("scipy.stats") / "_sobol_direction_numbers.npz"
    with file.open("rb") as stream, np.load(stream) as table:
        polynomial = int(table["poly"][dimension])
        initial = [int(m) for m in table["vinit"][dimension]]
    if dimension == 0:
        return tuple(1 << (31 - k) for k in range(32))
    degree = polynomial.bit_length() - 1
    numbers = initial[:degree]
    for k in range(degree, 32):
        value = numbers[k - degree] ^ (numbers[k - degree] << degree)
        for i in range(1, degree):
            if polynomial >> (degree - i) & 1:
                value ^= numbers[k - i] << i
        numbers.append(value)
    return tuple(m << (31 - k) for k, m in enumerate(numbers))


def sobol(index: int, dimension: int) -> int:
    """The Sobol' integer of this index in natural order: bit k of the index takes v_(k+1)."""
    word = 0
    for k, direction in enumerate(direction_numbers(dimension)):
        if index >> k & 1:
            word ^= direction
    return word


def nested_scramble(words: Sequence[int], generator: np.random.Generator) -> list[int]:
    """Nested uniform scramble: every node of the binary tree of prefixes owns one random flip.

    A word is walked from its top bit down; each bit is flipped as the node of the unscrambled
    bits before it says.
    """
    flips: dict[tuple[int, int], int] = {}
    scrambled = []
    for word in words:
        out = 0
        for depth in range(32):
            node = (depth, word >> (32 - depth))
            if node not in flips:
                flips[node] = int(generator.integers(2))
            out = out << 1 | (word >> (31 - depth) & 1) ^ flips[node]
        scrambled.append(out)
    return scrambled


def tree_flips(words: Sequence[int], scrambled: Sequence[int]) -> dict[tuple[int, int], int]:
    """The flip of every node that these words visit; ValueError if two words contradict.

    A map of words is a nested scramble exactly if such a tree exists.
    """
    flips: dict[tuple[int, int], int] = {}
    for before, after in zip(words, scrambled, strict=True):
        for depth in range(32):
            node = (depth, before >> (32 - depth))
            flip = (before ^ after) >> (31 - depth) & 1
            if flips.setdefault(node, flip) != flip:
                raise ValueError(f"node {node} flips both ways: no nested scramble")
    return flips


def uniform(word: int) -> tuple[bool, Fraction]:
    """(end, distance) of a 32-bit word: the top bit picks the end, 31 bits the distance."""
    upper = bool(word >> 31)
    bits = (~word if upper else word) & 0x7FFFFFFF
    return upper, (bits + Fraction(1, 2)) / 2**32


def deep_uniform(word: int, low_word: int) -> tuple[bool, Fraction]:
    """(end, distance) of two words: the top bit picks the end, 63 bits the distance."""
    upper = bool(word >> 31)
    both = word << 32 | low_word
    bits = (~both if upper else both) & (2**63 - 1)
    return upper, (bits + Fraction(1, 2)) / 2**64
