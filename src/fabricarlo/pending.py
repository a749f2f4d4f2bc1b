"""Finished blocks that the ledger does not name yet."""

from fabricarlo.compaction import GROUP
from fabricarlo.segment import Checks, Entry, Written, checks_of
from fabricarlo.summaries.state import Part, merge
from fabricarlo.summaries.wire import to_bytes

MERGED_TOGETHER = 8


class _Run:
    """Blocks that follow each other in one group of a cell, or of several cells."""

    def __init__(self, written: Written, short: int) -> None:
        self.chunk, self.start, self.stop = written.chunk, written.part, written.part
        self.short = short
        self.parts: dict[int, list[Part]] = {}

    def takes(self, written: Written, short: int) -> bool:
        """Whether a block goes on where this run ends."""
        same_group = written.part // GROUP == self.start // GROUP
        follows = (written.chunk, written.part) == (self.chunk, self.stop)
        # short blocks stay on their own, because a longer run computes them again
        return follows and same_group and not short and not self.short

    def add(self, parts: dict[int, Part]) -> None:
        """Summaries are merged as they come, so that memory does not grow with what waits."""
        self.stop += 1
        for cell, part in parts.items():
            waiting = self.parts.setdefault(cell, [])
            waiting.append(part)
            if len(waiting) == MERGED_TOGETHER:
                waiting[:] = [merge(waiting)]

    def entry(self) -> Entry:
        """For the ledger."""
        parts = [(cell, to_bytes(merge(found))) for cell, found in self.parts.items()]
        return Entry(self.chunk, self.start, self.stop, self.short, parts)


class Pending:
    """Finished blocks, and the summaries of exactly these."""

    def __init__(self) -> None:
        self.blocks: list[Written] = []
        self.summaries = 0  # of all blocks
        self._runs: list[_Run] = []

    def add(self, written: Written, parts: dict[int, Part], *, short: bool) -> None:
        """One more block, with the summaries of its cells."""
        end = written.stop if short else 0
        if not self._runs or not self._runs[-1].takes(written, end):
            self._runs.append(_Run(written, end))
        self._runs[-1].add(parts)
        self.blocks.append(written)
        self.summaries += len(parts)

    def entries(self) -> list[Entry]:
        """All of it, for the ledger."""
        return [run.entry() for run in self._runs]

    def checks(self, names: tuple[str, ...]) -> Checks:
        """What the blocks wrote."""
        return checks_of(self.blocks, names)
