"""Uniforms against exact fractions."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fabricarlo.sampling.uniforms import deep_uniform, uniform
from tests.agreement import assert_follows, assert_tails_reached

TOP = 2**31
WORD = st.one_of(
    st.integers(0, 2**32 - 1),
    # few leading bits and few trailing ones: ties and the far tails
    st.builds(
        lambda power, low, end: ((1 << power) + low) % TOP ^ end,
        st.integers(0, 31),
        st.integers(-2, 2),
        st.sampled_from([0, 2**32 - 1]),
    ),
)
CORNERS = [0, 1, 2**24 - 1, 2**24, 2**24 + 1, 2**30 + 64, TOP - 1, TOP, TOP + 1, 2**32 - 1]

shallow = jax.jit(uniform)
deep = jax.jit(deep_uniform)


def nearest_float32(value: Fraction) -> Fraction:
    """The float32 nearest to a positive normal number, ties to even, by integers."""
    exponent = 0
    while value < 2**23:
        value, exponent = value * 2, exponent - 1
    while value >= 2**24:
        value, exponent = value / 2, exponent + 1
    return Fraction(round(value)) * Fraction(2) ** exponent  # round(Fraction) is half to even


def exact(word: int, low: int | None) -> tuple[bool, Fraction]:
    """The end and the distance from it, from the definition."""
    bits = f"{word:032b}" + ("" if low is None else f"{low:032b}")
    upper, rest = bits[0] == "1", bits[1:]
    if upper:
        rest = rest.translate(str.maketrans("01", "10"))
    return upper, (int(rest, 2) + Fraction(1, 2)) / 2 ** len(bits)


def ours(word: int, low: int | None) -> tuple[bool, Fraction]:
    words = [jnp.full(1, part, jnp.uint32) for part in (word, low) if part is not None]
    u = shallow(*words) if low is None else deep(*words)
    return bool(u.upper[0]), Fraction(float(u.distance[0]))


@pytest.mark.parametrize("word", CORNERS)
def test_corners_are_exact(word: int) -> None:
    upper, distance = exact(word, None)
    assert ours(word, None) == (upper, nearest_float32(distance))


@given(word=WORD)
def test_distance_is_the_exact_one_rounded_once(word: int) -> None:
    upper, distance = exact(word, None)
    assert ours(word, None) == (upper, nearest_float32(distance))


@given(word=WORD, low=WORD)
@example(word=0, low=0)
@example(word=2**32 - 1, low=2**32 - 1)
@example(word=2**24, low=0)
def test_deep_distance_is_exact_in_the_tail_and_near_the_middle(word: int, low: int) -> None:
    upper, distance = exact(word, low)
    found_upper, found = ours(word, low)
    assert found_upper == upper
    if distance < Fraction(1, 2**32) or distance > Fraction(1, 2**8):
        assert found == nearest_float32(distance)
    else:  # rounded twice: half a unit and the rounding of a tail below 2^-24 of it
        assert abs(found - distance) <= distance * (1 + Fraction(1, 2**20)) / 2**24


def test_deep_distance_is_almost_always_the_nearest() -> None:
    generator = np.random.default_rng(8)
    words = generator.integers(0, 2**24, 2000, dtype=np.uint32)
    lows = generator.integers(0, 2**32, 2000, dtype=np.uint32)
    found = np.asarray(deep(words, lows).distance)
    exact_ones = [exact(int(w), int(low))[1] for w, low in zip(words, lows, strict=True)]
    expected = np.array([float(nearest_float32(one)) for one in exact_ones], dtype=np.float32)
    # documented as 2^-20: one exception in 2000 would have probability 0.002
    np.testing.assert_array_equal(found, expected)


@given(word=WORD)
def test_complement_is_the_mirror_image(word: int) -> None:
    upper, distance = ours(word, None)
    assert ours(word ^ (2**32 - 1), None) == (not upper, distance)


def test_ends_are_never_reached() -> None:
    assert ours(0, None) == (False, Fraction(1, 2**33))
    assert ours(2**32 - 1, None) == (True, Fraction(1, 2**33))
    assert ours(0, 0) == (False, Fraction(1, 2**65))
    assert ours(2**32 - 1, 2**32 - 1) == (True, Fraction(1, 2**65))
    assert ours(TOP - 1, None) == (False, Fraction(1, 2))


@pytest.mark.parametrize("word", CORNERS)
def test_double_precision_holds_every_bit(word: int) -> None:
    with jax.enable_x64(True):  # noqa: FBT003
        words = [jnp.full(1, part, jnp.uint32) for part in (word, 77)]
        one = uniform(words[0], dtype=jnp.float64)
        two = deep_uniform(*words, dtype=jnp.float64)
    assert Fraction(float(one.distance[0])) == exact(word, None)[1]
    assert float(two.distance[0]) == float(exact(word, 77)[1])  # float(Fraction) rounds once


def test_both_tails_are_exponential() -> None:
    words = np.random.default_rng(9).integers(0, 2**32, (2, 2**20), dtype=np.uint32)
    for u in (shallow(words[0]), deep(words[0], words[1])):
        upper, distance = np.asarray(u.upper), np.asarray(u.distance, dtype=np.float64)
        assert_follows(np.where(upper, 1 - distance, distance))
        assert_tails_reached(np.where(upper, 1 - distance, distance), np.where(upper, distance, 1))


def test_the_tail_check_sees_a_grid_of_24_bits() -> None:
    # what a uniform made as one float32 gives: zeros
    words = np.random.default_rng(9).integers(0, 2**32, 2**25, dtype=np.uint32)
    coarse = (words >> np.uint32(8)) * 2.0**-24
    with pytest.raises(AssertionError, match="tail"):
        assert_tails_reached(coarse, coarse)
