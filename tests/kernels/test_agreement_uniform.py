"""Random words and uniforms of the engine against plain Python integers and fractions."""

from collections.abc import Callable
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from fabricarlo.sampling.addresses import stream_key
from fabricarlo.sampling.scramble import bit_reversed, scramble
from fabricarlo.sampling.sobol import reversed_words
from fabricarlo.sampling.threefry import threefry2x32
from fabricarlo.sampling.uniforms import deep_uniform, uniform
from fabricarlo.sampling.words import low_words, narrow_words, wide_words
from tests.reference import random_words as reference

DIMENSIONS = (0, 1, 2, 17, 39, 60, 63, 95)
INDICES = (*range(40), 2**16 - 1, 2**20 + 12345, 2**31, 2**32 - 1)
EDGES = (0, 1, 2, 2**23, 2**24 + 1, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 2, 2**32 - 1)


def words32(values: object) -> Array:
    return jnp.asarray(values, jnp.uint32)


def random_integers(count: int, seed: int) -> list[int]:
    generator = np.random.default_rng(seed)
    return [int(v) for v in generator.integers(0, 2**32, count)]


def test_threefry_is_that_of_plain_integers() -> None:
    k0, k1, c0, c1 = (random_integers(50, seed) for seed in (1, 2, 3, 4))
    left, right = jax.jit(threefry2x32)((words32(k0), words32(k1)), (words32(c0), words32(c1)))
    expected = [
        reference.threefry((a, b), (c, d)) for a, b, c, d in zip(k0, k1, c0, c1, strict=True)
    ]
    assert list(zip(left.tolist(), right.tolist(), strict=True)) == expected


@pytest.mark.parametrize(
    "address", [(0, "a", 0, 0), (20261130, "jitter.data.slowest", 7, 3), (2**63, "λ", 1, 2**20)]
)
def test_key_of_a_stream_is_the_head_of_the_digest(address: tuple[int, str, int, int]) -> None:
    assert tuple(int(word) for word in stream_key(*address)) == reference.stream_key(*address)


def test_sobol_words_are_in_natural_order() -> None:
    reversed_bits = reversed_words(words32(INDICES), np.array(DIMENSIONS))
    made = np.asarray(bit_reversed(jnp.asarray(reversed_bits)))
    expected = [[reference.sobol(i, d) for i in INDICES] for d in DIMENSIONS]
    assert made.tolist() == expected


@pytest.mark.parametrize("key", [(0, 0), (0, 1), (1, 0), (0xDEADBEEF, 0x12345678)])
def test_scramble_is_a_nested_uniform_scramble(key: tuple[int, int]) -> None:
    before = [*(reference.sobol(i, 3) for i in range(512)), *random_integers(512, 5), *EDGES]
    # neighbours that share long prefixes visit deep nodes twice
    before += [word ^ 1 << depth for word in before[:64] for depth in range(32)]
    reversed_bits = bit_reversed(words32(before))
    after = scramble(reversed_bits, (words32(key[0]), words32(key[1]))).tolist()
    flips = reference.tree_flips(before, after)
    assert len(flips) > 10_000


def test_scramble_flips_every_node_fairly_over_keys() -> None:
    # one deep node each of 32 depths, 4000 keys: a fair flip is within 4.89 sd but for 1e-6
    keys = np.random.default_rng(6).integers(0, 2**32, (2, 4000, 1), np.uint32)
    before = random_integers(8, 7)
    after = scramble(bit_reversed(words32(before))[None, :], (words32(keys[0]), words32(keys[1])))
    changed = np.asarray(after) ^ np.asarray(before, np.uint32)
    shares = [((changed >> bit) & 1).mean(axis=0) for bit in range(32)]
    # 256 checks of 1e-6 / 256 each: 5.9 standard deviations of a share of 4000 coins
    assert np.abs(np.array(shares) - 0.5).max() < 5.9 * 0.5 / np.sqrt(4000)


def test_narrow_words_of_both_samplers() -> None:
    keys = np.array([[11, 12], [13, 14]], np.uint32)  # [replicate, word]
    key = (words32(keys[:, 0])[None, :, None], words32(keys[:, 1])[None, :, None])
    columns = np.arange(16, dtype=np.uint32)
    index = words32(np.broadcast_to(columns, (2, 16)))
    plain = np.asarray(narrow_words("random", None, key, index))
    low = np.asarray(low_words(key, index))
    for replicate, (left, right) in enumerate(keys.tolist()):
        expected = [reference.threefry((left, right), (n, 0)) for n in range(16)]
        assert plain[0, replicate].tolist() == [pair[0] for pair in expected]
        assert low[0, replicate].tolist() == [pair[1] for pair in expected]
    sobol = narrow_words("sobol", reversed_words(words32(columns), np.array([9])), key, index)
    before = [reference.sobol(n, 9) for n in range(16)]
    for replicate in range(2):
        reference.tree_flips(before, np.asarray(sobol)[0, replicate].tolist())


def test_wide_words_are_threefry_at_index_and_number() -> None:
    key = (words32(21), words32(22))
    left, _ = wide_words(key, words32([5, 6]), words32([0, 3]))
    assert left.tolist() == [
        reference.threefry((21, 22), (5, 0))[0],
        reference.threefry((21, 22), (6, 3))[0],
    ]


def ulp_gap(distance: Array, exact: list[Fraction]) -> float:
    """Largest error in units in the last place of float32."""
    made = [Fraction(float(value)) for value in np.asarray(distance, np.float64)]
    gaps = [
        abs(m - e) / Fraction(float(np.spacing(np.float32(float(e)))))
        for m, e in zip(made, exact, strict=True)
    ]
    return float(max(gaps))


@pytest.mark.parametrize("transform", [jax.jit, lambda f: f])
def test_word_stands_for_its_exact_number(transform: Callable) -> None:
    given = [*EDGES, *random_integers(500, 8)]
    point = transform(uniform)(words32(given))
    exact = [reference.uniform(word) for word in given]
    assert np.asarray(point.upper).tolist() == [end for end, _ in exact]
    assert ulp_gap(point.distance, [distance for _, distance in exact]) <= 1.0
    assert float(point.distance.min()) > 0
    assert float(point.distance.max()) <= 0.5


def test_two_words_stand_for_their_exact_number() -> None:
    high = [*EDGES, 0, 0, 2**32 - 1, 2**32 - 1, *random_integers(500, 9)]
    low = [*EDGES, 0, 7, 2**32 - 1, 2**32 - 8, *random_integers(500, 10)]
    point = jax.jit(deep_uniform)(words32(high), words32(low))
    exact = [reference.deep_uniform(h, w) for h, w in zip(high, low, strict=True)]
    assert np.asarray(point.upper).tolist() == [end for end, _ in exact]
    assert ulp_gap(point.distance, [distance for _, distance in exact]) <= 1.0
    assert float(point.distance.min()) > 0


def test_a_word_shifted_by_one_bit_is_caught() -> None:
    given = random_integers(50, 11)
    wrong = uniform(words32([word << 1 & 0xFFFFFFFF for word in given]))
    assert ulp_gap(wrong.distance, [reference.uniform(word)[1] for word in given]) > 1.0
