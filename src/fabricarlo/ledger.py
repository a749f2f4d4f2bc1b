"""What is finished: append-only segments, one object per process and checkpoint.

A segment is written after the data it names. It holds the blocks, the checksum of every chunk and
the summaries of those blocks, so that nothing is counted twice and nothing finished is lost.
"""

import itertools
from collections.abc import Iterable, Sequence

from fabricarlo.compaction import LARGE, Row, cut
from fabricarlo.objects import Objects
from fabricarlo.records import FIRST, Damaged, Gone, Record
from fabricarlo.segment import Checks, Entry, Segment, encode

PREFIX = "_run/ledger/"
MANY = 16  # small segments of one process that are merged


class Ledger:
    """The segments of a store."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.damaged: dict[str, str] = {}  # key -> reason, of segments that count as not written
        self._segments: dict[str, Segment] = {}
        self._mine: dict[str, list[tuple[str, int]]] = {}  # process -> small segments, their sizes
        self._numbers = itertools.count()

    def append(self, process: str, entries: Sequence[Entry], checks: Checks) -> str:
        """Write the next segment of a process, whose name nobody else has; its key."""
        taken = self.objects.keys(PREFIX) if process not in self._mine else []
        mine = self._mine.setdefault(process, [])
        while (key := f"{PREFIX}{process}-{next(self._numbers):08d}") in taken:
            pass
        data = encode(entries, checks)
        self.objects.put(key, data)
        if len(data) < LARGE:
            mine.append((key, len(data)))
        return key

    def tidy(self, process: str) -> None:
        """Merge what a process appended, where it is many small segments."""
        mine = self._mine.get(process, [])
        if len(mine) < MANY:
            return
        keys = [key for key, _ in mine]
        mine.clear()
        found = [s for s in self.segments() if s.key in keys]
        rows = [(s, row) for s in found for row in s.entries]
        self.replace(process, rows, [s.key for s in found])

    def segments(self) -> list[Segment]:
        """Every readable segment; a damaged one counts as not written."""
        while True:
            keys = self.objects.keys(PREFIX)
            fresh = [k for k in keys if k not in self._segments]
            sizes = self.objects.sizes(fresh)
            gone = False
            for key, size, first in zip(
                fresh, sizes, self.objects.get_all(fresh, FIRST), strict=True
            ):
                try:
                    record = Record(self.objects, key, first)
                    if record.size != size:
                        raise Damaged(key, f"has {size} bytes, not {record.size}")
                    self._segments[key] = Segment(record)
                    self.damaged.pop(key, None)
                except Gone:
                    gone = True  # merged meanwhile by the process that wrote it
                except (Damaged, ValueError, KeyError, TypeError) as error:
                    self.damaged[key] = str(error)
            if not gone:
                self._segments = {k: s for k, s in self._segments.items() if k in set(keys)}
                return [self._segments[k] for k in keys if k in self._segments]

    def forget(self, key: str) -> None:
        """Remove a damaged segment: its blocks are computed again."""
        self.objects.delete(key)
        self._segments.pop(key, None)
        self.damaged.pop(key, None)

    def replace(self, process: str, rows: Iterable[Row], keys: Sequence[str]) -> None:
        """Write these entries anew, neighbours merged, then remove the segments they were in.

        Whoever dies in between leaves both; what is in two segments counts once.
        """
        rows = list(rows)
        for entries, checks in cut(rows):
            self.append(process, entries, checks)
        self.objects.delete_all(keys)
