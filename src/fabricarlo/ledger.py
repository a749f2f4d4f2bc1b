"""What is finished: append-only segments, one object per process and checkpoint.

A segment is written after the data it names. It holds the blocks, the checksum of every chunk and
the summaries of those blocks, so that nothing is counted twice and nothing finished is lost.
"""

import dataclasses
import io
import json
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from fabricarlo.objects import Objects
from fabricarlo.summaries.state import Part
from fabricarlo.summaries.wire import from_bytes, to_bytes

PREFIX = "_run/ledger/"


@dataclasses.dataclass(frozen=True)
class Written:
    """One finished block."""

    chunk: int  # its cells and its part of their samples: names that a longer run keeps
    part: int
    stop: int  # one past its last sample: a later, longer run sees that the block was short
    checksums: dict[str, int]  # variable -> CRC-32C of the decoded chunk
    sizes: dict[str, int | None]  # variable -> bytes of the stored chunk


@dataclasses.dataclass(frozen=True)
class Segment:
    """Some finished blocks, and the summaries of exactly these."""

    blocks: tuple[Written, ...]
    parts: dict[tuple[int, int], Part]  # (cell, stop if the block was short else 0) -> summary


def encode(segment: Segment) -> bytes:
    """A segment as the bytes of an .npz archive, whose entries carry their own checksums."""
    head = {
        "blocks": [dataclasses.asdict(b) for b in segment.blocks],
        "parts": [list(key) for key in segment.parts],
    }
    parts = enumerate(segment.parts.values())
    arrays: dict[str, Any] = {f"part{k}": _bytes(to_bytes(p)) for k, p in parts}
    out = io.BytesIO()
    np.savez(out, head=_bytes(json.dumps(head).encode()), **arrays)
    return out.getvalue()


def decode(data: bytes) -> Segment:
    """The inverse of `encode`. Raises ValueError (or zipfile's errors) for damaged bytes."""
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        head = json.loads(archive["head"].tobytes())
        parts = {
            (int(cell), int(stop)): from_bytes(archive[f"part{k}"].tobytes())
            for k, (cell, stop) in enumerate(head["parts"])
        }
    return Segment(tuple(Written(**b) for b in head["blocks"]), parts)


def _bytes(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


class Ledger:
    """The segments of a store."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects

    def append(self, process: str, segment: Segment) -> None:
        """Write the next segment of a process."""
        taken = {k.removeprefix(PREFIX) for k in self.objects.keys(PREFIX)}
        number = sum(name.startswith(f"{process}-") for name in taken)
        while (name := f"{process}-{number:08d}.npz") in taken:
            number += 1
        self.objects.put(PREFIX + name, encode(segment))

    def segments(self) -> Iterator[tuple[str, Segment]]:
        """Key and content of every readable segment; a damaged one counts as not written."""
        for key in self.objects.keys(PREFIX):
            data = self.objects.get(key)
            if data is None:
                continue
            try:
                yield key, decode(data)
            except Exception:  # whatever a damaged archive raises: its blocks are computed again
                continue

    def compact(self, segments: Iterable[tuple[str, Segment]], merged: Segment) -> None:
        """Replace segments by one; the new one is written first."""
        keys = [key for key, _ in segments]
        self.append("compact", merged)
        for key in keys:
            self.objects.delete(key)
