"""Sparse integer histograms: only the occupied bins of every row are kept."""

import dataclasses
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

# a key holds row and bin in one integer that sorts by row, then bin
_BIN_BITS = 21
_BIN_ZERO = 2 ** (_BIN_BITS - 1)


@dataclasses.dataclass(frozen=True)
class Histogram:
    """Counts of `rows` histograms, rows one after the other, bins ascending within a row."""

    offsets: NDArray[np.int64]  # [rows + 1]: row r is the slice offsets[r] : offsets[r + 1]
    bins: NDArray[np.int32]
    counts: NDArray[np.int64]  # all > 0

    @property
    def rows(self) -> int:
        """The number of histograms."""
        return len(self.offsets) - 1

    def keys(self) -> NDArray[np.int64]:
        """One strictly ascending integer for every occupied bin."""
        row = np.repeat(np.arange(self.rows), np.diff(self.offsets))
        return keys_of(row, self.bins)

    def row(self, number: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Bins and counts of one row."""
        part = slice(self.offsets[number], self.offsets[number + 1])
        return self.bins[part], self.counts[part]

    def folded(self, group: int) -> "Histogram":
        """Each `group` consecutive rows added into one, as replicates into a pooled sample."""
        row = np.repeat(np.arange(self.rows) // group, np.diff(self.offsets))
        return histogram_of(keys_of(row, self.bins), self.counts, self.rows // group)


def keys_of(row: NDArray[np.integer], bins: NDArray[np.integer]) -> NDArray[np.int64]:
    """The sort key of a bin in a row."""
    return (row.astype(np.int64) << _BIN_BITS) + (bins.astype(np.int64) + _BIN_ZERO)


def histogram_of(keys: NDArray[np.int64], counts: NDArray[np.int64], rows: int) -> Histogram:
    """The histogram of these (key, count) pairs; a key may come more than once, in any order."""
    if np.any(keys[1:] <= keys[:-1]):
        # stable: a merge sort, which is fast on the few ascending runs that a merge brings
        order = np.argsort(keys, kind="stable")
        keys, counts = keys[order], counts[order]
        fresh = np.concatenate([[True], keys[1:] != keys[:-1]])
        if not fresh.all():
            starts = np.flatnonzero(fresh)
            keys, counts = keys[starts], np.add.reduceat(counts, starts)
    offsets = np.searchsorted(keys, np.arange(rows + 1, dtype=np.int64) << _BIN_BITS)
    bins = (keys & (2**_BIN_BITS - 1)) - _BIN_ZERO
    return Histogram(offsets.astype(np.int64), bins.astype(np.int32), counts.astype(np.int64))


def merge_histograms(histograms: Iterable[Histogram]) -> Histogram:
    """The sum of histograms with the same rows."""
    histograms = list(histograms)
    if len(histograms) == 1:
        return histograms[0]
    keys = np.concatenate([h.keys() for h in histograms])
    counts = np.concatenate([h.counts for h in histograms])
    return histogram_of(keys, counts, histograms[0].rows)
