"""Parts as bytes: whole, compact, and refused when they are not whole."""

import jax.numpy as jnp
import numpy as np
import pytest

from fabricarlo.summaries.state import Part
from fabricarlo.summaries.summariser import Columns, Summariser
from fabricarlo.summaries.wire import from_bytes, to_bytes
from tests.engine.summary_reference import same_bits

COLUMNS = 5000


def part_of(values: np.ndarray, samples: int) -> Part:
    """Of one output and its flag; [replicates, columns]."""
    block = Summariser(("a", "f"), {"f": 2}, len(values), samples).block()
    width = 2 * values.shape[1]  # so that it is summarised on the host
    padding = ((0, 0), (0, width - values.shape[1]))
    array = jnp.asarray(np.pad(values, padding).astype(np.float32))
    cell = np.where(np.arange(width) < values.shape[1], 4, -1)
    block.add({"a": array, "f": (array > 0).astype(jnp.float32)}, Columns(cell, np.arange(width)))
    return block.finish()[4]


@pytest.fixture(scope="module")
def part() -> Part:
    values = np.random.default_rng(6).lognormal(0, 1, (2, COLUMNS))
    values[0, : COLUMNS // 2] = 0.0
    return part_of(values, 2 * COLUMNS)


def test_a_part_survives_the_journey(part: Part) -> None:
    back = from_bytes(to_bytes(part))
    assert same_bits(back, part)
    assert (back.outputs, back.replicates, back.blocks) == (part.outputs, 2, [(0, 1)])
    for name in ("offsets", "bins", "counts"):
        one, other = getattr(back.histogram, name), getattr(part.histogram, name)
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
    for side in ("top", "bottom"):
        for name in ("values", "samples"):
            one, other = getattr(getattr(back, side), name), getattr(getattr(part, side), name)
            np.testing.assert_array_equal(one, other)
            assert one.dtype == other.dtype
    np.testing.assert_array_equal(back.count, part.count)
    np.testing.assert_array_equal(back.nodes[0, 0], part.nodes[0, 0])
    np.testing.assert_array_equal(back.flags["f"], part.flags["f"])


def test_counts_beyond_16_and_32_bits_survive(part: Part) -> None:
    histogram = part.histogram
    big = np.array([2**16 - 2, 2**16 - 1, 2**16, 2**40])
    histogram.counts[:4] = big
    np.testing.assert_array_equal(from_bytes(to_bytes(part)).histogram.counts[:4], big)


def test_a_part_without_finite_values_survives() -> None:
    empty = part_of(np.full((3, 4), np.nan), 12)
    assert len(empty.histogram.bins) == 0
    assert same_bits(from_bytes(to_bytes(empty)), empty)


def test_an_occupied_bin_costs_a_few_bytes(part: Part) -> None:
    occupied = len(part.histogram.bins)
    assert occupied > 2000
    # the extremes' 64 values and indices on each side, and at most 4 bytes a bin
    assert len(to_bytes(part)) < 2 * 2 * 64 * 12 + 4 * occupied + 1000


@pytest.mark.parametrize("cut", [0, 5, 30, 300, -1])
def test_cut_bytes_are_refused(part: Part, cut: int) -> None:
    data = to_bytes(part)[:cut]
    with pytest.raises(ValueError, match="are not a whole summary part"):
        from_bytes(data)


def test_a_damaged_byte_is_refused(part: Part) -> None:
    data = bytearray(to_bytes(part))
    data[-100] ^= 1  # in the compressed body, which ends in its checksum
    with pytest.raises(ValueError, match="are not a whole summary part"):
        from_bytes(bytes(data))
