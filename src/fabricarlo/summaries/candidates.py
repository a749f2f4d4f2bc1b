"""Finds the few values of a tile that may be among the best of the block."""

import numpy as np
from numpy.typing import NDArray

from fabricarlo.summaries.bins import NOT_FINITE, key_of
from fabricarlo.summaries.device import TileShape, TileStatistics
from fabricarlo.summaries.extremes import EMPTY, KEPT, Best, rank_of
from fabricarlo.summaries.state import Extremes, decoded

_SIDES = (1, -1)  # bottom: ranks of the keys; top: ranks of their negatives


class Candidates:
    """Bottom and top of one cell's block; exact, whatever the order of the tiles."""

    def __init__(self, outputs: int, shape: TileShape) -> None:
        self._best = tuple(Best(outputs, shape.replicates) for _ in _SIDES)
        self._replicates = shape.replicates

    def offer_selected(self, statistics: TileStatistics, first: int) -> None:
        """Take over what the device selected from the tile that begins at column `first`."""
        top_key, top_column, low_key, low_column = map(np.asarray, statistics.best)
        selected = (-low_key, low_column), (-top_key, top_column)
        for best, (key, column) in zip(self._best, selected, strict=True):
            ranks = np.where(np.abs(key) < NOT_FINITE, rank_of(key, first + column), EMPTY)
            missing = KEPT - ranks.shape[-1]
            ranks = np.pad(ranks, [(0, 0), (0, 0), (0, missing)], constant_values=EMPTY)
            for output in range(ranks.shape[0]):
                best.absorb(output, ranks[output])

    def lanes(self, statistics: TileStatistics, first: int) -> NDArray[np.bool_]:
        """[side, output, replicate, lane]: whether the lane may hold a value good enough."""
        found = []
        extremes = statistics.lowest, statistics.highest
        for best, side, extreme in zip(self._best, _SIDES, extremes, strict=True):
            key = side * np.asarray(extreme)
            if key.shape[-1] >= KEPT and np.any(best.bound == EMPTY):
                # KEPT lanes have a value at least this good: a bound before anything is kept
                sure = np.partition(key, KEPT - 1, axis=-1)[..., KEPT - 1]
                np.minimum(best.bound, rank_of(sure + 1, 0), out=best.bound)
            found.append((rank_of(key, first) < best.bound[..., None]) & (key < NOT_FINITE))
        return np.array(found)

    def offer(
        self,
        output: int,
        lanes: NDArray[np.bool_],
        values: NDArray[np.float32],
        first: int,
        valid: NDArray[np.int32],
    ) -> None:
        """Offer the values [replicates, columns] of one output in lanes [side, replicate, lane]."""
        width = lanes.shape[-1]
        by_lane = values.reshape(self._replicates, -1, width)
        for best, side, marked in zip(self._best, _SIDES, lanes, strict=True):
            replicate, lane = np.nonzero(marked)
            key = side * key_of(by_lane[replicate, :, lane])
            # the cheap half of the comparison first: few values are left for the exact one
            limit = (best.bound[output, replicate] >> 32).astype(np.int32)
            hit, row = np.nonzero(key <= limit[:, None])
            key, replicate = key[hit, row], replicate[hit]
            column = row * width + lane[hit]
            ranks = rank_of(key, first + column)
            good = (ranks < best.bound[output, replicate]) & (np.abs(key) < NOT_FINITE)
            good &= column < valid[replicate]
            best.insert(output, replicate[good], ranks[good])

    def bottom(self, first: int) -> Extremes:
        """The smallest values; `first` has the high bits of the column index."""
        return decoded(self._best[0].result(), 1, self._replicates, first)

    def top(self, first: int) -> Extremes:
        """The largest values; `first` has the high bits of the column index."""
        return decoded(self._best[1].result(), -1, self._replicates, first)
