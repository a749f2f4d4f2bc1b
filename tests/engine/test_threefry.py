"""Threefry2x32-20: known answers, an inverse in plain Python, avalanche, JAX's own generator."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from fabricarlo.sampling.threefry import threefry2x32

ALPHA = 1e-6
MASK = 2**32 - 1
WORD = st.integers(0, MASK)
PAIR = st.tuples(WORD, WORD)
Words = Callable[..., tuple[jax.Array, ...]]

# kat_vectors of Random123 (D. E. Shaw Research): counter, key, answer of threefry2x32 20
KNOWN_ANSWERS = [
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]

compiled = jax.jit(threefry2x32)


def answer(key: tuple[int, int], counter: tuple[int, int]) -> tuple[int, int]:
    words = compiled(*[tuple(jnp.full(1, w, jnp.uint32) for w in pair) for pair in (key, counter)])
    return int(words[0][0]), int(words[1][0])


def counter_of(key: tuple[int, int], words: tuple[int, int]) -> tuple[int, int]:
    """The inverse cipher, written from the paper's description of one round."""
    rotations = [13, 15, 26, 6, 17, 29, 16, 24]
    schedule = [key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDA]
    x, y = words
    for done in reversed(range(20)):
        if done % 4 == 3:
            injection = done // 4 + 1
            x = (x - schedule[injection % 3]) & MASK
            y = (y - schedule[(injection + 1) % 3] - injection) & MASK
        y ^= x
        r = rotations[done % 8]
        y = ((y >> r) | (y << (32 - r))) & MASK
        x = (x - y) & MASK
    return (x - schedule[0]) & MASK, (y - schedule[1]) & MASK


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN_ANSWERS)
def test_known_answers_of_random123(
    counter: tuple[int, int], key: tuple[int, int], words: tuple[int, int]
) -> None:
    assert answer(key, counter) == words


@given(key=PAIR, counter=PAIR)
def test_is_undone_by_the_inverse_cipher(key: tuple[int, int], counter: tuple[int, int]) -> None:
    # a two-sided proof: the right function, and a permutation of the counters
    assert counter_of(key, answer(key, counter)) == counter


@pytest.mark.parametrize("seed", [0, 1, 2**31 + 5])
def test_agrees_with_the_generator_inside_jax(seed: int) -> None:
    # jax.random folds both words of counter (0, i) under the key (0, seed) into one
    theirs = jax.random.bits(jax.random.key(seed, impl="threefry2x32"), (64,))
    i = jnp.arange(64, dtype=jnp.uint32)
    first, second = compiled((jnp.uint32(0), jnp.uint32(seed)), (jnp.zeros_like(i), i))
    np.testing.assert_array_equal(np.asarray(theirs), np.asarray(first ^ second))


def flips(words: Words, inputs: NDArray[np.uint32]) -> NDArray[np.int64]:
    """How often each of the 64 output bits changes with each of the 128 input bits."""
    run = jax.jit(words)
    base = np.stack(run(*inputs))
    counts = np.empty((128, 64), dtype=np.int64)
    for bit in range(128):
        changed = inputs.copy()
        changed[bit // 32] ^= np.uint32(1 << (bit % 32))
        difference = np.stack(run(*changed)) ^ base
        bits = (difference[:, None, :] >> np.arange(32, dtype=np.uint32)[:, None]) & 1
        counts[bit] = bits.sum(axis=-1).ravel()
    return counts


def assert_avalanche(words: Words) -> None:
    """Every input bit changes every output bit half of the time: binomial, 8192 cells together."""
    inputs = np.random.default_rng(11).integers(0, 2**32, (4, 4096), dtype=np.uint32)
    counts = flips(words, inputs)
    law = stats.binom(inputs.shape[1], 0.5)
    worst = min(law.cdf(counts.min()), law.sf(counts.max() - 1)) * 2 * counts.size
    assert worst > ALPHA, f"bit flips from {counts.min()} to {counts.max()} of {inputs.shape[1]}"


def ours(k0: jax.Array, k1: jax.Array, c0: jax.Array, c1: jax.Array) -> tuple[jax.Array, ...]:
    return threefry2x32((k0, k1), (c0, c1))


def pcg4d(k0: jax.Array, k1: jax.Array, c0: jax.Array, c1: jax.Array) -> tuple[jax.Array, ...]:
    """Jarzynski and Olano 2020: four words, a linear congruence and two rounds of products."""
    words = [w * jnp.uint32(1664525) + jnp.uint32(1013904223) for w in (c0, c1, k0, k1)]
    for last in (False, True):
        for target, left, right in ((0, 1, 3), (1, 2, 0), (2, 0, 1), (3, 1, 2)):
            words[target] = words[target] + words[left] * words[right]
        words = words if last else [w ^ (w >> jnp.uint32(16)) for w in words]
    return words[0], words[1]


def test_every_input_bit_reaches_every_output_bit() -> None:
    assert_avalanche(ours)


def test_the_avalanche_check_sees_pcg4d() -> None:
    with pytest.raises(AssertionError, match="bit flips"):
        assert_avalanche(pcg4d)
