"""Blocks that a device could not compute: one object each, so that others and `status` see them."""

import json
from typing import Any

from fabricarlo.layout import Block, Layout
from fabricarlo.objects import Objects

PREFIX = "_run/failed/"


class Failed:
    """The failed blocks of a store."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects

    def record(self, block: Block, message: str) -> None:
        """Say that a block failed, and how."""
        text = {"chunk": block.chunk, "part": block.part, "message": message}
        self.objects.put(_key(block.chunk, block.part), json.dumps(text).encode())

    def all(self) -> list[dict[str, Any]]:
        """What is recorded."""
        found = []
        for data in self.objects.get_all(self.objects.keys(PREFIX)):
            try:
                record = json.loads(data or b"")
                found.append({k: record[k] for k in ("chunk", "part", "message")})
            except (ValueError, KeyError, TypeError):
                continue  # damaged: the block is simply not done
        return found

    def numbers(self, layout: Layout) -> dict[int, str]:
        """Failed blocks of a plan, and their messages."""
        named = {layout.number(f["chunk"], f["part"]): f["message"] for f in self.all()}
        return {n: m for n, m in named.items() if n >= 0}

    def forget(self, block: Block) -> None:
        """A block is to be tried again."""
        self.objects.delete(_key(block.chunk, block.part))


def _key(chunk: int, part: int) -> str:
    return f"{PREFIX}{chunk}.{part}.json"
