"""Many segments of the ledger become few, and the summaries of neighbouring blocks one."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fabricarlo.segment import Checks, Entry, Segment
from fabricarlo.summaries.state import merge
from fabricarlo.summaries.wire import from_bytes, to_bytes

GROUP = 64  # consecutive blocks of a cell whose summaries are merged at once
GROWTH = 16  # and so many of these groups later, and so on
LARGE = 2**25  # bytes of a segment that is not merged with others

Row = tuple[Segment, NDArray[np.int64]]
"""An entry of a segment."""


def cut(rows: list[Row]) -> Iterator[tuple[list[Entry], Checks]]:
    """Entries for segments of a bounded size, with the checksums of their blocks."""
    entries: list[Entry] = []
    used: list[Row] = []
    size = 0
    for group in windows(rows):
        entries.append(_joined(group))
        used += group
        size += sum(len(data) for _, data in entries[-1].parts)
        size += sum(int(row[2] - row[1]) for _, row in group) * 64
        if size >= LARGE:
            yield entries, _checks(used)
            entries, used, size = [], [], 0
    if entries:
        yield entries, _checks(used)


def windows(rows: list[Row]) -> Iterator[list[Row]]:
    """Groups of entries to merge: those that fill an aligned window of blocks of a cell.

    Windows are nested or apart, so that entries of two processes never half overlap.
    """
    whole = [r for r in rows if not r[1][3]]
    groups = {(int(r[1][0]), int(r[1][1])): [r] for r in whole}
    width, longest = GROUP, max((int(r[1][2]) for r in whole), default=0)
    while width <= longest:
        apart: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for chunk, start in sorted(groups):
            apart.setdefault((chunk, start // width), []).append((chunk, start))
        for (_, k), keys in apart.items():
            inside = [r for key in keys for r in groups[key]]
            filled = sum(int(row[2] - row[1]) for _, row in inside)
            last = max(int(row[2]) for _, row in inside)
            if len(keys) > 1 and filled == width and last == (k + 1) * width:
                for key in keys:
                    del groups[key]
                groups[keys[0]] = inside
        width *= GROWTH
    yield from (groups[key] for key in sorted(groups))
    yield from ([r] for r in rows if r[1][3])


def _joined(group: list[Row]) -> Entry:
    chunk, _, _, short, _, _ = (int(n) for n in group[0][1])
    parts: dict[int, list[bytes]] = {}
    for segment, row in group:
        for summary in segment.summaries[row[4] : row[4] + row[5]]:
            parts.setdefault(int(summary[0]), []).append(segment.part(summary))
    starts, stops = ([int(row[k]) for _, row in group] for k in (1, 2))
    merged = [
        (cell, found[0] if len(found) == 1 else to_bytes(merge([from_bytes(f) for f in found])))
        for cell, found in parts.items()
    ]
    return Entry(chunk, min(starts), max(stops), short, merged)


def _checks(used: list[Row]) -> Checks:
    """Checksums of exactly the blocks of these entries."""
    by_key: dict[str, tuple[Segment, list[NDArray[np.int64]]]] = {}
    for segment, row in used:
        by_key.setdefault(segment.key, (segment, []))[1].append(row)
    found = [picked(s.checks(), np.array(rows)) for s, rows in by_key.values()]
    arrays = zip(*((c.blocks, c.sums, c.sizes, c.prints) for c in found), strict=True)
    return Checks(found[0].variables, *(np.concatenate(a) for a in arrays))


def picked(checks: Checks, rows: NDArray[np.int64]) -> Checks:
    """Of the checksums of a segment those of the blocks of some of its entries."""
    order = np.lexsort((rows[:, 1], rows[:, 0]))
    chunk, start, stop = rows[order, :3].T
    # chunk and part in one number, as no cell has 2^40 blocks
    begins, ends = (chunk << 40) + start, (chunk << 40) + stop
    place = (checks.blocks[:, 0] << 40) + checks.blocks[:, 1]
    k = np.searchsorted(begins, place, side="right") - 1
    return checks.picked((k >= 0) & (place < ends[np.maximum(k, 0)]))
