"""Keys are digests of addresses, and addresses are read one way only."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fabricarlo.sampling.addresses import stream_key, stream_keys

ADDRESS = st.tuples(
    st.integers(0, 2**64),
    st.text("ab./1-", min_size=1, max_size=6),
    st.integers(0, 40),
    st.integers(0, 40),
)


@pytest.mark.parametrize(
    ("address", "digest"),
    [
        # printf '1/20261130/jitter.data.slowest/0/0' | sha256sum, coreutils 9.1
        ((20261130, "jitter.data.slowest", 0, 0), "c98671e80e25130b"),
        # printf '1/7/a/b/3/1' | sha256sum
        ((7, "a/b", 3, 1), "d88db335740e21c2"),
    ],
)
def test_key_is_the_start_of_the_digest(address: tuple[int, str, int, int], digest: str) -> None:
    first, second = stream_key(*address)
    assert f"{first:08x}{second:08x}" == digest


@given(one=ADDRESS, other=ADDRESS)
@example(one=(1, "1a", 0, 0), other=(11, "a", 0, 0))
@example(one=(1, "a", 1, 11), other=(1, "a", 11, 1))
@example(one=(1, "a/1", 1, 1), other=(1, "a", 1, 1))
def test_two_addresses_have_two_keys(
    one: tuple[int, str, int, int], other: tuple[int, str, int, int]
) -> None:
    # names here are full of slashes and digits: a rule without separators joins some alike
    assert (stream_key(*one) == stream_key(*other)) == (one == other)


def test_one_change_in_any_part_changes_the_key() -> None:
    base = (1, "1", 1, 1)
    keys = {stream_key(*base)}
    keys |= {
        stream_key(*[p if k != i else type(p)(2) for k, p in enumerate(base)]) for i in range(4)
    }
    assert len(keys) == 5


def test_table_holds_the_key_of_every_stream_and_replicate() -> None:
    streams = ("switch_latency", "packet_loss_rate")
    table = stream_keys(3, streams, 4, 1)
    assert table.dtype == np.uint32
    assert table.shape == (2, 4, 2)
    for s, stream in enumerate(streams):
        for r in range(4):
            assert tuple(int(word) for word in table[s, r]) == stream_key(3, stream, r, 1)


def test_more_replicates_and_streams_move_nothing() -> None:
    few = stream_keys(3, ["a", "b"], 2, 0)
    np.testing.assert_array_equal(few, stream_keys(3, ["a", "b", "c"], 5, 0)[:2, :2])
    np.testing.assert_array_equal(few[:, 1:], stream_keys(3, ["a", "b"], [1], 0))


def test_table_is_shared_and_cannot_be_changed() -> None:
    table = stream_keys(3, ["a"], 2, 0)
    assert stream_keys(3, ["a"], 2, 0) is table
    with pytest.raises(ValueError, match="read-only"):
        table[0, 0, 0] = 1


def test_no_streams_is_an_empty_table() -> None:
    assert stream_keys(3, [], 2, 0).shape == (0, 2, 2)
