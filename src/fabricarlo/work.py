"""What one process computes of a store, round by round, until nothing is left for it to do."""

import time
from collections.abc import Callable, Iterable, Iterator

from fabricarlo import presence as beats
from fabricarlo.claims import Claims
from fabricarlo.engine import Engine
from fabricarlo.errors import BlocksFailed
from fabricarlo.failed import Failed
from fabricarlo.finish import FINISHED, INCOMPLETE, finish, is_finished, not_finite
from fabricarlo.index import Index
from fabricarlo.interrupt import Interrupt, Interrupted
from fabricarlo.loop import Loop
from fabricarlo.notes import Notes
from fabricarlo.plan import Plan
from fabricarlo.presence import Presence
from fabricarlo.progress import Reporter
from fabricarlo.records import Damaged
from fabricarlo.samples import SampleWriter
from fabricarlo.store import SweepStore


class Work:
    """One process's blocks, and the finish of a store whose blocks are all done."""

    def __init__(
        self,
        store: SweepStore,
        plan: Plan,
        engine: Engine,
        presence: Presence,
        interrupt: Interrupt,
        reporter: Reporter,
    ) -> None:
        self.store, self.plan, self.presence = store, plan, presence
        self.interrupt, self.reporter = interrupt, reporter
        self.before: Callable[[], object] = lambda: None  # once, before the first block
        self.writer = SampleWriter(store, plan)
        self.notes = Notes(store.objects)
        self.failed = Failed(store.objects)
        self.claims = Claims(store.objects, plan.layout, presence)
        self._counted: set[int] = set()
        self.loop = Loop(
            engine, self.writer, interrupt, reporter, process=presence.name, counted=self._counted
        )
        self._begun = False
        self._started = time.monotonic()

    def run(self) -> None:
        """Compute what this process may, then finish the store, or leave it to others.

        Raises Interrupted, and BlocksFailed when all that is missing are blocks that failed.
        """
        self.store.complete(self.plan)
        for key in self.notes.segments():
            self.store.ledger.forget(key)
        index = self._index()
        self._started = time.monotonic()
        self.presence.progress = self._progress
        for number in self.failed.numbers(self.plan.layout):
            self.failed.forget(self.plan.layout.at(number))
        layout = self.plan.layout
        total = layout.cell_count * layout.samples
        self.reporter.start(self.plan.sweep.name, total, index.samples())
        while True:
            index = self._computed(index)
            if index is None:
                return
            if self._is_closed(index):
                self._say("already finished")
                return
            with self.presence.alone("finish", self._stop_if_asked):
                if self._closed():
                    return
            index = self._index()

    def _progress(self) -> dict[str, float]:
        return {"done": self.loop.done, "seconds": round(time.monotonic() - self._started, 3)}

    def _index(self) -> Index:
        return Index(self.store.ledger.segments(), self.plan.layout)

    def _stop_if_asked(self) -> None:
        if self.interrupt.number is not None:
            raise Interrupted(self.interrupt.number)

    def _missing(self, index: Index) -> dict[int, str] | None:
        """Failed blocks if nothing else is missing, else None."""
        count = self.plan.layout.block_count
        left = sum(b - a for a, b in index.done.missing(0, count))
        if not left:
            return {}
        found = self.loop.failed | self.failed.numbers(self.plan.layout)
        found = {n: m for n, m in found.items() if n not in index.done}
        return found if len(found) == left else None

    # ---- computing

    def _computed(self, index: Index) -> Index | None:
        """What is done when nothing but failed blocks is missing; None if the rest is others'."""
        while True:
            self._run(self._todo(index))
            index = self._index()
            if self._missing(index) is not None:
                return index
            if self.presence.share is not None:
                left = sum(b - a for a, b in index.done.missing(0, self.plan.layout.block_count))
                part, of = self.presence.share
                self.reporter.finish(f"share {part}/{of} done; {left:,} blocks are left to others")
                self._stop_if_failed(self.loop.failed)
                return None
            if not self._run(self.claims.abandoned(index.done, self.loop.failed)):
                self.reporter.phase("waiting for blocks of others")
                time.sleep(beats.BEAT)
            index = self._index()

    def _todo(self, index: Index) -> Iterator[int]:
        """Missing blocks of this process: those of its share, or those that it can claim."""
        if self.presence.share is None:
            yield from self.claims.unclaimed(index.done, self.loop.failed)
            return
        part, of = self.presence.share
        count = self.plan.layout.block_count
        for start, stop in index.done.missing(count * part // of, count * (part + 1) // of):
            yield from (n for n in range(start, stop) if n not in self.loop.failed)

    def _run(self, todo: Iterable[int]) -> int:
        found = self.loop.run(self._begin(todo))
        self._stop_if_asked()
        return found

    def _begin(self, todo: Iterable[int]) -> Iterator[int]:
        for number in todo:
            if not self._begun:
                self.before()
                self.reporter.phase("computing")
                self._begun = True
            yield number

    def _stop_if_failed(self, failed: dict[int, str]) -> None:
        if failed:
            number, message = next(iter(sorted(failed.items())))
            raise BlocksFailed(
                f"{self.store.name}: {len(failed):,} of {self.plan.layout.block_count:,} blocks "
                f"failed, the first is block {number}: {message}. All others are finished; the "
                "same command tries these again."
            )

    # ---- finishing, one process at a time

    def _is_closed(self, index: Index) -> bool:
        """Whether nothing is left to do: a finished store is not touched."""
        if self._missing(index) or self.notes.any() or not is_finished(self.store):
            return False
        return not self._damaged(index)

    def _closed(self) -> bool:
        """Whether the store is finished now; False if something turned out to be missing."""
        index = self._index()
        failed = self._missing(index)
        if failed is None:
            return False
        try:
            repaired = self._repair(index)
            again = bool(repaired) or self.notes.results()
            if failed:
                self._finish(index, INCOMPLETE)
                self.reporter.finish(f"{self.store.name} has the results of what is finished")
                self._stop_if_failed(failed)
            if again or not is_finished(self.store):
                self._finish(index, FINISHED)
                self.claims.forget()
                self.presence.watch.forget_the_dead()
                state = "finished"
            else:
                state = "already finished"
        except Damaged as error:
            self.reporter.phase(f"{error.reason} in {error.key}: its blocks are computed again")
            self.store.ledger.forget(error.key)
            self._counted.clear()
            return False
        self.notes.clear()
        self._say(state)
        return True

    def _say(self, state: str) -> None:
        for line in not_finite(self.store, self.plan):
            self.reporter.phase(line)
        self.reporter.finish(f"{self.store.name} is {state}")

    def _finish(self, index: Index, state: str) -> None:
        self.reporter.phase("finishing")
        finish(self.store, self.plan, index, process=self.presence.name, state=state)

    def _damaged(self, index: Index) -> set[int]:
        """Finished blocks with a chunk that is missing, cut, or that `verify` found damaged."""
        damaged = {n for n in self.notes.blocks(self.plan.layout) if n in index.done}
        if self.writer.arrays:
            for _, checks in index.checks():
                damaged |= self.writer.damaged(checks)
        return damaged

    def _repair(self, index: Index) -> int:
        damaged = self._damaged(index)
        if damaged:
            self.reporter.phase(f"repairing {len(damaged):,} blocks")
            self._counted.update(damaged)
            self._run(sorted(damaged))
        return len(damaged)
