"""The loop over blocks: compute one while a thread writes the one before, and record both."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from fabricarlo.blocks import Buffers, Computed, Worker
from fabricarlo.engine import Engine
from fabricarlo.interrupt import Interrupt
from fabricarlo.ledger import Segment, Written
from fabricarlo.plan import Plan
from fabricarlo.progress import Reporter
from fabricarlo.store import SampleWriter
from fabricarlo.summaries.state import Part, merge

CHECKPOINT_BLOCKS = 64
CHECKPOINT_SECONDS = 30.0
MERGED_TOGETHER = 8


class Loop:
    """Computes blocks while a thread writes the one before, and records both in the ledger."""

    def __init__(
        self,
        engine: Engine,
        writer: SampleWriter,
        interrupt: Interrupt,
        reporter: Reporter,
        *,
        process: str,
        counted: set[int],
    ) -> None:
        self.engine, self.writer, self.process = engine, writer, process
        self.interrupt, self.reporter = interrupt, reporter
        self.counted = (
            counted  # blocks whose summaries the ledger has: only their chunks are rewritten
        )
        self.plan: Plan = engine.plan
        self.pending = Pending()
        self.flushed = time.monotonic()

    def run(self, todo: Sequence[int]) -> None:
        """All of `todo`, or as much as a signal allows."""
        self.reporter.phase("computing")
        worker = Worker(self.plan, self.engine, self.interrupt)
        free = [Buffers(self.plan), Buffers(self.plan)]
        with ThreadPoolExecutor(1, "fabricarlo-writer") as pool:
            writing: Future[tuple[Written, dict[int, Part], Buffers]] | None = None
            try:
                for computed, buffers in self._computed(worker, todo, free):
                    if writing is not None:
                        free.append(self._took(writing))
                    writing = pool.submit(self._write, computed, buffers)
            finally:
                if writing is not None:
                    self._took(writing)
                self.flush()

    def _computed(
        self, worker: Worker, todo: Sequence[int], free: list[Buffers]
    ) -> Iterator[tuple[Computed, Buffers]]:
        for number in todo:
            if self.interrupt.asked:
                return
            block, buffers = self.plan.layout.at(number), free.pop()
            names = {a.source for a in self.writer.wanted(block)}
            computed = worker.compute(block, buffers, names)
            if computed is None:
                return
            yield computed, buffers

    def _write(
        self, computed: Computed, buffers: Buffers
    ) -> tuple[Written, dict[int, Part], Buffers]:
        return self.writer.write(computed.block, computed.values), computed.parts, buffers

    def _took(self, writing: "Future[tuple[Written, dict[int, Part], Buffers]]") -> Buffers:
        written, parts, buffers = writing.result()
        number = self.plan.layout.number(written.chunk, written.part)
        if number not in self.counted:
            short = written.stop % self.plan.layout.samples_per_block != 0
            self.pending.add(written, parts, short=short)
            self.reporter.advance(self.plan.layout.at(number).samples)
        overdue = time.monotonic() - self.flushed > CHECKPOINT_SECONDS
        if len(self.pending.blocks) >= CHECKPOINT_BLOCKS or overdue:
            self.flush()
        return buffers

    def flush(self) -> None:
        """Append what is pending to the ledger: from here on it is finished."""
        if self.pending.blocks:
            self.writer.store.ledger.append(self.process, self.pending.segment())
        self.pending, self.flushed = Pending(), time.monotonic()


class Pending:
    """Finished blocks that the ledger does not name yet.

    Summaries of whole blocks of a cell are merged as they come, so that memory does not grow with
    what waits; those of short blocks stay on their own, because a longer run computes them again.
    """

    def __init__(self) -> None:
        self.blocks: list[Written] = []
        self._parts: dict[tuple[int, int], list[Part]] = {}

    def add(self, written: Written, parts: dict[int, Part], *, short: bool) -> None:
        """One more block, with the summaries of its cells."""
        self.blocks.append(written)
        for cell, part in parts.items():
            waiting = self._parts.setdefault((cell, written.stop if short else 0), [])
            waiting.append(part)
            if len(waiting) == MERGED_TOGETHER:
                waiting[:] = [merge(waiting)]

    def segment(self) -> Segment:
        """All of it, for the ledger."""
        return Segment(tuple(self.blocks), {key: merge(p) for key, p in self._parts.items()})
