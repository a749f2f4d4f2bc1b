"""What the ledger says of a plan: which blocks are done, and where the summaries of a cell lie."""

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fabricarlo.compaction import Row, picked
from fabricarlo.intervals import Intervals
from fabricarlo.layout import Layout
from fabricarlo.records import Damaged
from fabricarlo.segment import Checks, Segment
from fabricarlo.summaries.state import Part, merge
from fabricarlo.summaries.wire import from_bytes


class Index:
    """The entries that count: every block in one of them at most."""

    def __init__(self, segments: Sequence[Segment], layout: Layout) -> None:
        self.layout, self.segments = layout, segments
        sizes = [len(s.entries) for s in segments]
        table = np.concatenate([np.zeros((0, 6), np.int64), *(s.entries for s in segments)])
        owner = np.repeat(np.arange(len(segments)), sizes)
        fits = _fits(table, layout)
        if not fits.all():  # usually all do, and of a million none need be copied
            table, owner = table[fits], owner[fits]
        starts = table[:, 0] * layout.blocks_per_cell + table[:, 1]
        stops = table[:, 0] * layout.blocks_per_cell + table[:, 2]
        kept = _apart(starts, stops)
        if len(kept) < len(table):
            table, owner, starts, stops = table[kept], owner[kept], starts[kept], stops[kept]
        self._table, self._owner = table, owner
        self.done = Intervals.of(starts, stops)

    def rows(self) -> list[Row]:
        """Every entry that counts, with its segment."""
        pairs = zip(self._owner.tolist(), self._table, strict=True)
        return [(self.segments[k], row) for k, row in pairs]

    def samples(self) -> int:
        """Samples that are done, of all cells."""
        chunk, start, stop = self._table[:, :3].T
        each = self.layout.samples_per_block
        of_cell = np.minimum(stop * each, self.layout.samples) - start * each
        return int((self.layout.cells_of(chunk) * of_cell).sum())

    @cached_property
    def _summaries(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Cell, segment and position in it of every summary, sorted by cell."""
        nothing = np.zeros(0, np.int64)
        cells, owners, places = [nothing], [nothing], [nothing]
        for k in np.unique(self._owner):
            every = self.segments[k].summaries
            mine = self._table[self._owner == k]
            wanted = np.zeros(len(every) + 1, np.int64)
            np.add.at(wanted, mine[:, 4], 1)
            np.add.at(wanted, mine[:, 4] + mine[:, 5], -1)
            place = np.flatnonzero(np.cumsum(wanted[:-1]))
            cells.append(every[place, 0])
            owners.append(np.full(len(place), k))
            places.append(place)
        cell = np.concatenate(cells)
        order = np.argsort(cell, kind="stable")
        return cell[order], np.concatenate(owners)[order], np.concatenate(places)[order]

    def part(self, cell: int) -> Part | None:
        """The summary of what is done of a cell. Raises Damaged."""
        cells, owners, places = self._summaries
        first, last = np.searchsorted(cells, [cell, cell + 1])
        parts = [self._read(int(owners[k]), int(places[k])) for k in range(first, last)]
        return merge(parts) if parts else None

    def _read(self, owner: int, place: int) -> Part:
        segment = self.segments[owner]
        data = segment.part(segment.summaries[place])
        try:
            return from_bytes(data)
        except ValueError as error:
            raise Damaged(segment.key, str(error)) from None

    def checks(self) -> Iterator[tuple[Segment, Checks]]:
        """Checksums of the blocks that count, a segment at a time. Raises Damaged."""
        for k in np.unique(self._owner):
            segment = self.segments[k]
            yield segment, picked(segment.checks(), self._table[self._owner == k])


def _fits(table: NDArray[np.int64], layout: Layout) -> NDArray[np.bool_]:
    """Which entries are whole in this layout: a short end of a shorter run is not."""
    chunk, _, stop, short = table[:, :4].T
    inside = (chunk < math.prod(layout.chunks)) & (stop <= layout.blocks_per_cell)
    whole = (short == 0) & (stop * layout.samples_per_block <= layout.samples)
    ends = (short == layout.samples) & (stop == layout.blocks_per_cell)
    return inside & (whole | ends)


def _apart(starts: NDArray[np.int64], stops: NDArray[np.int64]) -> NDArray[np.int64]:
    """Which ranges count, so that none overlap: the longer before the shorter.

    Two processes may have computed the same block; what an entry that does not count has beyond
    the other is computed again.
    """
    order = np.lexsort((starts - stops, starts))
    reached = np.maximum.accumulate(stops[order]) if len(order) else stops
    alone = np.ones(len(order), bool)
    alone[1:] = starts[order][1:] >= reached[:-1]
    if alone.all():
        return np.sort(order)
    kept: list[int] = []
    bounds = [*np.flatnonzero(alone).tolist(), len(order)]
    for first, last in itertools.pairwise(bounds):
        kept += _longest_first(order[first:last], starts, stops)
    return np.sort(np.array(kept, np.int64))


def _longest_first(
    group: NDArray[np.int64], starts: NDArray[np.int64], stops: NDArray[np.int64]
) -> list[int]:
    kept: list[int] = []
    for k in sorted(group.tolist(), key=lambda k: (starts[k] - stops[k], starts[k], k)):
        if all(stops[k] <= starts[j] or starts[k] >= stops[j] for j in kept):
            kept.append(k)
    return kept
