"""The k best values of every row with their sample index, exact, ties to the lower index.

Value and place are packed into one int64 that sorts by value first and by place second, so that
"the k smallest integers" is the whole rule: for the bottom the value's key, for the top its
negative, above the low 32 bits of the column index (a block never crosses a change of the high
32 bits).
"""

import numpy as np
from numpy.typing import NDArray

KEPT = 64
EMPTY = np.iinfo(np.int64).max
_LOW = 0xFFFFFFFF

Ranks = NDArray[np.int64]


def rank_of(keys: NDArray[np.integer], column: NDArray[np.integer] | int) -> Ranks:
    """The integer that sorts by key, then by the low 32 bits of the column index."""
    return (keys.astype(np.int64) << 32) | (np.asarray(column, np.int64) & _LOW)


def key_of_rank(rank: Ranks) -> NDArray[np.int32]:
    """The key of a rank."""
    return (rank >> 32).astype(np.int32)


def column_of_rank(rank: Ranks, first: int) -> NDArray[np.int64]:
    """The column index of a rank whose high 32 bits are those of `first`."""
    return (rank & _LOW) | (first & ~_LOW)


def smallest(ranks: Ranks) -> Ranks:
    """The KEPT smallest along the last axis, ascending; all where there are fewer."""
    if ranks.shape[-1] > 2 * KEPT:
        ranks = np.partition(ranks, KEPT - 1, axis=-1)[..., :KEPT]
    return np.sort(ranks, axis=-1)[..., :KEPT]


class Best:
    """The KEPT smallest ranks seen so far in each of many rows.

    New ranks go to a small buffer behind the kept ones; the buffer is sorted out when it is full,
    so `bound` may be stale, which costs time and never a wrong entry.
    """

    def __init__(self, rows: int) -> None:
        self._ranks = np.full((rows, 3 * KEPT), EMPTY)
        self._filled = np.zeros(rows, np.int64)
        self.bound = np.full(rows, EMPTY)  # what is not below cannot enter

    def insert(self, row: NDArray[np.int64], ranks: Ranks) -> None:
        """Offer ranks to rows; `row` is ascending."""
        counts = np.bincount(row, minlength=len(self._filled))
        if counts.max(initial=0) > KEPT:
            row, ranks = _thinned(row, ranks, counts)
            counts = np.bincount(row, minlength=len(self._filled))
        full = np.flatnonzero(self._filled + counts > self._ranks.shape[1])
        if len(full):
            self._sort_out(full)
        self._ranks[row, self._filled[row] + _within(counts)] = ranks
        self._filled += counts

    def _sort_out(self, rows: NDArray[np.int64]) -> None:
        kept = smallest(self._ranks[rows])
        self._ranks[rows, :KEPT] = kept
        self._ranks[rows, KEPT:] = EMPTY
        self._filled[rows] = np.minimum(self._filled[rows], KEPT)
        self.bound[rows] = np.minimum(self.bound[rows], kept[:, -1])

    def result(self) -> Ranks:
        """The kept ranks, ascending, [rows, KEPT]."""
        return smallest(self._ranks)


def _within(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """0, 1, 2 ... within every row of so many entries."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def _thinned(
    row: NDArray[np.int64], ranks: Ranks, counts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], Ranks]:
    """At most the KEPT smallest of every row.

    Ties make few rows long, so the long ones are sorted out by themselves.
    """
    rows, kept = [row[counts[row] <= KEPT]], [ranks[counts[row] <= KEPT]]
    for least, most in ((KEPT, 4 * KEPT), (4 * KEPT, np.inf)):
        several = np.flatnonzero((counts > least) & (counts <= most))
        if not len(several):
            continue
        among = (counts[row] > least) & (counts[row] <= most)
        wide = np.full((len(several), counts[several].max()), EMPTY)
        wide[np.searchsorted(several, row[among]), _within(counts[several])] = ranks[among]
        rows.append(np.repeat(several, KEPT))
        kept.append(smallest(wide).reshape(-1))
    order = np.argsort(np.concatenate(rows), kind="stable")
    return np.concatenate(rows)[order], np.concatenate(kept)[order]
