"""One block: its tiles dispatched, summarised and laid into reused host buffers."""

import dataclasses
from collections import deque

import numpy as np

from fabricarlo.engine import Engine, Tile
from fabricarlo.interrupt import Interrupt
from fabricarlo.layout import Block
from fabricarlo.plan import Plan
from fabricarlo.summaries.state import Part
from fabricarlo.summaries.summariser import Block as BlockSummary
from fabricarlo.summaries.summariser import Columns, Summariser
from fabricarlo.template import sample_arrays


@dataclasses.dataclass(frozen=True)
class Computed:
    """A finished block: its summaries, and its samples where they are kept."""

    block: Block
    parts: dict[int, Part]  # cell -> summary
    values: dict[str, np.ndarray]  # variable -> [cell, sample], views of a buffer


class Buffers:
    """Host memory of one block; fresh memory costs twice as much as reused memory."""

    def __init__(self, plan: Plan) -> None:
        layout = plan.layout
        names = [a.source for a in sample_arrays(plan)] if plan.sweep.keep.samples else []
        lanes = layout.block
        self.flat = {n: np.empty(lanes, np.float32) for n in names}

    def fill(self, tile: Tile, replicates: int, names: set[str]) -> None:
        """Lay a tile's lanes into sample order."""
        count = tile.columns.count
        begin = tile.columns.start * replicates
        for name in names:
            array = tile.outputs[name] if name in tile.outputs else tile.draws[name]
            place = self.flat[name][begin : begin + count * replicates].reshape(count, replicates)
            lanes = np.asarray(array)
            for replicate in range(replicates):  # faster than one transposed copy
                place[:, replicate] = lanes[replicate, :count]

    def values(self, block: Block, names: set[str], replicates: int) -> dict[str, np.ndarray]:
        """The samples of a block, without padding."""
        cells, samples = len(block.cells), block.stop - block.start
        padded = -(-samples // replicates) * replicates
        return {
            n: self.flat[n][: cells * padded].reshape(cells, padded)[:, :samples] for n in names
        }


class Worker:
    """Computes blocks with a few tiles in flight."""

    def __init__(self, plan: Plan, engine: Engine, interrupt: Interrupt) -> None:
        self.plan, self.engine, self.interrupt = plan, engine, interrupt
        flags = {n: len(plan.known[n].flags) for n in plan.outputs if plan.known[n].flags}
        numbers = [n for n in plan.outputs if n not in flags]
        self.summariser = Summariser(numbers, flags, plan.sweep.replicates, plan.sweep.samples)
        self.in_flight = 2 * len(engine.devices)

    def compute(self, block: Block, buffers: Buffers, names: set[str]) -> Computed | None:
        """The block, or None when a signal's grace ran out before it was done."""
        summary = self.summariser.block(block.part)
        waiting: deque[Tile] = deque()
        for tile in self.engine.tiles(block):
            waiting.append(tile)
            if len(waiting) > self.in_flight:
                self._take(waiting.popleft(), block, summary, buffers, names)
            if self.interrupt.overdue:
                return None
        while waiting:
            self._take(waiting.popleft(), block, summary, buffers, names)
        parts = summary.finish()
        return Computed(block, parts, buffers.values(block, names, self.plan.sweep.replicates))

    def _take(
        self, tile: Tile, block: Block, summary: BlockSummary, buffers: Buffers, names: set[str]
    ) -> None:
        position = tile.columns.position
        cells = np.where(position < 0, -1, block.cells[position])
        summary.add(tile.outputs, Columns(cells, tile.columns.index))
        buffers.fill(tile, self.plan.sweep.replicates, names)
