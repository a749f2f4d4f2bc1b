"""Bins: exact, ordered, narrow, and the same bits on the host and on the device."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricarlo.summaries import bins
from tests.engine.summary_reference import bin_by_hand

FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=32)
NASTY = np.array(
    [0.0, -0.0, 1e-45, -1e-45, 1.1754942e-38, 1.17549435e-38, -1.17549435e-38, 1.0, -1.0,
     np.nextafter(np.float32(1), np.float32(0)), 1.08, 3.4028235e38, -3.4028235e38, 65504.0],
    np.float32,
)  # fmt: skip


def every_kind(count: int = 100_000) -> np.ndarray:
    patterns = np.random.default_rng(1).integers(0, 2**32, count, dtype=np.uint32)
    values = np.concatenate([NASTY, patterns.view(np.float32)])
    return values[np.isfinite(values)]


@jax.jit
def on_device(values: jax.Array) -> tuple[jax.Array, jax.Array]:
    key = bins.key_of_bits(jax.lax.bitcast_convert_type(values, jnp.int32))
    return key, bins.bin_of_key(key)


@given(FLOATS)
def test_the_bin_is_that_of_fraction_and_exponent(value: float) -> None:
    assert bins.bin_of(np.float32([value])).tolist() == [bin_by_hand(value)]


def test_host_and_device_agree_on_every_bit() -> None:
    values = every_kind()
    key, bin_ = on_device(jnp.asarray(values))
    np.testing.assert_array_equal(np.asarray(key), bins.key_of(values))
    np.testing.assert_array_equal(np.asarray(bin_), bins.bin_of(values))


def test_keys_and_bins_order_as_values_do() -> None:
    values = np.sort(every_kind())
    keys = bins.key_of(values).astype(np.int64)
    np.testing.assert_array_equal(np.diff(keys) > 0, np.diff(values.astype(np.float64)) > 0)
    assert np.all(np.diff(bins.bin_of(values)) >= 0)
    np.testing.assert_array_equal(bins.key_of(-values), -bins.key_of(values))
    np.testing.assert_array_equal(bins.value_of(bins.key_of(values)), values)


def test_infinities_and_nan_are_told_by_the_key() -> None:
    values = np.array([np.inf, -np.inf, np.nan, -np.nan, 3.4028235e38], np.float32)
    not_finite = np.abs(bins.key_of(values)) >= bins.NOT_FINITE
    assert not_finite.tolist() == [True, True, True, True, False]


def test_edges_hold_their_values() -> None:
    values = every_kind()
    low, high = bins.edges(bins.bin_of(values))
    exact = values.astype(np.float64)
    zero = exact == 0
    positive, negative = exact > 0, exact < 0
    assert np.all((low[positive] <= exact[positive]) & (exact[positive] < high[positive]))
    assert np.all((low[negative] < exact[negative]) & (exact[negative] <= high[negative]))
    assert np.all(low[zero] == 0)
    assert np.all(high[zero] == 0)


def test_edges_tile_the_line_and_half_a_bin_is_at_most_2_to_minus_12() -> None:
    every = np.arange(-bins.LAST_BIN, bins.LAST_BIN + 1)
    low, high = bins.edges(every)
    np.testing.assert_array_equal(low[1:], high[:-1])
    assert high[-1] == 2.0**128
    normal = np.abs(every) >= 2
    smaller = np.minimum(np.abs(low), np.abs(high))[normal]
    # the bound is reached at the foot of every octave and nowhere exceeded
    assert np.max((high - low)[normal] / 2 / smaller) == 2.0**-12


def test_a_power_usage_effectiveness_is_resolved_and_seven_bits_would_not() -> None:
    values = np.random.default_rng(2).normal(1.08, 0.004, 4000).astype(np.float32)
    assert len(np.unique(bins.bin_of(values))) > 40
    coarse = np.unique(values.view(np.int32) >> (23 - 7))
    assert len(coarse) < 6


@pytest.mark.parametrize("value", [1.0, 2.0**-126, 2.0**127])
def test_the_value_below_a_power_of_two_is_in_the_bin_below(value: float) -> None:
    pair = np.array([np.nextafter(np.float32(value), np.float32(0)), value], np.float32)
    assert np.diff(bins.bin_of(pair)).tolist() == [1]
