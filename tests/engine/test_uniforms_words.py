"""Words of a tile: each is a function of its address, and the same however tiles are cut."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from fabricarlo.sampling.addresses import stream_key
from fabricarlo.sampling.scramble import scramble
from fabricarlo.sampling.sobol import reversed_words
from fabricarlo.sampling.threefry import threefry2x32
from fabricarlo.sampling.words import SAMPLERS, narrow_words, wide_words
from tests.engine.draws import (
    DIMENSIONS,
    REPLICATES,
    STREAMS,
    keys_of,
    low,
    narrow,
    points,
    words_of,
)


@pytest.mark.parametrize("slot", range(3))
@pytest.mark.parametrize("index", [0, 5, 2**32 - 1])
def test_word_is_a_function_of_its_address(slot: int, index: int) -> None:
    columns = np.array([index, 17], dtype=np.uint32)
    for replicate in range(REPLICATES):
        key = tuple(jnp.uint32(k) for k in stream_key(1, STREAMS[slot], replicate, 0))
        random = threefry2x32(key, (jnp.uint32(index), jnp.uint32(0)))
        point = reversed_words(jnp.asarray(columns[:1]), DIMENSIONS[slot : slot + 1])[0, 0]
        at = slot, replicate, 0
        assert words_of("random", columns)[at] == int(random[0])
        assert words_of("sobol", columns)[at] == int(scramble(point, key))
        rows = jnp.tile(jnp.asarray(columns)[None], (REPLICATES, 1))
        assert int(low(keys_of(1), rows)[at]) == int(random[1])


def test_wide_draw_is_threefry_at_its_number() -> None:
    key = tuple(jnp.full((1, 1, 1), k, jnp.uint32) for k in stream_key(1, "ring.data.hops", 0, 0))
    index = jnp.arange(5, dtype=jnp.uint32)[None, :, None]
    first, second = wide_words(key, index, jnp.arange(7, dtype=jnp.uint32)[None, None, :])
    assert first.shape == second.shape == (1, 5, 7)
    scalars = tuple(word[0, 0, 0] for word in key)
    for n, j in ((0, 0), (4, 6), (2, 3)):
        expected = threefry2x32(scalars, (jnp.uint32(n), jnp.uint32(j)))
        assert (int(first[0, n, j]), int(second[0, n, j])) == tuple(int(w) for w in expected)


def test_later_steps_share_nothing_with_the_first() -> None:
    rows = jnp.arange(256, dtype=jnp.uint32)[None]
    key = tuple(word[0] for word in keys_of(1, 1))
    steps = [wide_words(key, rows, jnp.full_like(rows, step)) for step in range(1, 5)]
    every = np.concatenate([np.ravel(w) for pair in steps for w in pair])
    first = [
        words_of("random", np.arange(256, dtype=np.uint32))[0, 0],
        low(keys_of(1, 1), rows)[0, 0],
    ]
    every = np.concatenate([every, *[np.asarray(word) for word in first]])
    # 2560 words, of 2^32: a chance repeat has probability 8e-4, a shared counter repeats 256
    assert len(np.unique(every)) == len(every)


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("chunk", [1, 7, 1000, 1024])
def test_chunks_and_order_change_nothing(sampler: str, chunk: int) -> None:
    index = np.arange(2000, dtype=np.uint32) + np.uint32(2**32 - 1500)  # wraps: only bits count
    whole = words_of(sampler, index)
    starts = [0, 1000 - chunk, 2000 - chunk]
    for start in starts:
        part = words_of(sampler, index[start : start + chunk])
        np.testing.assert_array_equal(part, whole[:, :, start : start + chunk])
    turned = words_of(sampler, index[::-1].copy())
    np.testing.assert_array_equal(turned[:, :, ::-1], whole)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_two_devices_give_the_same_bits(sampler: str) -> None:
    assert jax.device_count() >= 2
    index = np.arange(2048, dtype=np.uint32)
    columns = NamedSharding(Mesh(np.array(jax.devices()[:2]), ("column",)), PartitionSpec("column"))
    rows = NamedSharding(columns.mesh, PartitionSpec(None, "column"))
    split = jax.device_put(jnp.asarray(index), columns)
    tiled = jax.device_put(jnp.tile(jnp.asarray(index)[None], (REPLICATES, 1)), rows)
    words = narrow(sampler, points(split), keys_of(1), tiled)
    assert len(words.sharding.device_set) == 2
    np.testing.assert_array_equal(np.asarray(words), words_of(sampler, index))
    np.testing.assert_array_equal(
        np.asarray(low(keys_of(1), tiled)), np.asarray(low(keys_of(1), jnp.asarray(tiled)))
    )


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_compiled_words_are_those_of_the_plain_functions(sampler: str) -> None:
    columns = jnp.arange(33, dtype=jnp.uint32)
    rows = jnp.tile(columns[None], (REPLICATES, 1))
    plain = narrow_words(sampler, reversed_words(columns, DIMENSIONS), keys_of(1), rows)
    np.testing.assert_array_equal(np.asarray(plain), words_of(sampler, np.asarray(columns)))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_stream_does_not_see_its_neighbours(sampler: str) -> None:
    columns = jnp.arange(64, dtype=jnp.uint32)
    rows = jnp.tile(columns[None], (REPLICATES, 1))
    both = words_of(sampler, np.asarray(columns))
    key = tuple(word[1:2] for word in keys_of(1))
    alone = narrow(sampler, reversed_words(columns, DIMENSIONS[1:2]), key, rows)
    np.testing.assert_array_equal(np.asarray(alone)[0], both[1])


def test_unknown_samplers_and_missing_points_are_refused() -> None:
    rows = jnp.zeros((REPLICATES, 1), jnp.uint32)
    with pytest.raises(ValueError, match=r"'halton' is unknown\. Known: sobol, random"):
        narrow_words("halton", None, keys_of(1), rows)
    with pytest.raises(ValueError, match=r"make them by sobol\.reversed_words"):
        narrow_words("sobol", None, keys_of(1), rows)
