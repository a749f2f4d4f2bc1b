"""Every sample is computed once, whatever the shape of the grid."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from fabricarlo.layout import Layout


@given(
    shape=st.lists(st.tuples(st.integers(1, 5), st.booleans()), max_size=3),
    samples=st.integers(1, 700),
    replicates=st.sampled_from([1, 2, 8]),
    sizes=st.sampled_from([(16, 16), (64, 16), (64, 64), (256, 32)]),
)
def test_blocks_and_tiles_cover_every_column_once(shape, samples, replicates, sizes):
    block, tile = sizes
    grid, structural = tuple(n for n, _ in shape), tuple(s for _, s in shape)
    layout = Layout(grid, structural, samples, replicates, block, tile)
    seen = np.zeros((layout.cell_count, layout.columns_per_cell), int)
    for number in range(layout.block_count):
        found = layout.at(number)
        assert layout.number(found.chunk, found.part) == number
        assert all(
            s.stop - s.start == 1 for s, k in zip(found.region, structural, strict=True) if k
        )
        for columns in layout.tiles(found):
            assert columns.position.shape == (layout.columns_per_tile,)
            assert (columns.start + columns.count) * replicates <= block
            cells = found.cells[columns.position[: columns.count]]
            np.add.at(seen, (cells, columns.index[: columns.count]), 1)
            assert (columns.position[columns.count :] == -1).all()
            whole = layout.columns_per_cell <= layout.columns_per_tile // 2
            assert whole or len(set(cells)) <= 1
    assert (seen == 1).all()


@given(samples=st.integers(1, 10**13), replicates=st.sampled_from([1, 8]))
def test_a_block_never_crosses_a_change_of_the_upper_half(samples, replicates):
    layout = Layout((), (), samples, replicates, 2**20, 2**15)
    last = layout.at(layout.block_count - 1)
    for end in (last, layout.at(layout.block_count // 2)):
        for divisor in (1, replicates):
            assert end.start // divisor >> 32 == (end.stop - 1) // divisor >> 32
    assert last.stop == samples


def test_huge_plans_cost_nothing():
    layout = Layout((1000, 1000), (False, False), 10**12, 8, 2**20, 2**15)
    assert layout.block_count == 10**6 * -(-(10**12) // 2**20)
    assert layout.at(layout.block_count - 1).cells.tolist() == [999_999]


@pytest.mark.parametrize(
    ("block", "tile", "replicates"), [(1000, 8, 8), (64, 128, 8), (64, 16, 32), (2**33, 8, 8)]
)
def test_sizes_that_do_not_fit_are_refused(block, tile, replicates):
    with pytest.raises(ValueError, match=r"power of two|at least the one before"):
        Layout((), (), 10, replicates, block, tile)
