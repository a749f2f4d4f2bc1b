"""Where every sample lies: grid, blocks, tiles and columns. Integers only.

A sample i of a cell belongs to replicate r = i mod R and has index n = i div R there. Lanes are
computed as arrays [replicate, column]; a column holds the R samples n R .. n R + R - 1 of one cell.
"""

import dataclasses
import math
from collections.abc import Iterator
from functools import cached_property

import numpy as np

BLOCK = 2**20
"""Lanes of a block where nobody asks for another size: chunks of 4 MiB."""


@dataclasses.dataclass(frozen=True)
class Block:
    """A unit of writing and resuming: whole cells, or a range of samples of one cell."""

    chunk: int  # which cells: number of its region, in C order
    part: int  # number of this block within its cells
    region: tuple[slice, ...]  # over the axes
    cells: np.ndarray  # int64, flat cell ids in C order of the region
    start: int  # first sample
    stop: int  # one past the last sample

    @property
    def samples(self) -> int:
        """Samples computed by this block."""
        return len(self.cells) * (self.stop - self.start)


@dataclasses.dataclass(frozen=True)
class Columns:
    """The columns of one tile."""

    position: np.ndarray  # int32 [C], index into the block's cells; -1 pads, at the end only
    index: np.ndarray  # int64 [C], n
    start: int  # first column, counted over the block's cells one after the other
    count: int  # columns that do not pad


@dataclasses.dataclass(frozen=True)
class Layout:
    """How the grid is cut into blocks and tiles."""

    shape: tuple[int, ...]
    structural: tuple[bool, ...]  # axes along which the compiled program changes
    samples: int
    replicates: int
    block: int  # lanes
    tile: int  # lanes

    def __post_init__(self) -> None:
        for name in ("block", "tile", "replicates"):
            value = getattr(self, name)
            if value < 1 or value & (value - 1):
                raise ValueError(f"{name} is {value}; it must be a power of two.")
        if not self.replicates <= self.tile <= self.block <= 2**32:
            raise ValueError(
                f"{self.replicates} replicates, tile {self.tile}, block {self.block}: each must be "
                "at least the one before, and a block at most 2^32."
            )

    @cached_property
    def extents(self) -> tuple[int, ...]:
        """Cells of one block along every axis: small cells share a block, variants never do."""
        tiles = self.block // self.tile
        room = max(1, tiles * self.cells_per_tile // self.tiles_per_cell)
        extents = []
        for size, structural in zip(reversed(self.shape), reversed(self.structural), strict=True):
            extent = 1 if structural else min(size, room)
            extents.append(extent)
            room //= extent
        return tuple(reversed(extents))

    @property
    def columns_per_cell(self) -> int:
        """Columns that one whole cell fills."""
        return -(-self.samples // self.replicates)

    @property
    def columns_per_tile(self) -> int:
        """Columns of the one compiled shape."""
        return self.tile // self.replicates

    @property
    def cells_per_tile(self) -> int:
        """Whole cells that share a tile; a larger one has its tiles to itself."""
        return max(1, self.columns_per_tile // self.columns_per_cell)

    @property
    def tiles_per_cell(self) -> int:
        """Tiles that one cell fills."""
        return -(-self.columns_per_cell // self.columns_per_tile)

    @property
    def samples_per_block(self) -> int:
        """Extent of a block along the sample dimension."""
        return min(self.samples, self.block)

    @cached_property
    def chunks(self) -> tuple[int, ...]:
        """Blocks along every axis."""
        return tuple(-(-n // e) for n, e in zip(self.shape, self.extents, strict=True))

    @property
    def blocks_per_cell(self) -> int:
        """Blocks along the sample dimension."""
        return -(-self.samples // self.samples_per_block)

    @property
    def block_count(self) -> int:
        """Blocks of the whole sweep."""
        return math.prod(self.chunks) * self.blocks_per_cell

    @property
    def cell_count(self) -> int:
        """Cells of the grid."""
        return math.prod(self.shape)

    def cells_of(self, chunks: np.ndarray) -> np.ndarray:
        """The number of cells of every one of these chunks."""
        cells = np.ones(len(chunks), np.int64)
        where = np.unravel_index(chunks, self.chunks) if self.chunks else ()
        for k, extent, size in zip(where, self.extents, self.shape, strict=True):
            cells *= np.minimum(extent, size - k * extent)
        return cells

    def number(self, chunk: int, part: int) -> int:
        """The number of a block in this layout; -1 where it has no such block."""
        inside = chunk < math.prod(self.chunks) and part < self.blocks_per_cell
        return chunk * self.blocks_per_cell + part if inside else -1

    def at(self, number: int) -> Block:
        """Block `number`; blocks of one cell follow each other."""
        chunk, part = divmod(number, self.blocks_per_cell)
        where = np.unravel_index(chunk, self.chunks) if self.chunks else ()
        region = tuple(
            slice(int(k) * e, min((int(k) + 1) * e, n))
            for k, e, n in zip(where, self.extents, self.shape, strict=True)
        )
        grid = np.ix_(*(np.arange(s.start, s.stop) for s in region)) if region else ()
        cells = (
            np.ravel_multi_index(grid, self.shape).reshape(-1) if region else np.zeros(1, np.int64)
        )
        start = part * self.samples_per_block
        stop = min(start + self.samples_per_block, self.samples)
        return Block(chunk, part, region, cells, start, stop)

    def tiles(self, block: Block) -> Iterator[Columns]:
        """The tiles of a block, in order, each padded at its end."""
        first = block.start // self.replicates
        per_cell = -(-block.stop // self.replicates) - first
        width, together = self.columns_per_tile, self.cells_per_tile
        lane = np.arange(width)
        for cell in range(0, len(block.cells), together):
            total = per_cell * min(together, len(block.cells) - cell)
            for begin in range(0, total, width):
                position, index = np.divmod(lane + begin, per_cell)
                pads = lane + begin >= total
                position = np.where(pads, -1, position + cell).astype(np.int32)
                count = width - int(pads.sum())
                yield Columns(position, index + first, cell * per_cell + begin, count)
