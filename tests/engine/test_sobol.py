"""Sobol' points: SciPy's direction numbers, plain Python, and the nets they must be."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import qmc

from fabricarlo.sampling.sobol import DIRECTIONS, bit_reversed, reversed_words
from tests.engine.nets import assert_net, quality

ALL = np.arange(len(DIRECTIONS))
SCIPY = qmc.Sobol(len(ALL), scramble=False, bits=32)._sv
compiled = jax.jit(lambda index: reversed_words(index, ALL))


def points(index: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Sobol' integers [dimension, point] in the usual order of bits."""
    return bit_reversed(np.asarray(compiled(jnp.asarray(index))))


FIRST = points(np.arange(4096, dtype=np.uint32))


def slow_point(index: int, dimension: int) -> int:
    """The definition, on Python integers and SciPy's numbers."""
    word = 0
    for bit in range(32):
        if (index >> bit) & 1:
            word ^= int(SCIPY[dimension, bit])
    return word


def test_direction_numbers_are_those_of_scipy() -> None:
    np.testing.assert_array_equal(DIRECTIONS, SCIPY)


@given(index=st.integers(0, 2**32 - 1), dimension=st.integers(0, len(ALL) - 1))
def test_agrees_with_the_definition(index: int, dimension: int) -> None:
    words = compiled(jnp.full(4096, index, dtype=jnp.uint32))  # the compiled shape
    assert f"{int(words[dimension, 0]):032b}"[::-1] == f"{slow_point(index, dimension):032b}"


@pytest.mark.parametrize("power", [0, 1, 5, 10])
def test_first_points_are_the_set_of_scipy(power: int) -> None:
    theirs = qmc.Sobol(len(ALL), scramble=False, bits=32).random_base2(power)
    theirs = np.unique((theirs * 2.0**32).astype(np.uint32), axis=0)
    np.testing.assert_array_equal(theirs, np.unique(FIRST[:, : 2**power].T, axis=0))


@pytest.mark.parametrize("dimensions", [[95], [2, 1, 0], [63, 7, 7, 62]])
def test_any_dimensions_in_any_order(dimensions: list[int]) -> None:
    words = reversed_words(jnp.arange(8, dtype=jnp.uint32), np.array(dimensions))
    np.testing.assert_array_equal(bit_reversed(np.asarray(words)), FIRST[dimensions, :8])


def test_bits_reversed_on_the_host_are_the_text_reversed() -> None:
    words = np.random.default_rng(0).integers(0, 2**32, 100, dtype=np.uint32)
    expected = [int(f"{int(word):032b}"[::-1], 2) for word in words]
    np.testing.assert_array_equal(bit_reversed(words), np.array(expected, dtype=np.uint32))


@pytest.mark.parametrize("dimension", [0, 1, 39, 63, 95])
def test_every_aligned_run_is_stratified_in_every_dimension(dimension: int) -> None:
    for power, start in ((4, 0), (4, 4080), (10, 1024), (12, 0)):
        run = FIRST[dimension, start : start + 2**power]
        assert_net(run[None], power, quality=0)


def test_first_two_dimensions_are_the_best_net() -> None:
    for power in (4, 8, 12):
        assert quality(DIRECTIONS[:2], power) == 0
        assert_net(FIRST[:2, : 2**power], power, quality=0)


@pytest.mark.parametrize("pair", [(0, 2), (1, 5), (20, 39), (62, 63)])
def test_pairs_are_nets_of_their_algebraic_quality(pair: tuple[int, int]) -> None:
    t = quality(DIRECTIONS[list(pair)], 10)
    assert_net(FIRST[list(pair), :1024], 10, quality=t)


def test_all_pairs_of_spec_dimensions_are_usable_nets() -> None:
    # Joe and Kuo chose the numbers for this: t <= 8 of 10 leaves at least 4 elementary boxes
    worst = max(
        quality(DIRECTIONS[[a, b]], 10) for a, b in itertools.combinations(range(0, 64, 7), 2)
    )
    assert worst <= 8


def test_the_net_check_sees_random_points() -> None:
    random = np.random.default_rng(1).integers(0, 2**32, (2, 1024), dtype=np.uint32)
    with pytest.raises(AssertionError, match="elementary"):
        assert_net(random, 10, quality=3)


def test_the_net_check_sees_one_dimension_used_twice() -> None:
    with pytest.raises(AssertionError, match="elementary"):
        assert_net(FIRST[[3, 3], :1024], 10, quality=5)


def test_runs_over_columns_only() -> None:
    text = jax.jit(lambda i: reversed_words(i, ALL[:16])).lower(jnp.zeros(64, jnp.uint32)).as_text()
    assert "tensor<16x64xui32>" in text
    assert text.count("multiply") == 0
