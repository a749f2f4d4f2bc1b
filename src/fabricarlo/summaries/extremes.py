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
    """The KEPT smallest ranks seen so far in each of outputs x replicates rows.

    New ranks go to a small buffer behind the kept ones; the buffer is sorted out when it is full,
    so `bound` may be stale, which costs time and never a wrong entry.
    """

    def __init__(self, outputs: int, replicates: int) -> None:
        self._ranks = np.full((outputs, replicates, 2 * KEPT), EMPTY)
        self._filled = np.zeros((outputs, replicates), np.int64)
        self.bound = np.full((outputs, replicates), EMPTY)  # what is not below cannot enter

    def insert(self, output: int, replicate: NDArray[np.int64], ranks: Ranks) -> None:
        """Offer ranks of one output; `replicate` is ascending."""
        counts = np.bincount(replicate, minlength=self._filled.shape[1])
        within = np.arange(len(ranks)) - np.repeat(np.cumsum(counts) - counts, counts)
        if counts.max(initial=0) > KEPT:
            wide = np.full((len(counts), counts.max()), EMPTY)
            wide[replicate, within] = ranks
            self.absorb(output, smallest(wide))
            return
        if np.any(self._filled[output] + counts > self._ranks.shape[2]):
            self._sort_out(output)
        self._ranks[output, replicate, self._filled[output, replicate] + within] = ranks
        self._filled[output] += counts

    def absorb(self, output: int, ranks: Ranks) -> None:
        """Offer KEPT ranks for every replicate of one output."""
        self._sort_out(output)
        self._ranks[output, :, KEPT : 2 * KEPT] = ranks
        self._filled[output] = 2 * KEPT
        self._sort_out(output)

    def _sort_out(self, output: int) -> None:
        kept = smallest(self._ranks[output])
        self._ranks[output, :, :KEPT] = kept
        self._ranks[output, :, KEPT:] = EMPTY
        self._filled[output] = KEPT
        self.bound[output] = kept[:, -1]

    def result(self) -> Ranks:
        """The kept ranks, ascending, [outputs, replicates, KEPT]."""
        return smallest(self._ranks)
