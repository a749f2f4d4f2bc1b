"""A segment of the ledger: some finished blocks, what they wrote, and their summaries.

The sections of a segment are read on their own: which blocks are done is known without reading a
summary, and a summary without reading another.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cached_property

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from fabricarlo.records import Record, pack
from fabricarlo.summaries.state import Part

ABSENT = -2  # size of a chunk that the store does not keep: all fill
NOT_WRITTEN = -1  # size of a chunk that another block writes


@dataclasses.dataclass(frozen=True)
class Written:
    """One finished block."""

    chunk: int  # its cells and its part of their samples: names that a longer run keeps
    part: int
    stop: int  # one past its last sample: a later, longer run sees that the block was short
    checksums: dict[str, int]  # variable -> CRC-32C of the decoded chunk
    sizes: dict[str, int | None]  # variable -> bytes of the stored chunk
    fingerprint: int = 0  # CRC-32C of its summaries


@dataclasses.dataclass(frozen=True)
class Entry:
    """Consecutive finished blocks of the same cells, and the summaries of exactly these."""

    chunk: int
    start: int  # the first part
    stop: int
    short: int  # the samples where the last block ended short of a whole one, else 0
    parts: Sequence[tuple[int, bytes]]  # cell and its summary


@dataclasses.dataclass(frozen=True)
class Checks:
    """Checksums and sizes of what blocks wrote."""

    variables: tuple[str, ...]
    blocks: NDArray[np.int64]  # [blocks, 2], chunk and part
    sums: NDArray[np.uint32]  # [blocks, variables]
    sizes: NDArray[np.int64]  # [blocks, variables]
    prints: NDArray[np.uint32]  # [blocks, 1], of the summaries

    def picked(self, rows: NDArray[np.bool_]) -> "Checks":
        """Some of the blocks."""
        arrays = (self.blocks[rows], self.sums[rows], self.sizes[rows], self.prints[rows])
        return Checks(self.variables, *arrays)


def checks_of(blocks: Sequence[Written], names: tuple[str, ...]) -> Checks:
    """The checksums of some blocks as arrays, over all variables that a store keeps."""

    def size(block: Written, name: str) -> int:
        if name not in block.sizes:
            return NOT_WRITTEN
        found = block.sizes[name]
        return ABSENT if found is None else found

    shape = (len(blocks), len(names))
    sums = [b.checksums.get(n, 0) for b in blocks for n in names]
    return Checks(
        names,
        np.array([(b.chunk, b.part) for b in blocks], np.int64).reshape(-1, 2),
        np.array(sums, np.uint32).reshape(shape),
        np.array([size(b, n) for b in blocks for n in names], np.int64).reshape(shape),
        np.array([b.fingerprint for b in blocks], np.uint32).reshape(-1, 1),
    )


def fingerprint(parts: Mapping[int, Part]) -> int:
    """CRC-32C of the summaries of a block: what a later computation of it must give again."""
    value = 0
    for cell, part in sorted(parts.items()):
        ends = (part.top.values, part.top.samples, part.bottom.values, part.bottom.samples)
        counts = (part.histogram.offsets, part.histogram.bins, part.histogram.counts)
        moments = [part.nodes[n] for n in sorted(part.nodes)]
        flags = [part.flags[n] for n in sorted(part.flags)]
        for array in (np.int64(cell), *counts, *ends, part.nonfinite, *moments, *flags):
            value = google_crc32c.extend(value, array.tobytes())
    return value


class Segment:
    """One object of the ledger, read by need."""

    def __init__(self, record: Record) -> None:
        self.record, self.key = record, record.key
        # chunk, start, stop, short, first summary, summaries
        self.entries = record.array("entries", np.int64, 6).copy()
        record.forget()

    @cached_property
    def summaries(self) -> NDArray[np.int64]:
        """[summaries, 4]: cell, place, length, checksum."""
        return self.record.array("index", np.int64, 4)

    def part(self, row: NDArray[np.int64]) -> bytes:
        """The bytes of one summary."""
        return self.record.slice("parts", int(row[1]), int(row[2]), int(row[3]))

    def checks(self) -> Checks:
        """What its blocks wrote."""
        names = tuple(self.record.facts["variables"])
        read = self.record.array
        blocks = read("blocks", np.int64, 2)
        shape = (len(blocks), len(names))
        sums = np.frombuffer(self.record.section("sums"), np.uint32).reshape(shape)
        sizes = np.frombuffer(self.record.section("sizes"), np.int64).reshape(shape)
        return Checks(names, blocks, sums, sizes, read("prints", np.uint32, 1))


def encode(entries: Sequence[Entry], checks: Checks) -> bytes:
    """A segment as bytes."""
    rows, index, blobs, place = [], [], [], 0
    for entry in entries:
        first = len(index)
        for cell, data in entry.parts:
            index.append((cell, place, len(data), google_crc32c.value(data)))
            blobs.append(data)
            place += len(data)
        rows.append((entry.chunk, entry.start, entry.stop, entry.short, first, len(index) - first))
    sections = {
        "entries": np.array(rows, np.int64).tobytes(),
        "index": np.array(index, np.int64).tobytes(),
        "blocks": checks.blocks.tobytes(),
        "sums": checks.sums.tobytes(),
        "sizes": checks.sizes.tobytes(),
        "prints": checks.prints.tobytes(),
        "parts": b"".join(blobs),
    }
    return pack({"variables": checks.variables}, sections)
