"""Sets of block numbers as disjoint ranges: a million finished blocks are a few numbers."""

import bisect
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray


class Intervals:
    """A set of integers as disjoint half-open ranges, ascending."""

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        pairs = np.array(list(ranges), np.int64).reshape(-1, 2)
        self._set(pairs[:, 0], pairs[:, 1])

    @classmethod
    def of(cls, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> "Intervals":
        """The union of ranges given as two arrays."""
        made = cls()
        made._set(starts, stops)
        return made

    def _set(self, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> None:
        order = np.argsort(starts, kind="stable")
        starts, stops = starts[order], np.maximum.accumulate(stops[order]) if len(stops) else stops
        fresh = np.ones(len(starts), bool)
        fresh[1:] = starts[1:] > stops[:-1]  # ranges that touch become one
        first = np.flatnonzero(fresh)
        last = np.append(first[1:] - 1, len(starts) - 1) if len(starts) else first
        self.starts: list[int] = starts[first].tolist()
        self.stops: list[int] = stops[last].tolist()

    def __len__(self) -> int:
        return sum(b - a for a, b in self)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self.starts, self.stops, strict=True)

    def __contains__(self, number: int) -> bool:
        k = bisect.bisect_right(self.starts, number) - 1
        return k >= 0 and number < self.stops[k]

    def missing(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """The ranges of [start, stop) that are not in the set."""
        k = max(0, bisect.bisect_right(self.starts, start) - 1)
        for low, high in zip(self.starts[k:], self.stops[k:], strict=True):
            if low >= stop:
                break
            if low > start:
                yield start, low
            start = max(start, high)
        if start < stop:
            yield start, stop
