"""Moments: exact to float64, and the same bits for any order and any split of the blocks."""

from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricarlo.summaries.moments import (
    Moments,
    Node,
    block_ranges,
    joined,
    merge_moments,
    moments_of,
    total,
)

BLOCKS = 21  # not a power of two


def of(values: np.ndarray) -> Moments:
    return moments_of(values, np.isfinite(values))


def block_nodes() -> list[dict[Node, Moments]]:
    rng = np.random.default_rng(3)
    rows = rng.lognormal(0, 2, (BLOCKS, 2, 3, 50)).astype(np.float32)
    return [{(0, k): of(row)} for k, row in enumerate(rows)]


def test_a_hundred_million_equal_values_have_that_mean_and_no_variance() -> None:
    value = np.float32(0.1)
    block = of(np.full(10_000, value))
    nodes = joined([{(0, k): block} for k in range(10_000)])
    count, mean, centred = total(nodes)
    assert (count, centred) == (1e8, 0)
    assert mean == float(value)


def test_a_relative_variance_of_1e_8_is_kept_and_the_naive_sum_loses_it() -> None:
    values = np.random.default_rng(4).normal(1000.0, 0.1, (50, 2000)).astype(np.float32)
    exact = values.astype(np.longdouble)
    true = float(((exact - exact.mean()) ** 2).mean())
    count, _, centred = reduce(merge_moments, [of(row) for row in values])
    assert centred / count == pytest.approx(true, rel=1e-10)
    # the wrong variant, in the precision of the samples
    naive = np.mean(values * values, dtype=np.float32) - np.mean(values, dtype=np.float32) ** 2
    assert abs(naive / true - 1) > 0.01


def test_masked_values_do_not_count_and_an_empty_sample_is_neutral() -> None:
    values = np.array([[1.0, np.nan, 3.0, np.inf], [np.nan] * 4], np.float32)
    moments = of(values)
    np.testing.assert_array_equal(moments, [[2, 0], [2, 0], [2, 0]])
    some, none = moments[:, 0], moments[:, 1]
    np.testing.assert_array_equal(merge_moments(some, none), some)
    np.testing.assert_array_equal(merge_moments(none, some), some)
    np.testing.assert_array_equal(merge_moments(none, none), none)


@given(st.permutations(range(BLOCKS)), st.lists(st.integers(1, BLOCKS - 1), max_size=6))
def test_any_order_and_any_grouping_of_blocks_gives_the_same_bits(
    order: list[int], cuts: list[int]
) -> None:
    blocks = block_nodes()
    shuffled = [blocks[k] for k in order]
    edges = [0, *sorted(set(cuts)), BLOCKS]
    groups = [joined(shuffled[a:b]) for a, b in pairwise(edges)]
    nodes, expected = joined(groups), joined(blocks)
    assert list(nodes) == list(expected) == [(4, 0), (2, 4), (0, 20)]
    assert all(nodes[k].tobytes() == expected[k].tobytes() for k in nodes)
    assert total(nodes).tobytes() == total(expected).tobytes()


def test_the_tree_is_needed_as_a_chain_has_other_bits() -> None:
    each = [next(iter(b.values())) for b in block_nodes()]
    chains = {reduce(merge_moments, each).tobytes(), reduce(merge_moments, each[::-1]).tobytes()}
    assert len(chains) == 2


def test_covered_blocks_are_told_as_ranges() -> None:
    blocks = block_nodes()
    nodes = joined([blocks[k] for k in (0, 1, 2, 5, 6, 7, 20)])
    assert list(nodes) == [(1, 0), (0, 2), (0, 5), (1, 3), (0, 20)]
    assert block_ranges(nodes) == [(0, 3), (5, 8), (20, 21)]


@pytest.mark.parametrize("again", [[3], [2, 3], [0, 1, 2, 3]])
def test_a_block_that_comes_twice_is_refused(again: list[int]) -> None:
    blocks = block_nodes()
    first = joined([blocks[k] for k in range(4)])
    with pytest.raises(ValueError, match="would be counted twice"):
        joined([first, joined([blocks[k] for k in again])])
