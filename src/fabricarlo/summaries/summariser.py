"""From tiles to parts: the tiles of a block are summarised one step behind the device."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from jax import Array
from numpy.typing import NDArray

from fabricarlo.summaries.cell import CellSummary, Tile
from fabricarlo.summaries.device import Device, Programs, TileShape
from fabricarlo.summaries.packed import packed_parts
from fabricarlo.summaries.state import Part


@dataclasses.dataclass(frozen=True)
class Columns:
    """The samples of a tile: row r of a column is sample index * replicates + r of its cell."""

    cell: NDArray[np.integer]  # [columns], id of the cell; -1 for padding
    index: NDArray[np.integer]  # [columns], index of the column in its cell


class Summariser:
    """Summarises the tiles of one variant; holds the compiled programs and their memory.

    A cell of at most half a tile's columns is always summarised on the host and lies whole in its
    tile; a larger one on the device, where its tiles hold nothing else and begin with the cell's
    columns in order. The choice depends on `samples` and the tile's shape only, and so do the bits.
    """

    def __init__(
        self,
        outputs: Sequence[str],
        flags: Mapping[str, int],
        replicates: int,
        samples: int,
        *,
        select_on_device: bool | None = None,
    ) -> None:
        """outputs: all names, in order; flags: those that are flags, with their number of codes.

        samples: of every cell. select_on_device: where top and bottom are found (None: on the
        host where the device is a CPU); the result is the same.
        """
        self.outputs = tuple(name for name in outputs if name not in flags)
        self.flags = dict(flags)
        self.replicates = replicates
        self.samples = samples
        self._select_on_device = select_on_device
        self._programs: dict[TileShape, Programs] = {}

    def block(self, number: int = 0) -> "Block":
        """Begin a block: number `number` of its cell, 0 for a block of whole cells."""
        return Block(self, number)

    def programs(self, columns: int, device: Device) -> Programs:
        """The programs for tiles of this many columns."""
        select = self._select_on_device
        if select is None:
            select = device.platform != "cpu"
        shape = TileShape(self.replicates, columns, tuple(self.flags.values()), select)
        if shape not in self._programs:
            self._programs[shape] = Programs(shape, len(self.outputs))
        return self._programs[shape]


class Block:
    """One block in the making: `add` its tiles, then `finish`."""

    def __init__(self, summariser: Summariser, number: int) -> None:
        self._summariser = summariser
        self._number = number
        self._parts: dict[int, Part] = {}
        self._large: tuple[int, CellSummary] | None = None  # the large cell at hand
        self._waiting: tuple[Mapping[str, Array], Columns] | None = None

    def add(self, outputs: Mapping[str, Array], columns: Columns) -> None:
        """Take one tile: arrays [replicates, columns] on a device, or that broadcast to it.

        Returns without waiting for this tile; works on the one before it. The tiles of a large
        cell may come in any order, but one cell after the other.
        """
        self._take()
        self._waiting = outputs, columns

    def finish(self) -> dict[int, Part]:
        """The part of every cell of the block, by cell id; waits for the device."""
        self._take()
        self._close()
        return self._parts

    def _take(self) -> None:
        if self._waiting is None:
            return
        (outputs, columns), self._waiting = self._waiting, None
        width = -(-self._summariser.samples // self._summariser.replicates)
        if 2 * width <= len(columns.cell):
            self._take_packed(outputs, columns)
        else:
            self._take_large(outputs, columns)

    def _take_packed(self, outputs: Mapping[str, Array], columns: Columns) -> None:
        what = self._summariser
        if self._number:
            raise ValueError(f"block {self._number} holds whole cells: its number must be 0.")
        size = (what.replicates, len(columns.cell))
        host = {name: np.broadcast_to(np.asarray(array), size) for name, array in outputs.items()}
        parts = packed_parts(
            {name: host[name].astype(np.float32, copy=False) for name in what.outputs},
            {name: (host[name], codes) for name, codes in what.flags.items()},
            columns.cell,
            columns.index,
            what.samples,
            what.replicates,
        )
        self._refuse_again(parts)
        self._parts |= parts

    def _take_large(self, outputs: Mapping[str, Array], columns: Columns) -> None:
        what = self._summariser
        cell, first, used = self._run(columns)
        if self._large is not None and self._large[0] != cell:
            self._close()
        self._refuse_again([cell])
        arrays = [outputs[name] for name in (*what.outputs, *what.flags)]
        if self._large is None:
            device = min(arrays[0].devices(), key=lambda d: d.id)
            programs = what.programs(len(columns.cell), device)
            self._large = cell, CellSummary(programs, what.outputs, tuple(what.flags))
        # row r has the samples n * replicates + r < samples
        ends = -(-(what.samples - np.arange(what.replicates)) // what.replicates)
        valid = np.clip(ends - first, 0, used).astype(np.int32)
        values, flags = arrays[: len(what.outputs)], arrays[len(what.outputs) :]
        self._large[1].add(Tile(tuple(values), tuple(flags), first, valid))

    def _run(self, columns: Columns) -> tuple[int, int, int]:
        """Cell, first index and number of the columns of a tile that holds one cell."""
        used = int(np.count_nonzero(columns.cell >= 0))
        cell, index = columns.cell[:used], columns.index[:used].astype(np.int64)
        if not used or np.any(cell != cell[0]) or np.any(np.diff(index) != 1):
            raise ValueError(
                f"a tile of cells of {self._summariser.samples:,} samples, too many to pack, must "
                "hold consecutive columns of one cell, padding last."
            )
        return int(cell[0]), int(index[0]), used

    def _refuse_again(self, cells: Iterable[int]) -> None:
        if twice := self._parts.keys() & set(cells):
            raise ValueError(
                f"cell {min(twice)} came again in this block: add the tiles of a cell together."
            )

    def _close(self) -> None:
        if self._large is not None:
            cell, summary = self._large
            self._parts[cell] = summary.part(self._number)
            self._large = None
