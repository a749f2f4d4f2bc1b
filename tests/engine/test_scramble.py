"""The hash is a nested uniform scramble: nested by proof, uniform by statistics over keys."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from fabricarlo.sampling.addresses import stream_keys
from fabricarlo.sampling.scramble import bit_reversed, scramble
from fabricarlo.sampling.sobol import reversed_words
from fabricarlo.sampling.threefry import threefry2x32
from tests.engine.nets import assert_net

ALPHA = 1e-6
WORD = st.integers(0, 2**32 - 1)
KEYS = 2**15
Scramble = Callable[[jax.Array, tuple[jax.Array, jax.Array]], jax.Array]


def keys_of(stream: str, count: int = KEYS) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Keys as sweeps have them, [key, 1]."""
    table = stream_keys(5, [stream], count, 0)[0]
    return table[:, :1], table[:, 1:]


def vegdahl(word: jax.Array, key: tuple[jax.Array, jax.Array]) -> jax.Array:
    """The published hash: one 32-bit key, the other word unused."""
    seed = key[0]
    word = (word ^ (word * jnp.uint32(0x3D20ADEA))) + seed
    word = word * ((seed >> jnp.uint32(16)) | jnp.uint32(1))
    word = word ^ (word * jnp.uint32(0x05526C56))
    return bit_reversed(word ^ (word * jnp.uint32(0x53A22864)))


def burley(word: jax.Array, key: tuple[jax.Array, jax.Array]) -> jax.Array:
    """The hash of the 2020 paper: the key enters once, by addition."""
    word = word + key[0]
    for constant in (0x6C50B47C, 0xB82F1E52, 0xC7AFE638, 0x8D22F6E6):
        word = word ^ (word * jnp.uint32(constant))
    return bit_reversed(word)


def digital_shift(word: jax.Array, key: tuple[jax.Array, jax.Array]) -> jax.Array:
    """One flip for all nodes of a level."""
    return bit_reversed(word ^ key[0])


def by_hand(word: int, key: tuple[int, int]) -> int:
    """The steps that the docstring lists, on Python integers and text."""
    ones = jnp.full(1, 2**32 - 1, jnp.uint32)
    words = threefry2x32((jnp.uint32(key[0]), jnp.uint32(key[1])), (ones, ones))
    a, c = (f"{int(w[0]):032b}" for w in words)
    b, d = int(c[16:] + c[:16], 2) | 1, int(a[16:] + a[:16], 2) | 1
    steps = [
        lambda x: x ^ (x * 0x3D20ADEA), lambda x: x + int(a, 2), lambda x: x * b,
        lambda x: x ^ (x * 0x05526C56), lambda x: x ^ int(c, 2), lambda x: x * d,
        lambda x: x ^ (x * 0x53A22864),
    ]  # fmt: skip
    for step in steps:
        word = step(word) % 2**32
    return int(f"{word:032b}"[::-1], 2)


compiled = jax.jit(scramble)


def one(word: int, key: tuple[int, int]) -> int:
    parts = [jnp.full((1, 1), part, jnp.uint32) for part in (word, *key)]
    return int(compiled(parts[0], (parts[1], parts[2]))[0, 0])


@given(word=WORD, first=WORD, second=WORD)
def test_follows_the_steps_it_documents(word: int, first: int, second: int) -> None:
    assert one(word, (first, second)) == by_hand(word, (first, second))


@given(word=WORD, other=WORD, shared=st.integers(0, 32), first=WORD, second=WORD)
def test_keeps_exactly_the_shared_leading_digits(
    word: int, other: int, shared: int, first: int, second: int
) -> None:
    # on reversed words the leading digits of the point are the low bits
    low = 2**shared - 1
    other = (word & low) | (other & ~low)
    before = f"{word ^ other:032b}"[::-1].find("1")
    after = f"{one(word, (first, second)) ^ one(other, (first, second)):032b}".find("1")
    assert after == before


def flips(function: Scramble, nodes: NDArray[np.uint32], depths: NDArray[np.int64]) -> NDArray:
    """Flip of every node under every key as +1 or -1, [node, key]."""
    words = jax.jit(function)(nodes[None, :], keys_of("flips"))
    bits = (np.asarray(words) >> (31 - depths).astype(np.uint32)) & 1
    return bits.T.astype(np.float64) * 2 - 1


def upper_nodes(levels: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    depths = np.concatenate([np.full(2**d, d) for d in range(levels)])
    paths = np.concatenate([np.arange(2**d) for d in range(levels)])
    return paths.astype(np.uint32), depths


def assert_fair_and_independent(function: Scramble) -> None:
    """Flips of the 63 nodes of six levels: fair, and pairwise independent, over keys."""
    signs = flips(function, *upper_nodes(6))
    products = signs @ signs.T / np.sqrt(KEYS)
    np.fill_diagonal(products, signs.sum(axis=1) / np.sqrt(KEYS))
    limit = stats.norm.isf(ALPHA / 2 / (63 * 64 // 2))
    worst = np.abs(products).max()
    assert worst < limit, f"flips correlate: z = {worst:.2f}, allowed {limit:.2f}"


def test_flips_of_upper_nodes_are_fair_and_pairwise_independent() -> None:
    assert_fair_and_independent(scramble)


@pytest.mark.parametrize("wrong", [burley, digital_shift])
def test_the_flip_check_sees_weaker_scrambles(wrong: Scramble) -> None:
    with pytest.raises(AssertionError, match="flips correlate"):
        assert_fair_and_independent(wrong)


def test_flips_of_deep_nodes_are_fair_and_pairwise_independent() -> None:
    generator = np.random.default_rng(3)
    depths = np.repeat([8, 12, 16, 20, 24, 28, 31], 18)
    nodes = generator.integers(0, 2**32, len(depths), dtype=np.uint32)
    nodes &= (2 ** depths.astype(np.uint64) - 1).astype(np.uint32)
    signs = flips(scramble, nodes, depths)
    products = signs @ signs.T / np.sqrt(KEYS)
    np.fill_diagonal(products, signs.sum(axis=1) / np.sqrt(KEYS))
    assert np.abs(products).max() < stats.norm.isf(ALPHA / len(nodes) ** 2)


def worst_triple(function: Scramble) -> float:
    signs = flips(function, *upper_nodes(5))
    worst = 0.0
    for first in range(len(signs)):
        for second in range(first):
            products = signs[:second] @ (signs[first] * signs[second]) / KEYS
            worst = max(worst, np.abs(products).max(initial=0.0))
    return worst


def test_three_upper_flips_are_nearly_independent() -> None:
    # documented as 0.02; 4495 triples of 2^15 keys add up to 6.7 / 181 = 0.037 of noise at ALPHA
    assert worst_triple(scramble) < 0.02 + 0.037
    assert worst_triple(vegdahl) > 0.9


def assert_key_bits_matter(function: Scramble) -> None:
    """Each of the 64 key bits changes each of the 32 digits under half of all keys."""
    generator = np.random.default_rng(4)
    key = generator.integers(0, 2**32, (2, 4096), dtype=np.uint32)
    words = generator.integers(0, 2**32, 4096, dtype=np.uint32)
    run = jax.jit(function)
    base, counts = np.asarray(run(words, (key[0], key[1]))), np.empty((64, 32), np.int64)
    for bit in range(64):
        changed = key.copy()
        changed[bit // 32] ^= np.uint32(1 << (bit % 32))
        difference = np.asarray(run(words, (changed[0], changed[1]))) ^ base
        counts[bit] = ((difference >> np.arange(32, dtype=np.uint32)[:, None]) & 1).sum(axis=1)
    law = stats.binom(4096, 0.5)
    worst = 2 * counts.size * min(law.cdf(counts.min()), law.sf(counts.max() - 1))
    assert worst > ALPHA, f"key bits change digits from {counts.min()} to {counts.max()} times"


def test_all_key_bits_matter_at_every_digit() -> None:
    assert_key_bits_matter(scramble)


def test_the_key_check_sees_a_32_bit_key() -> None:
    with pytest.raises(AssertionError, match="from 0 "):
        assert_key_bits_matter(vegdahl)


POINTS = np.asarray(reversed_words(jnp.arange(64, dtype=jnp.uint32), np.arange(2)))


def scrambled(function: Scramble) -> NDArray[np.float64]:
    """64 points of the square under every key, [key, dimension, point]."""
    run = jax.jit(function)
    words = [run(POINTS[d : d + 1], keys_of(f"dimension {d}")) for d in range(2)]
    return (np.stack(words, axis=1) + 0.5) / 2.0**32


def nested_by_trees() -> NDArray[np.float64]:
    """The same by Owen's definition: a fair coin for every node, plain NumPy."""
    generator = np.random.default_rng(6)
    result = np.empty((KEYS, 2, 64))
    for d in range(2):
        digits = [(POINTS[d] >> np.uint32(k)) & 1 for k in range(6)]
        path, value = np.zeros(64, dtype=np.int64), np.zeros((KEYS, 64))
        for k, digit in enumerate(digits):
            coins = generator.integers(0, 2, (KEYS, 2**k))
            value += (digit ^ coins[:, path]) * 0.5 ** (k + 1)
            path = 2 * path + digit
        # below the sixth digit every point is alone in its interval
        result[:, d] = value + generator.random((KEYS, 64)) / 64
    return result


def assert_variance(means: NDArray[np.float64], expected: float) -> None:
    """Mean square of centred normal means: chi-square over keys."""
    law = stats.chi2(len(means))
    ratio = float(np.sum(means**2)) / expected
    assert law.ppf(ALPHA / 2) < ratio < law.isf(ALPHA / 2), (
        f"variance is {ratio / len(means):.4f} of the expected"
    )


def test_variance_in_one_dimension_is_that_of_independent_strata() -> None:
    # 64 strata of width 1/64, one independent uniform point in each: (1/64)^2 / 12 / 64
    means = scrambled(scramble).mean(axis=2) - 0.5
    assert_variance(means[:, 0], 1 / 12 / 64**3)
    assert_variance(means[:, 1], 1 / 12 / 64**3)


def test_the_variance_check_sees_a_digital_shift() -> None:
    with pytest.raises(AssertionError, match="variance"):
        assert_variance(scrambled(digital_shift)[:, 0].mean(axis=1) - 0.5, 1 / 12 / 64**3)


def test_square_errors_in_two_dimensions_are_those_of_random_trees() -> None:
    def square_errors(points: NDArray[np.float64]) -> NDArray[np.float64]:
        first, second = points[:, 0], points[:, 1]
        integrands = (
            12 * (first - 0.5) * (second - 0.5),
            np.exp(first + second) - (np.e - 1) ** 2,
            (first**2 + second**2 < 1) - np.pi / 4,
        )
        return np.stack([integrand.mean(axis=1) ** 2 for integrand in integrands])

    ours, trees = square_errors(scrambled(scramble)), square_errors(nested_by_trees())
    error = np.sqrt((ours.var(axis=1) + trees.var(axis=1)) / KEYS)
    z = (ours.mean(axis=1) - trees.mean(axis=1)) / error
    assert np.abs(z).max() < stats.norm.isf(ALPHA / 2 / 3), f"z = {z}"


def test_nets_stay_nets() -> None:
    points = reversed_words(jnp.arange(1024, dtype=jnp.uint32), np.arange(2))
    for stream in "abc":
        keys = [keys_of(stream + str(d), 1) for d in range(2)]
        words = [np.asarray(compiled(points[d : d + 1], keys[d]))[0] for d in range(2)]
        assert_net(np.stack(words), 10, quality=0)


def test_key_words_may_differ_by_column() -> None:
    key = keys_of("columns", 4)
    wide = tuple(np.broadcast_to(word, (4, 64)) for word in key)
    narrow = compiled(POINTS[:1], key)
    np.testing.assert_array_equal(np.asarray(narrow), np.asarray(compiled(POINTS[:1], wide)))


def test_a_word_costs_at_most_33_operations() -> None:
    # 10 of the hash, 23 of the reversal, some of them shared by the replicates; the key schedule,
    # about 100 more, is not repeated for every column
    shapes = [jax.ShapeDtypeStruct(s, jnp.uint32) for s in ((1, 512), (8, 1), (8, 1))]
    text = compiled.lower(shapes[0], (shapes[1], shapes[2])).compile().as_text()
    names = ("add", "multiply", "xor", "and", "or", "shift-left", "shift-right-logical")
    count = sum(text.count(f"u32[8,512]{{1,0}} {name}(") for name in names)
    assert 25 <= count <= 33
