"""Small cells that share a tile: exact, and blind to their neighbours."""

import jax.numpy as jnp
import numpy as np
import pytest

from fabricarlo.summaries.bins import edges
from fabricarlo.summaries.state import Part
from fabricarlo.summaries.summariser import Columns, Summariser
from tests.engine.summary_reference import Table, assert_summarises, same_bits

REPLICATES, WIDTH = 4, 512
FLAGS = {"reason": 2}
CELLS = [40, 7, 1000, 3, 12]


def table_of(cell: int, columns: int) -> Table:
    rng = np.random.default_rng(cell)
    size = (REPLICATES, columns)
    wild = rng.standard_normal(size) * np.exp(rng.normal(0, 20, size))
    wild[rng.random(size) < 0.2] = np.inf
    wild[rng.random(size) < 0.1] = 0.0
    wild[0, 0] = -1e-45
    ties = rng.integers(0, 3, size) + cell
    kinds = {"wild": wild, "ties": ties, "reason": rng.integers(0, 4, size) - 1}
    return {name: values.astype(np.float32) for name, values in kinds.items()}


def packed(cells: list[int], samples: int, *, gap: int = 0) -> dict[int, Part]:
    """The parts of these cells in one tile, after `gap` columns of padding."""
    columns = -(-samples // REPLICATES)
    cell = np.full(WIDTH, -1)
    index = np.full(WIDTH, 99)
    outputs = {n: np.full((REPLICATES, WIDTH), np.nan, np.float32) for n in table_of(0, 1)}
    for turn, number in enumerate(cells):
        place = slice(gap + turn * columns, gap + (turn + 1) * columns)
        cell[place], index[place] = number, np.arange(columns)
        for name, values in table_of(number, columns).items():
            outputs[name][:, place] = values
    block = Summariser(tuple(outputs), FLAGS, REPLICATES, samples).block()
    block.add({n: jnp.asarray(v) for n, v in outputs.items()}, Columns(cell, index))
    return block.finish()


@pytest.mark.parametrize("samples", [1, 3, 4, 5, 40, 259, 357])
def test_every_number_is_that_of_plain_python(samples: int) -> None:
    parts = packed(CELLS, samples)
    assert list(parts) == CELLS
    for cell, part in parts.items():
        table = table_of(cell, -(-samples // REPLICATES))
        assert_summarises(part, table, samples)
        code = table["reason"]
        for replicate in range(REPLICATES):
            row = code[replicate, : len(range(replicate, samples, REPLICATES))]
            expected = [
                int(np.sum(row == 0)),
                int(np.sum(row == 1)),
                int(np.sum(np.abs(row - 0.5) > 1)),
            ]
            assert part.flags["reason"][replicate].tolist() == expected


@pytest.mark.parametrize("samples", [37, 397])
def test_neighbours_place_and_order_leave_every_bit(samples: int) -> None:
    together = packed(CELLS, samples)
    backwards = packed(CELLS[::-1], samples)
    for cell in CELLS:
        assert same_bits(together[cell], backwards[cell])
        assert same_bits(together[cell], packed([cell], samples, gap=3)[cell])


def test_values_that_fit_a_window_and_values_that_do_not_lie_in_their_bins() -> None:
    part = packed([3], 40)[3]
    for output in range(len(part.outputs)):
        bins = np.concatenate([part.histogram.row(output * REPLICATES + r)[0] for r in range(4)])
        low, high = edges(bins)
        values = table_of(3, 10)[part.outputs[output]].astype(np.float64)
        values = values[np.isfinite(values)]
        inside = (low[:, None] <= values) & (values <= high[:, None])
        assert np.all(inside.any(axis=0))
        assert np.all(inside.any(axis=1))


def test_a_cell_that_is_not_whole_is_refused() -> None:
    block = Summariser(("a",), {}, REPLICATES, 400).block()
    cell = np.where(np.arange(WIDTH) < 150, np.arange(WIDTH) // 100, -1)
    block.add({"a": jnp.zeros((REPLICATES, WIDTH))}, Columns(cell, np.arange(WIDTH) % 100))
    with pytest.raises(ValueError, match=r"150 columns in use, 2 cells begin; .* its 100 columns"):
        block.finish()


def test_a_numbered_block_of_whole_cells_is_refused() -> None:
    block = Summariser(("a",), {}, REPLICATES, 400).block(2)
    block.add({"a": jnp.zeros((REPLICATES, WIDTH))}, Columns(np.full(WIDTH, -1), np.arange(WIDTH)))
    with pytest.raises(ValueError, match="block 2 holds whole cells: its number must be 0"):
        block.finish()


def test_a_cell_in_two_tiles_is_refused() -> None:
    block = Summariser(("a",), {}, REPLICATES, 4 * 200).block()
    columns = Columns(np.where(np.arange(WIDTH) < 200, 5, -1), np.arange(WIDTH))
    block.add({"a": jnp.zeros((REPLICATES, WIDTH))}, columns)
    block.add({"a": jnp.zeros((REPLICATES, WIDTH))}, columns)
    with pytest.raises(ValueError, match="cell 5 came again in this block"):
        block.finish()
