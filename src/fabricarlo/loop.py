"""The loop over blocks: compute one while a thread writes the one before, and record both."""

import dataclasses
import gc
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import jax

from fabricarlo.blocks import Buffers, Computed, Worker
from fabricarlo.engine import Engine
from fabricarlo.errors import StoreError
from fabricarlo.failed import Failed
from fabricarlo.interrupt import Interrupt
from fabricarlo.layout import Block
from fabricarlo.pending import Pending
from fabricarlo.plan import Plan
from fabricarlo.progress import Reporter
from fabricarlo.samples import SampleWriter
from fabricarlo.segment import Written, fingerprint
from fabricarlo.summaries.state import Part

CHECKPOINT_BLOCKS = 64
CHECKPOINT_SECONDS = 30.0
CHECKPOINT_SUMMARIES = 4096
FAILURES_IN_A_ROW = 3

_Writing = Future[tuple[Written, dict[int, Part], Buffers]]


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
        """process: a name in the ledger that nobody else has; counted: blocks whose summaries
        the ledger has, so that only their chunks are rewritten.
        """
        self.engine, self.writer, self.process = engine, writer, process
        self.interrupt, self.reporter = interrupt, reporter
        self.counted = counted
        self.plan: Plan = engine.plan
        self.pending = Pending()
        self.flushed = time.monotonic()
        self.done = 0  # samples that this process finished
        self.failed: dict[int, str] = {}
        self._in_a_row = 0
        self._failed = Failed(writer.store.objects)
        self._worker = Worker(self.plan, engine, interrupt)
        self._free = [Buffers(self.plan), Buffers(self.plan)]

    def run(self, todo: Iterable[int]) -> int:
        """All of `todo`, or as much as a signal allows; how many blocks were finished."""
        before = self.done
        with ThreadPoolExecutor(1, "fabricarlo-writer") as pool:
            writing: _Writing | None = None
            try:
                for computed, buffers in self._computed(todo):
                    taken, writing = writing, pool.submit(self._write, computed, buffers)
                    if taken is not None:
                        self._take(taken)
            finally:
                try:
                    if writing is not None:
                        self._take(writing)
                finally:
                    self.flush()
        return self.done - before

    def _computed(self, todo: Iterable[int]) -> Iterator[tuple[Computed, Buffers]]:
        for number in todo:
            if self.interrupt.asked:
                return
            block, buffers = self.plan.layout.at(number), self._free.pop()
            computed = self._tried(number, block, buffers)
            if computed is not None:
                yield computed, buffers
                continue
            self._free.append(buffers)
            if self.interrupt.asked:
                return

    def _tried(self, number: int, block: Block, buffers: Buffers) -> Computed | None:
        """The block; None where a signal's grace ran out, or where it failed twice."""
        names = {a.source for a in self.writer.wanted(block)}
        try:
            try:
                found = self._worker.compute(block, buffers, names)
            except jax.errors.JaxRuntimeError:
                gc.collect()  # what the failed attempt still held on the device
                found = self._worker.compute(block, buffers, names)
        except jax.errors.JaxRuntimeError as error:
            self._fail(number, block, str(error).partition("\n")[0])
            return None
        self._in_a_row = 0
        return found

    def _fail(self, number: int, block: Block, message: str) -> None:
        self.failed[number] = message
        self._failed.record(block, message)
        self._in_a_row += 1
        self.reporter.phase(f"block {number} failed twice and is left out: {message}")
        if self._in_a_row >= FAILURES_IN_A_ROW:
            device = self.engine.devices[0].device_kind
            raise StoreError(
                f"{self.writer.store.name}: {self._in_a_row} blocks in a row failed on {device} "
                f"({message}). What was finished is kept; see to the device, lower its load or "
                "ask for fewer outputs, then run the same command again.",
                resumable=True,
            )

    def _write(
        self, computed: Computed, buffers: Buffers
    ) -> tuple[Written, dict[int, Part], Buffers]:
        written = self.writer.write(computed.block, computed.values)
        marked = dataclasses.replace(written, fingerprint=fingerprint(computed.parts))
        return marked, computed.parts, buffers

    def _take(self, writing: _Writing) -> None:
        written, parts, buffers = writing.result()
        self._free.append(buffers)
        number = self.plan.layout.number(written.chunk, written.part)
        samples = self.plan.layout.at(number).samples
        self.done += samples
        if number not in self.counted:
            self.counted.add(number)
            short = written.stop % self.plan.layout.samples_per_block != 0
            self.pending.add(written, parts, short=short)
            self.reporter.advance(samples)
        overdue = time.monotonic() - self.flushed > CHECKPOINT_SECONDS
        many = self.pending.summaries >= CHECKPOINT_SUMMARIES
        if len(self.pending.blocks) >= CHECKPOINT_BLOCKS or overdue or many:
            self.flush()

    def flush(self) -> None:
        """Append what is pending to the ledger: from here on it is finished."""
        pending, self.pending = self.pending, Pending()
        self.flushed = time.monotonic()
        if pending.blocks:
            ledger = self.writer.store.ledger
            checks = pending.checks(self.writer.names())
            ledger.append(self.process, pending.entries(), checks)
            ledger.tidy(self.process)
