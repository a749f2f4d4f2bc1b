"""What `verify` found damaged, left in the store for the next run to repair."""

import json
from typing import Any

from fabricarlo.layout import Layout
from fabricarlo.objects import Objects

KEY = "_run/damaged.json"


class Notes:
    """Damaged blocks, segments of the ledger and results of a store."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects

    def leave(self, blocks: list[tuple[int, int]], segments: list[str], *, results: bool) -> None:
        """Write down what must be made again; blocks as chunk and part."""
        content = {"blocks": blocks, "segments": segments, "results": results}
        self.objects.put(KEY, json.dumps(content).encode())

    def blocks(self, layout: Layout) -> set[int]:
        """Numbers of blocks with a damaged chunk."""
        found = {layout.number(chunk, part) for chunk, part in self._read().get("blocks", [])}
        return found - {-1}

    def segments(self) -> list[str]:
        """Keys of damaged segments of the ledger."""
        return list(self._read().get("segments", []))

    def results(self) -> bool:
        """Whether a final array is damaged."""
        return bool(self._read().get("results"))

    def any(self) -> bool:
        """Whether something is to be repaired."""
        return self.objects.get(KEY) is not None

    def clear(self) -> None:
        """All of it is repaired."""
        if self.any():
            self.objects.delete(KEY)

    def _read(self) -> dict[str, Any]:
        try:
            found = json.loads(self.objects.get(KEY) or b"{}")
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}
