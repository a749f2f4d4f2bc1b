"""Large cells, counted on the device: exact on nasty data, the same bits however they came."""

import tracemalloc

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricarlo.summaries import cell as cell_module
from fabricarlo.summaries.cell import CellSummary
from fabricarlo.summaries.state import Part, merge
from fabricarlo.summaries.summariser import Columns, Summariser
from tests.engine.summary_reference import (
    Table,
    assert_summarises,
    large_blocks,
    same_bits,
)

REPLICATES, WIDTH, COLUMNS = 2, 256, 1100
SAMPLES = REPLICATES * COLUMNS - 1  # the last sample of the last row is missing
TILES = 5
BLOCKS = {0: [0, 1], 1: [2, 3], 2: [4]}
FLAGS = {"reason": 3}


def nasty_table(seed: int = 5) -> Table:
    """Six outputs that each break something, and a flag with values that are no code."""
    rng = np.random.default_rng(seed)
    size = (REPLICATES, COLUMNS)
    signed = rng.lognormal(0, 8, size) * rng.choice([-1.0, 0.0, 1.0], size)
    rare = np.where(rng.random(size) < 0.01, rng.lognormal(-9, 3, size), 0.0)
    broken = rng.normal(0, 1, size)
    broken[rng.random(size) < 0.1] = np.nan
    broken[rng.random(size) < 0.1] = np.inf
    broken[0, :300] = -np.inf
    tiny = rng.choice([1e-45, -1e-45, 3e-39, 1.2e-38, 0.0, -0.0], size)
    code = rng.choice(
        [0.0, 1.0, 2.0, 3.0, -1.0, 0.5, np.nan], size, p=[0.4, 0.3, 0.2] + [0.025] * 4
    )
    columns = {
        "signed": signed,  # far beyond any window
        "rare": rare,
        "ties": rng.integers(0, 5, size),
        "constant": np.full(size, 0.1),
        "broken": broken,
        "tiny": tiny,
        "reason": code,
    }
    return {name: values.astype(np.float32) for name, values in columns.items()}


TABLE = nasty_table()
OUTPUTS = tuple(TABLE)


def summariser(*, select_on_device: bool = False) -> Summariser:
    return Summariser(OUTPUTS, FLAGS, REPLICATES, SAMPLES, select_on_device=select_on_device)


HOST, DEVICE = summariser(), summariser(select_on_device=True)


@pytest.fixture(scope="module")
def whole() -> Part:
    return merge(large_blocks(HOST, TABLE, BLOCKS, WIDTH))


@pytest.fixture(scope="module")
def single() -> Part:
    """All tiles in one block, so that the moments are one node."""
    return large_blocks(HOST, TABLE, {0: list(range(TILES))}, WIDTH)[0]


def test_every_number_is_that_of_plain_python(single: Part) -> None:
    assert_summarises(single, TABLE, SAMPLES)


def test_flags_count_codes_and_what_is_none(whole: Part) -> None:
    code = TABLE["reason"]
    for replicate in range(REPLICATES):
        row = code[replicate, : COLUMNS - (replicate == REPLICATES - 1)]
        counts = [int(np.sum(row == c)) for c in range(3)]
        expected = [*counts, len(row) - sum(counts)]
        assert whole.flags["reason"][replicate].tolist() == expected


def test_blocks_change_only_the_last_bits_of_moments(whole: Part, single: Part) -> None:
    assert whole.blocks == [(0, 3)]
    np.testing.assert_array_equal(whole.histogram.keys(), single.histogram.keys())
    np.testing.assert_array_equal(whole.histogram.counts, single.histogram.counts)
    for side in ("top", "bottom"):
        one, other = getattr(whole, side), getattr(single, side)
        np.testing.assert_array_equal(one.samples, other.samples)
        np.testing.assert_array_equal(one.values, other.values)


@settings(max_examples=8)
@given(
    st.permutations(sorted(BLOCKS)),
    st.lists(st.booleans(), min_size=3, max_size=3),
    st.sampled_from([HOST, DEVICE]),
    st.integers(0, 2),
)
def test_order_split_and_selection_leave_every_bit(
    order: list[int], backwards: list[bool], chosen: Summariser, cut: int
) -> None:
    expected = merge(large_blocks(HOST, TABLE, BLOCKS, WIDTH))
    blocks = {b: BLOCKS[b][:: -1 if backwards[b] else 1] for b in order}
    parts = large_blocks(chosen, TABLE, blocks, WIDTH)
    merged = merge([merge(parts[: cut + 1]), *parts[cut + 1 :]])
    assert same_bits(merged, expected)


@pytest.mark.parametrize("base", [-500_000, 2, 258_000, 600_000])
def test_the_window_s_place_leaves_every_bit(
    whole: Part, monkeypatch: pytest.MonkeyPatch, base: int
) -> None:
    monkeypatch.setattr(CellSummary, "_base", lambda *_: base)
    assert same_bits(merge(large_blocks(HOST, TABLE, BLOCKS, WIDTH)), whole)


def test_two_devices_leave_every_bit(whole: Part) -> None:
    devices = tuple(jax.devices())
    if len(devices) < 2:
        pytest.skip("one device only")
    assert same_bits(merge(large_blocks(HOST, TABLE, BLOCKS, WIDTH, devices=devices)), whole)
    mesh = jax.make_mesh((2,), ("column",))
    split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(None, "column"))
    parts = large_blocks(HOST, TABLE, BLOCKS, WIDTH, devices=(split,))
    assert same_bits(merge(parts), whole)


def test_a_swapped_value_is_seen(whole: Part) -> None:
    other = {name: values.copy() for name, values in TABLE.items()}
    ties = other["ties"]
    first, second = np.flatnonzero(ties[0] == 4)[0], np.flatnonzero(ties[0] == 3)[0]
    ties[0, [first, second]] = ties[0, [second, first]]  # same histogram, other samples
    changed = merge(large_blocks(HOST, other, BLOCKS, WIDTH))
    np.testing.assert_array_equal(changed.histogram.counts, whole.histogram.counts)
    assert not same_bits(changed, whole)


def test_an_output_that_does_not_vary_may_come_as_one_number() -> None:
    small = Summariser(("a", "b", "f"), {"f": 2}, REPLICATES, REPLICATES * WIDTH)
    block = small.block()
    columns = Columns(np.zeros(WIDTH, np.int32), np.arange(WIDTH))
    row = jnp.arange(WIDTH, dtype=jnp.float32)[None]
    block.add({"a": jnp.float32(2.5), "b": row, "f": jnp.ones((1, 1), jnp.float32)}, columns)
    part = block.finish()[0]
    table = {"a": np.full((REPLICATES, WIDTH), 2.5, np.float32), "b": np.asarray(row).repeat(2, 0)}
    assert_summarises(part, table, REPLICATES * WIDTH)
    assert part.flags["f"].tolist() == [[0, WIDTH, 0]] * REPLICATES


def test_flags_alone_are_summarised() -> None:
    alone = Summariser(("f",), {"f": 2}, 1, WIDTH)
    block = alone.block()
    block.add({"f": jnp.zeros((1, WIDTH))}, Columns(np.zeros(WIDTH, int), np.arange(WIDTH)))
    part = block.finish()[0]
    assert part.flags["f"].tolist() == [[WIDTH, 0, 0]]
    assert part.samples == WIDTH


def test_indices_beyond_32_bits_keep_their_samples() -> None:
    start = 5 * 2**32 + 17
    far = Summariser(("a",), {}, REPLICATES, REPLICATES * (start + WIDTH))
    block = far.block(9)
    values = np.arange(REPLICATES * WIDTH, dtype=np.float32).reshape(REPLICATES, WIDTH)
    block.add({"a": jnp.asarray(values)}, Columns(np.zeros(WIDTH, int), start + np.arange(WIDTH)))
    part = block.finish()[0]
    last = start + WIDTH - 1
    assert part.top.samples[0, :, 0].tolist() == [last * REPLICATES, last * REPLICATES + 1]
    assert part.bottom.samples[0, :, 0].tolist() == [start * REPLICATES, start * REPLICATES + 1]


def test_memory_does_not_grow_with_the_blocks() -> None:
    def run() -> tuple[int, int]:
        parts = large_blocks(HOST, TABLE, {0: [0, 1]}, WIDTH)
        del parts
        return len(jax.live_arrays()), tracemalloc.get_traced_memory()[0]

    run()
    tracemalloc.start()
    try:
        arrays, size = run()
        for _ in range(10):
            later_arrays, later = run()
    finally:
        tracemalloc.stop()
    assert later_arrays == arrays
    assert later - size < 64 * 1024  # a part is some hundred KiB, one leaked a block would show


@pytest.mark.parametrize(
    ("cells", "index"),
    [
        (np.arange(WIDTH) // 200, np.arange(WIDTH)),
        (np.zeros(WIDTH, int), np.arange(WIDTH)[::-1]),
        (np.full(WIDTH, -1), np.arange(WIDTH)),
        (np.r_[-1, np.zeros(WIDTH - 1, int)], np.arange(WIDTH)),
    ],
)
def test_a_tile_that_is_no_run_of_one_cell_is_refused(cells: np.ndarray, index: np.ndarray) -> None:
    block = HOST.block()
    block.add({n: jnp.zeros((REPLICATES, WIDTH)) for n in OUTPUTS}, Columns(cells, index))
    with pytest.raises(ValueError, match="must hold consecutive columns of one cell, padding last"):
        block.finish()


def test_a_tile_that_comes_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="the tile from column 256 came twice"):
        large_blocks(HOST, TABLE, {0: [1, 1]}, WIDTH)


def test_a_block_that_could_overflow_its_counts_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_module, "_MOST_COLUMNS", 2 * WIDTH - 1)
    with pytest.raises(ValueError, match="more than 511 columns could overflow its counts"):
        large_blocks(HOST, TABLE, BLOCKS, WIDTH)


def test_a_cell_that_comes_back_is_refused() -> None:
    block = HOST.block()
    tile = {n: jnp.zeros((REPLICATES, WIDTH)) for n in OUTPUTS}
    for cell in (1, 2, 1):
        block.add(tile, Columns(np.full(WIDTH, cell), np.arange(WIDTH)))
    with pytest.raises(ValueError, match="cell 1 came again in this block"):
        block.finish()


def test_parts_that_do_not_belong_together_are_refused(whole: Part) -> None:
    other = Summariser(("a",), {}, REPLICATES, REPLICATES * WIDTH)
    block = other.block(8)
    block.add(
        {"a": jnp.zeros((REPLICATES, WIDTH))}, Columns(np.zeros(WIDTH, int), np.arange(WIDTH))
    )
    with pytest.raises(ValueError, match="parts of different outputs do not merge"):
        merge([whole, block.finish()[0]])
    with pytest.raises(ValueError, match="blocks 0 to 1 are in two of the parts"):
        merge([whole, whole])
    with pytest.raises(ValueError, match="no parts to merge"):
        merge([])
