"""No relation between streams, replicates or seeds; and what scrambled points are worth."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from fabricarlo.sampling.addresses import stream_keys
from fabricarlo.sampling.sobol import reversed_words
from fabricarlo.sampling.uniforms import uniform
from tests.agreement import FALSE_ALARM
from tests.engine.draws import REPLICATES, Words, narrow, words_of


def triple32(word: jax.Array) -> jax.Array:
    """Wellons' 32-bit finaliser."""
    for shift, factor in ((17, 0xED5AD4BB), (11, 0xAC4C1B51), (15, 0x31848BAB)):
        word = (word ^ (word >> jnp.uint32(shift))) * jnp.uint32(factor)
    return word ^ (word >> jnp.uint32(14))


@jax.jit
def shared_base(seed: jax.Array, index: jax.Array) -> jax.Array:
    """A wrong generator: the seed only permutes the points, for it enters before the base."""
    base = triple32(index ^ triple32(seed))
    return jnp.stack([triple32(base + jnp.uint32(0x9E3779B9) * d) for d in jnp.uint32([1, 2, 3])])


def repeats(vectors: Callable[[int], Words], seeds: int) -> int:
    """How many vectors of three words, [word, sample] a seed, occur again; exact."""
    heads = [(v[0].astype(np.uint64) << np.uint64(32)) | v[1] for v in map(vectors, range(seeds))]
    every = np.concatenate(heads)
    every.sort()
    twice = np.unique(every[1:][every[1:] == every[:-1]])
    if not len(twice):
        return 0
    suspects = [
        np.stack([head, vectors(seed)[2].astype(np.uint64)])[:, np.isin(head, twice)]
        for seed, head in enumerate(heads)
    ]
    full = np.concatenate(suspects, axis=1)
    return full.shape[1] - np.unique(full, axis=1).shape[1]


SEEDS = 32
FIRST = np.arange(2**20, dtype=np.uint32)
SPREAD = np.arange(2**18, dtype=np.uint32) * np.uint32(2654435761)  # all over the 2^32 samples


def test_seeds_share_no_vector_under_random() -> None:
    assert repeats(lambda seed: words_of("random", FIRST, seed, 1)[:, 0], SEEDS) == 0


def test_seeds_share_no_vector_under_sobol() -> None:
    index = FIRST[: len(FIRST) // REPLICATES]
    assert repeats(lambda seed: words_of("sobol", index, seed).reshape(3, -1), SEEDS) == 0


def test_seeds_share_no_vector_far_out() -> None:
    assert repeats(lambda seed: words_of("random", SPREAD, seed, 1)[:, 0], 8) == 0
    assert repeats(lambda seed: words_of("sobol", SPREAD, seed, 1)[:, 0], 8) == 0


def test_the_vector_check_sees_a_shared_base() -> None:
    # each of 28 pairs of seeds meets in about (2^18)^2 / 2^32 = 16 bases
    assert repeats(lambda seed: np.asarray(shared_base(jnp.uint32(seed), SPREAD)), 8) > 100


def assert_uniform_pairs(one: Words, other: Words) -> None:
    """Six leading bits of each: 4096 equal cells, chi-square."""
    cell = (one >> np.uint32(26)) * 64 + (other >> np.uint32(26))
    counts = np.bincount(cell.ravel(), minlength=4096)
    statistic = float(np.sum((counts - cell.size / 4096) ** 2) / (cell.size / 4096))
    assert stats.chi2.ppf(FALSE_ALARM / 2, 4095) < statistic < stats.chi2.isf(FALSE_ALARM / 2, 4095)


def neighbours(one: Words, other: Words) -> list[tuple[Words, Words]]:
    """What must not be related, of two seeds' words [stream, replicate, sample]."""
    return [
        (one[0, 0, :-1], one[0, 0, 1:]),
        (one[0], one[1]),
        (one[1, 0], one[1, 1]),
        (one[0], other[0]),
        (one[2, :, ::2], other[1, :, ::2]),
    ]


@pytest.mark.parametrize("pair", range(5))
def test_random_words_are_unrelated(pair: int) -> None:
    index = np.arange(2**18, dtype=np.uint32)
    one, other = words_of("random", index, 1, 2), words_of("random", index, 2, 2)
    assert_uniform_pairs(*neighbours(one, other)[pair])


def test_the_pair_check_sees_a_related_stream() -> None:
    word = words_of("random", np.arange(2**16, dtype=np.uint32))[0, 0]
    with pytest.raises(AssertionError):
        assert_uniform_pairs(word, word + np.uint32(1))


@pytest.mark.parametrize("index", [0, 1, 12345])
def test_scrambled_words_of_one_point_are_unrelated_over_replicates(index: int) -> None:
    # within a replicate the points are a net and not random, by design
    words = words_of("sobol", np.array([index, index + 1], dtype=np.uint32), 1, 2**15)[:, :, 0]
    assert_uniform_pairs(words[0], words[1])
    assert_uniform_pairs(words[0, :-1], words[0, 1:])
    assert_uniform_pairs(words[2] << np.uint32(13), words[1] << np.uint32(13))


@jax.jit
def smooth(u: jax.Array) -> jax.Array:
    """Product over eight dimensions of 1 + (u - 1/2) / 2: mean 1, smooth."""
    return jnp.prod(1 + (u - 0.5) / 2, axis=0)


def square_error(sampler: str, dimensions: NDArray[np.integer]) -> float:
    """Mean square error of the mean over 2^12 points, over 64 replicates."""
    table = stream_keys(4, [f"draw {k}" for k in range(8)], 64, 0)
    key = jnp.asarray(table[..., 0, None]), jnp.asarray(table[..., 1, None])
    index = jnp.arange(2**12, dtype=jnp.uint32)
    rows = jnp.tile(index[None], (64, 1))
    points = jax.jit(lambda index: reversed_words(index, dimensions))(index)
    words = narrow(sampler, points, key, rows)
    values = np.asarray(smooth(uniform(words).value), dtype=np.float64)
    return float(np.mean((values.mean(axis=1) - 1) ** 2))


def test_scrambled_points_need_far_fewer_samples() -> None:
    random = square_error("random", np.arange(8))
    sobol = square_error("sobol", np.arange(8))
    # independent samples: variance (1 + 1/48)^8 - 1 over 4096, chi-square of 64 replicates
    expected = ((1 + 1 / 48) ** 8 - 1) / 2**12
    law = stats.chi2(64)
    assert law.ppf(FALSE_ALARM / 2) < 64 * random / expected < law.isf(FALSE_ALARM / 2)
    assert sobol < random / 20


def test_the_merit_check_sees_a_shared_dimension() -> None:
    random = square_error("random", np.arange(8))
    shared = square_error("sobol", np.zeros(8, dtype=np.int64))
    assert shared > random / 20
