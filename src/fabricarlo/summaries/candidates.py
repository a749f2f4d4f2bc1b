"""Finds the few values of a tile that may be among the best of the block."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fabricarlo.summaries.bins import NOT_FINITE, key_of
from fabricarlo.summaries.device import TileShape, TileStatistics
from fabricarlo.summaries.extremes import EMPTY, KEPT, Best, Ranks, rank_of
from fabricarlo.summaries.state import Extremes, decoded

_SIDES = (1, -1)  # bottom: ranks of the keys; top: ranks of their negatives


class Candidates:
    """Bottom and top of one cell's block; exact, whatever the order of the tiles."""

    def __init__(self, outputs: int, shape: TileShape) -> None:
        self._size = (outputs, shape.replicates)
        self._best = tuple(Best(outputs * shape.replicates) for _ in _SIDES)

    def offer_selected(self, statistics: TileStatistics, first: int) -> None:
        """Take over what the device selected from the tile that begins at column `first`."""
        top_key, top_column, low_key, low_column = map(np.asarray, statistics.best)
        selected = (-low_key, low_column), (-top_key, top_column)
        for best, (key, column) in zip(self._best, selected, strict=True):
            flat = key.reshape(-1, key.shape[-1])
            ranks = rank_of(flat, first + column.reshape(flat.shape))
            row, place = np.nonzero(np.abs(flat) < NOT_FINITE)
            best.insert(row, ranks[row, place])

    def lanes(self, statistics: TileStatistics, first: int) -> NDArray[np.bool_]:
        """[side, output, replicate, lane]: whether the lane may hold a value good enough."""
        found = []
        extremes = statistics.lowest, statistics.highest
        for best, side, extreme in zip(self._best, _SIDES, extremes, strict=True):
            key = side * np.asarray(extreme)
            bound = best.bound.reshape(self._size)
            if key.shape[-1] >= KEPT and np.any(bound == EMPTY):
                # KEPT lanes have a value at least this good: a bound before anything is kept
                sure = np.partition(key, KEPT - 1, axis=-1)[..., KEPT - 1]
                np.minimum(bound, rank_of(sure + 1, 0), out=bound)
            found.append((rank_of(key, first) < bound[..., None]) & (key < NOT_FINITE))
        return np.array(found)

    def offer(
        self,
        lanes: NDArray[np.bool_],
        values: Callable[[int], NDArray[np.float32]],
        first: int,
        valid: NDArray[np.int32],
    ) -> None:
        """Offer the values [replicates, columns] in lanes [side, output, replicate, lane].

        `values` gives those of an output; all outputs are sorted through together.
        """
        width = lanes.shape[-1]
        read: dict[int, NDArray[np.float32]] = {}
        for output in np.flatnonzero(lanes.any(axis=(0, 2, 3))).tolist():
            read[output] = values(output).reshape(self._size[1], -1, width)
        for best, side, marked in zip(self._best, _SIDES, lanes, strict=True):
            output, replicate, lane = np.nonzero(marked)
            if not len(output):
                continue
            ends = np.searchsorted(output, [*read, self._size[0]])
            picked = [
                read[number][replicate[a:b], :, lane[a:b]]
                for number, a, b in zip(read, ends, ends[1:], strict=False)
            ]
            key = side * key_of(np.concatenate(picked))
            row = output * self._size[1] + replicate
            # the cheap half of the comparison first: few values are left for the exact one
            limit = (best.bound[row] >> 32).astype(np.int32)
            hit, step = np.nonzero(key <= limit[:, None])
            key, row, replicate = key[hit, step], row[hit], replicate[hit]
            column = step * width + lane[hit]
            ranks = rank_of(key, first + column)
            good = (ranks < best.bound[row]) & (np.abs(key) < NOT_FINITE)
            good &= column < valid[replicate]
            best.insert(row[good], ranks[good])

    def _result(self, side: int) -> Ranks:
        return self._best[side].result().reshape(*self._size, KEPT)

    def bottom(self, first: int) -> Extremes:
        """The smallest values; `first` has the high bits of the column index."""
        return decoded(self._result(0), 1, self._size[1], first)

    def top(self, first: int) -> Extremes:
        """The largest values; `first` has the high bits of the column index."""
        return decoded(self._result(1), -1, self._size[1], first)
