"""Finds the few values of a tile that may be among the best of the block."""

import numpy as np
from numpy.typing import NDArray

from fabricarlo.summaries.bins import NOT_FINITE, key_of
from fabricarlo.summaries.device import TileShape, TileStatistics
from fabricarlo.summaries.extremes import EMPTY, KEPT, Best, rank_of
from fabricarlo.summaries.state import Extremes, decoded


class Candidates:
    """Top and bottom of one cell's block; exact, whatever the order of the tiles."""

    def __init__(self, outputs: int, shape: TileShape) -> None:
        self._shape = shape
        self._sides = {
            -1: Best(outputs, shape.replicates),  # top: ranks of the negative keys
            1: Best(outputs, shape.replicates),
        }

    def offer_selected(self, statistics: TileStatistics, first: int) -> None:
        """Take over what the device selected from the tile that begins at column `first`."""
        top_key, top_column, low_key, low_column = map(np.asarray, statistics.best)
        for side, key, column in ((-1, -top_key, top_column), (1, -low_key, low_column)):
            ranks = np.where(np.abs(key) < NOT_FINITE, rank_of(key, first + column), EMPTY)
            missing = KEPT - ranks.shape[-1]
            ranks = np.pad(ranks, [(0, 0), (0, 0), (0, missing)], constant_values=EMPTY)
            for output in range(ranks.shape[0]):
                self._sides[side].absorb(output, ranks[output])

    def lanes(self, statistics: TileStatistics, first: int) -> dict[int, NDArray[np.bool_]]:
        """Per side, which [output, replicate, lane] may hold a value that is good enough."""
        found = {}
        for side, extreme in ((-1, statistics.highest), (1, statistics.lowest)):
            key = side * np.asarray(extreme)
            best = self._sides[side]
            if key.shape[-1] >= KEPT:
                # of the lanes' own best values the worst that must be kept bounds the first tile
                sure = np.partition(key, KEPT - 1, axis=-1)[..., KEPT - 1]
                np.minimum(best.bound, rank_of(sure + 1, 0), out=best.bound)
            found[side] = (rank_of(key, first) < best.bound[..., None]) & (key < NOT_FINITE)
        return found

    def offer(
        self,
        output: int,
        side: int,
        lanes: NDArray[np.bool_],
        values: NDArray[np.float32],
        first: int,
        valid: NDArray[np.int32],
    ) -> None:
        """Offer the values [replicates, columns] of one output in the marked lanes."""
        replicate, lane = np.nonzero(lanes)
        if not len(replicate):
            return
        width = self._shape.lanes
        columns = np.arange(0, values.shape[1], width) + lane[:, None]
        key = key_of(values[replicate[:, None], columns])
        ranks = rank_of(side * key, first + columns)
        best = self._sides[side]
        good = (ranks < best.bound[output, replicate][:, None]) & (np.abs(key) < NOT_FINITE)
        good &= columns < valid[replicate][:, None]
        best.insert(output, np.repeat(replicate, good.sum(axis=1)), ranks[good])

    def result(self, side: int, first: int) -> Extremes:
        """The best of one side; `first` has the high bits of the column index."""
        return decoded(self._sides[side].result(), side, self._shape.replicates, first)
