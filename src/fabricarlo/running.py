"""The loop of a sweep: for every block of this process's share, compute, store, record."""

import os
import platform
import time
import dataclasses
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax

from fabricarlo import __version__
from fabricarlo.blocks import Buffers, Computed, Worker
from fabricarlo.engine import Engine, tile_lanes
from fabricarlo.errors import SpecError, StoreError
from fabricarlo.finish import finish, merged_parts
from fabricarlo.interrupt import Interrupt, Interrupted
from fabricarlo.ledger import Segment, Written
from fabricarlo.plan import Plan
from fabricarlo.presence import Presence, live_processes
from fabricarlo.progress import Reporter, Silent
from fabricarlo.reading import open as open_tree
from fabricarlo.spec import load_spec
from fabricarlo.store import SampleWriter, SweepStore
from fabricarlo.summaries.state import Part, merge
from fabricarlo.sweep import Sweep

if TYPE_CHECKING:
    import xarray as xr

BLOCK = 2**20
CHECKPOINT_BLOCKS = 64
CHECKPOINT_SECONDS = 30.0


def run(
    spec: str | Path | Sweep,
    out: str | Path | None = None,
    *,
    overrides: Sequence[str] = (),
    overwrite: bool = False,
    process: tuple[int, int] | None = None,
    block: int = BLOCK,
    devices: Sequence[jax.Device] | None = None,
    reporter: Reporter | None = None,
) -> "xr.DataTree":
    """Run a sweep, or go on with one, and return its DataTree (`/`, `/samples`, `/histograms`).

    `spec` is a path, YAML text or a Sweep; `out` a directory, None for memory. `process` (K, N)
    takes the K-th of N shares of the blocks. `block` is the lanes of a block, a power of two; the
    numbers do not depend on it, nor on `devices`.

    Raises SpecError for bad input, StoreError for a store that is another sweep's or is held by a
    live process, Interrupted after a signal. What was finished before is kept in every case.
    """
    sweep = spec if isinstance(spec, Sweep) else load_spec(spec, overrides)
    store = SweepStore(out)
    reporter = reporter or Silent()
    session = Session(sweep, store, process, block, list(devices or jax.local_devices()))
    session.prepare(overwrite=overwrite)
    with Interrupt().listening() as interrupt:
        session.work(interrupt, reporter)
    return open_tree(store.target if out is None else out)


class Session:
    """One process's work on one store."""

    def __init__(
        self,
        sweep: Sweep,
        store: SweepStore,
        process: tuple[int, int] | None,
        block: int,
        devices: list[jax.Device],
    ) -> None:
        self.store, self.share = store, process or (0, 1)
        if not 0 <= self.share[0] < self.share[1]:
            raise SpecError([f"--process {self.share[0]}/{self.share[1]}: K must be 0 .. N - 1."])
        meta = store.meta()
        tile = tile_lanes()
        block = meta["block"] if meta else block
        # a store keeps its own block and tile, so that chunks of two runs fit together
        tile = min(meta["tile"] if meta else tile, block)
        self.plan = Plan(sweep, block=block, tile=tile)
        self.engine = Engine(self.plan, devices)
        self.meta = meta

    # ---- before the first block

    def prepare(self, *, overwrite: bool) -> None:
        """Create, extend, or accept the store; refuse what is another sweep's or alive."""
        if self.meta is not None and overwrite:
            if live := live_processes(self.store.objects):
                raise StoreError(
                    f"{self.store.name} is held by {live[0]}; --overwrite waits for it to end: stop it first."
                )
            self.store.erase()
            self.meta = None
        if self.meta is not None:
            self._accept(self.meta)

    def _accept(self, meta: dict[str, Any]) -> None:
        if meta["hash"] != self.plan.hash:
            raise StoreError(
                f"{self.store.name} was written by plan {meta['hash'][:12]}, this plan is "
                f"{self.plan.hash[:12]}: another spec or other outputs. Choose another --out, or "
                "give --overwrite to throw the old results away."
            )
        if meta["samples"] > self.plan.layout.samples:
            raise StoreError(
                f"{self.store.name} holds {meta['samples']:,} samples per cell, this run asks for "
                f"{self.plan.layout.samples:,}: the first of them are in it; select them, or choose another --out."
            )

    def _check_probe(self, probe: str) -> None:
        if self.meta is not None and self.meta["probe"] != probe:
            raise StoreError(
                f"{self.store.name} was begun on {self.meta['device']} with {self.meta['versions']}; "
                f"here ({self._facts()['device']}, {self._facts()['versions']}) the same inputs give other "
                "last bits. Go on there, choose another --out, or give --overwrite."
            )

    def _facts(self) -> dict[str, Any]:
        return {
            "device": self.engine.devices[0].device_kind,
            "versions": f"fabricarlo {__version__}, jax {jax.__version__}",
        }

    def _enter(self, reporter: Reporter) -> None:
        """Create or extend the store, now that this process holds it."""
        self.meta = self.store.meta()  # again: another process may have been faster
        if self.meta is not None:
            self._accept(self.meta)
            layout = (self.meta["block"], self.meta["tile"])
            if layout != (self.plan.layout.block, self.plan.layout.tile):
                raise StoreError(
                    f"{self.store.name} was begun just now with blocks of {layout[0]}: run the same "
                    "command again."
                )
        if self.meta is None or not self.meta["created"]:
            reporter.phase("compiling")
            probe = self.engine.probe()
            self._check_probe(probe)
            self.store.create(self.plan, self._facts() | {"probe": probe})
        elif self.meta["samples"] < self.plan.layout.samples:
            reporter.phase("compiling")
            probe = self.engine.probe()
            self._check_probe(probe)
            self._extend(self.meta, self._facts() | {"probe": probe})

    def _extend(self, meta: dict[str, Any], facts: dict[str, Any]) -> None:
        before = Plan(_with_samples(self.plan.sweep, meta["samples"]), block=meta["block"], tile=meta["tile"])
        old, new = before.layout, self.plan.layout
        if (old.extents, old.samples_per_block) == (new.extents, new.samples_per_block):
            self.store.grow(self.plan, facts)
            return
        if self.share[1] > 1:
            raise StoreError(
                f"{self.store.name} has cells shorter than a block and must be laid out anew to grow: "
                "start without --process first."
            )
        # chunks of a short run hold whole cells: laid out anew, and the same draws come first
        self.store.objects.clear("_run/ledger")
        self.store.objects.clear("samples")
        self.store.forget_consolidated(("", "histograms/"))
        self.store.create(self.plan, facts)

    # ---- the loop

    def work(self, interrupt: Interrupt, reporter: Reporter) -> None:
        """Compute what is missing of this share, and finish the store when nothing is missing."""
        with _reported(self.store):
            presence = Presence(self.store.objects, self.share)
            self.store._writable()
            presence.join(self.store.name)
            try:
                self._enter(reporter)
                self._blocks(interrupt, reporter)
            finally:
                presence.leave()

    def _blocks(self, interrupt: Interrupt, reporter: Reporter) -> None:
        done, parts = merged_parts(self.store.ledger, self.plan)
        writer = SampleWriter(self.store, self.plan)
        damaged = writer.damaged(done)
        todo = [n for n in self._mine() if n not in done or n in damaged]
        finished = sum(self.plan.layout.at(n).samples for n in done)
        reporter.start(self.plan.sweep.name, self.plan.layout.cell_count * self.plan.layout.samples, finished)
        if todo:
            if self.meta is not None:
                self._check_probe(self.engine.probe())
            loop = Loop(self, writer, interrupt, reporter, counted=set(done))
            loop.run(todo)
            if interrupt.number is not None:
                raise Interrupted(interrupt.number)
            done, parts = merged_parts(self.store.ledger, self.plan)
        left = self.plan.layout.block_count - len(done)
        if left:
            reporter.finish(f"share {self.share[0]}/{self.share[1]} done; {left:,} blocks are left to others")
            return
        reporter.phase("finishing")
        changed = finish(self.store, self.plan, parts, force=bool(todo))
        reporter.finish(f"{self.store.name} is {'finished' if changed else 'already finished'}")

    def _mine(self) -> range:
        part, of = self.share
        count = self.plan.layout.block_count
        return range(count * part // of, count * (part + 1) // of)


class Loop:
    """Computes blocks while a thread writes the one before, and records both in the ledger."""

    def __init__(
        self,
        session: Session,
        writer: SampleWriter,
        interrupt: Interrupt,
        reporter: Reporter,
        *,
        counted: set[int],
    ) -> None:
        self.session, self.writer = session, writer
        self.interrupt, self.reporter = interrupt, reporter
        self.counted = counted  # blocks whose summaries the ledger has: only their chunks are rewritten
        self.plan = session.plan
        self.pending: list[tuple[Written, dict[int, Part]]] = []
        self.flushed = time.monotonic()

    def run(self, todo: Sequence[int]) -> None:
        """All of `todo`, or as much as a signal allows."""
        self.reporter.phase("computing")
        worker = Worker(self.plan, self.session.engine, self.interrupt)
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
            names = {a.name for a in self.writer.wanted(block)}
            computed = worker.compute(block, buffers, names)
            if computed is None:
                return
            yield computed, buffers

    def _write(self, computed: Computed, buffers: Buffers) -> tuple[Written, dict[int, Part], Buffers]:
        return self.writer.write(computed.block, computed.values), computed.parts, buffers

    def _took(self, writing: "Future[tuple[Written, dict[int, Part], Buffers]]") -> Buffers:
        written, parts, buffers = writing.result()
        if written.number not in self.counted:
            self.pending.append((written, parts))
            self.reporter.advance(self.plan.layout.at(written.number).samples)
        overdue = time.monotonic() - self.flushed > CHECKPOINT_SECONDS
        if len(self.pending) >= CHECKPOINT_BLOCKS or overdue:
            self.flush()
        return buffers

    def flush(self) -> None:
        """Append what is pending to the ledger: from here on it is finished."""
        if self.pending:
            name = "{}of{}".format(*self.session.share)
            self.session.store.ledger.append(name, segment_of(self.plan, self.pending))
        self.pending, self.flushed = [], time.monotonic()


def segment_of(plan: Plan, pending: Sequence[tuple[Written, dict[int, Part]]]) -> Segment:
    """One segment: the summaries of whole blocks of a cell merged, short blocks on their own."""
    groups: dict[tuple[int, int], list[Part]] = {}
    for written, parts in pending:
        short = written.stop % plan.layout.samples_per_block != 0
        for cell, part in parts.items():
            groups.setdefault((cell, written.stop if short else 0), []).append(part)
    return Segment(tuple(w for w, _ in pending), {key: merge(p) for key, p in groups.items()})


def _with_samples(sweep: Sweep, samples: int) -> Sweep:
    return dataclasses.replace(sweep, samples=samples)


class _reported:  # noqa: N801 - reads as a verb where it is used
    """Turn an operating system's refusal into a StoreError that says what to do."""

    def __init__(self, store: SweepStore) -> None:
        self.store = store

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, OSError):
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise StoreError(
                f"{self.store.name} could not be written: {reason} (on {platform.node()}). What was "
                "finished is kept; make room or give permission, then run the same command again.",
                resumable=True,
            ) from error
