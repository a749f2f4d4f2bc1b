"""One object of several named sections of bytes, each with a checksum and readable on its own."""

import json
from collections.abc import Mapping
from typing import Any

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from fabricarlo.objects import Objects

MAGIC = b"fabricarlo ledger 2\n"
FIRST = 2**16  # bytes of the first request: of most objects all that a resume needs
_PREFIX = len(MAGIC) + 8


class Damaged(Exception):
    """An object that is cut, changed or gone. Carries its key."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key}: {reason}")
        self.key, self.reason = key, reason


class Gone(Damaged):
    """An object that was there when it was listed, and is not any more."""


def pack(facts: dict[str, Any], sections: Mapping[str, bytes]) -> bytes:
    """The bytes of an object; every section is found by its place behind the head."""
    table, place = {}, 0
    for name, data in sections.items():
        table[name] = (place, len(data), google_crc32c.value(data))
        place += len(data)
    head = json.dumps({"facts": facts, "sections": table}, separators=(",", ":")).encode()
    words = len(head).to_bytes(4, "little") + google_crc32c.value(head).to_bytes(4, "little")
    return b"".join([MAGIC, words, head, *sections.values()])


class Record:
    """An object's head, and its sections by need."""

    def __init__(self, objects: Objects, key: str, first: bytes | None) -> None:
        """`first` is the beginning of the object, as much as one request of FIRST bytes gave."""
        self.objects, self.key = objects, key
        if first is None:
            raise Gone(key, "is gone")
        if not first.startswith(MAGIC) or len(first) < _PREFIX:
            raise Damaged(key, "does not begin as a segment of a ledger")
        length = int.from_bytes(first[len(MAGIC) : len(MAGIC) + 4], "little")
        if len(first) < _PREFIX + length:
            first = self._read(0, _PREFIX + length)
        head = first[_PREFIX : _PREFIX + length]
        if google_crc32c.value(head) != int.from_bytes(first[len(MAGIC) + 4 : _PREFIX], "little"):
            raise Damaged(key, "has a head with another checksum")
        content = json.loads(head)
        self.facts: dict[str, Any] = content["facts"]
        self._sections: dict[str, tuple[int, int, int]] = content["sections"]
        self._body = _PREFIX + length
        self._first = first

    @property
    def size(self) -> int:
        """Bytes of the whole object, as its head says."""
        return self._body + sum(length for _, length, _ in self._sections.values())

    def section(self, name: str) -> bytes:
        """A whole section. Raises Damaged."""
        place, length, checksum = self._sections[name]
        return self.slice(name, 0, length, checksum) if length or place else b""

    def array(self, name: str, dtype: Any, columns: int) -> NDArray[Any]:
        """A section as a table of numbers."""
        return np.frombuffer(self.section(name), dtype).reshape(-1, columns)

    def slice(self, name: str, start: int, length: int, checksum: int) -> bytes:
        """Part of a section, by its own checksum. Raises Damaged."""
        begin = self._body + self._sections[name][0] + start
        data = self._first[begin : begin + length]
        if len(data) < length:
            data = self._read(begin, begin + length)
        if google_crc32c.value(data) != checksum:
            raise Damaged(self.key, f"has a section {name} with another checksum")
        return data

    def forget(self) -> None:
        """Let go of what the first request brought."""
        self._first = b""

    def _read(self, start: int, stop: int) -> bytes:
        data = self.objects.get_range(self.key, start, stop)
        if data is None:
            raise Gone(self.key, "is gone")
        if len(data) < stop - start:
            raise Damaged(self.key, "is cut")
        return data
