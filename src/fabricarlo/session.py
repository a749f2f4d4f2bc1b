"""One process's work on one store: who may, what is there, what is missing."""

import dataclasses
import json
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax

from fabricarlo import __version__
from fabricarlo.engine import Engine, tile_lanes
from fabricarlo.errors import SpecError, StoreError
from fabricarlo.interrupt import Interrupt, Interrupted
from fabricarlo.objects import failures, reason_of
from fabricarlo.plan import Plan
from fabricarlo.presence import Presence, Share, live_processes
from fabricarlo.progress import Reporter
from fabricarlo.room import bytes_to_write, refuse_without_room
from fabricarlo.store import SweepStore
from fabricarlo.sweep import Sweep
from fabricarlo.template import sample_arrays
from fabricarlo.work import Work


class Session:
    """One process's work on one store."""

    def __init__(
        self,
        sweep: Sweep,
        store: SweepStore,
        share: Share,
        block: int,
        devices: list[jax.Device],
        tile: int | None,
        *,
        overwrite: bool,
        overrides: Sequence[str] = (),
    ) -> None:
        self.store, self.share, self.overrides = store, share, list(overrides)
        if self.share is not None and not 0 <= self.share[0] < self.share[1]:
            raise SpecError([f"--process {self.share[0]}/{self.share[1]}: K must be 0 .. N - 1."])
        meta = store.meta()
        lanes = tile_lanes() if tile is None else tile
        # a store keeps its own block and tile, so that chunks of two runs fit together
        if meta is not None and not overwrite:
            block, lanes = meta["block"], meta["tile"]
        try:
            if block < lanes:  # a narrower tile would have other last bits
                raise ValueError(f"a block of {block} is less than a tile of {lanes}.")
            self.plan = Plan(sweep, block=block, tile=lanes)
        except ValueError as error:
            raise SpecError([f"--block, --tile: {error}"]) from None
        self.engine = Engine(self.plan, devices)
        self.meta, self.overwrite = meta, overwrite

    # ---- before the first block

    def prepare(self) -> None:
        """Create, extend, or accept the store; refuse what is another sweep's or alive."""
        if self.meta is not None and self.overwrite:
            if live := live_processes(self.store.objects):
                raise StoreError(
                    f"{self.store.name} is held by {live[0]}; stop it before --overwrite."
                )
            self.store.erase()
            self.meta = None
        if self.meta is not None:
            self._accept(self.meta)
        before = self.meta["samples"] if self.meta else 0
        share = before / self.plan.layout.samples
        refuse_without_room(self.plan, self.store.path, int(bytes_to_write(self.plan) * share))

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
                f"{self.plan.layout.samples:,}: the first of them are in it; "
                "select them, or choose another --out."
            )

    def _probe(self, reporter: Reporter) -> str:
        """Digest of one tile, the same as the store's; what cannot run here is seen now."""
        reporter.phase("compiling")
        try:
            probe = self.engine.probe()
        except jax.errors.JaxRuntimeError as error:
            if "RESOURCE_EXHAUSTED" not in str(error):
                raise
            tile = self.plan.layout.tile
            raise SpecError(
                [
                    f"a tile of {tile} lanes does not fit the memory of {self._facts()['device']}; "
                    f"lower it (--tile {tile // 4}), or ask for fewer outputs."
                ]
            ) from None
        self._check_probe(probe)
        return probe

    def _check_probe(self, probe: str) -> None:
        if self.meta is not None and self.meta["probe"] != probe:
            raise StoreError(
                f"{self.store.name} was begun on {self.meta['device']} with "
                f"{self.meta['versions']}; here ({self._facts()['device']}, "
                f"{self._facts()['versions']}) the same inputs give other last bits. "
                "Go on there, choose another --out, or give --overwrite."
            )

    def _facts(self) -> dict[str, Any]:
        return {
            "device": self.engine.devices[0].device_kind,
            "versions": f"fabricarlo {__version__}, jax {jax.__version__}",
            "overrides": self.overrides,
        }

    def _is_laid_out(self) -> bool:
        self.meta = meta = self.store.meta()  # again: another process may have been faster
        layout = self.plan.layout
        mine = (self.plan.hash, layout.samples, layout.block, layout.tile, True)
        keys = ("hash", "samples", "block", "tile", "created")
        laid = meta is not None and tuple(meta[k] for k in keys) == mine
        return laid and self._has_arrays()

    def _has_arrays(self) -> bool:
        """Whether every array of kept samples is there: somebody may have removed them."""
        arrays = sample_arrays(self.plan) if self.plan.sweep.keep.samples else ()
        return all(self.store.objects.get(f"samples/{a.name}/zarr.json") for a in arrays)

    def _enter(self, reporter: Reporter) -> None:
        """Create or extend the store, now that this process holds it."""
        self.meta = self.store.meta()
        if self.meta is not None:
            self._accept(self.meta)
            layout = (self.meta["block"], self.meta["tile"])
            if layout != (self.plan.layout.block, self.plan.layout.tile):
                raise StoreError(
                    f"{self.store.name} was begun just now with blocks of {layout[0]}: run the "
                    "same command again."
                )
        if self.meta is not None and not self.meta["created"]:
            self.store.objects.clear("samples")  # of another layout, if a run died laying it out
        if self.meta is None or not self.meta["created"]:
            self.store.create(self.plan, self._facts() | {"probe": self._probe(reporter)})
        elif not self._has_arrays():
            self.store.objects.clear("samples")
            self.store.create(self.plan, self._facts() | {"probe": self._probe(reporter)})
        elif self.meta["samples"] < self.plan.layout.samples:
            self._extend(self.meta, self._facts() | {"probe": self._probe(reporter)})

    def _extend(self, meta: dict[str, Any], facts: dict[str, Any]) -> None:
        before = Plan(
            dataclasses.replace(self.plan.sweep, samples=meta["samples"]),
            block=meta["block"],
            tile=meta["tile"],
        )
        old, new = before.layout, self.plan.layout
        if (old.extents, old.samples_per_block) == (new.extents, new.samples_per_block):
            self.store.grow(self.plan, facts)
            return
        # chunks of a short run hold whole cells: laid out anew, and the same draws come first
        self.store.put_meta(self.plan, facts | {"created": False})
        self.store.objects.clear("_run/ledger")
        self.store.objects.clear("_run/claims")
        self.store.objects.clear("samples")
        self.store.forget_consolidated(("",))
        self.store.forget_results(self.plan)
        self.store.create(self.plan, facts)

    # ---- the work

    def work(self, interrupt: Interrupt, reporter: Reporter) -> None:
        """Compute what is missing of this share, and finish the store when nothing is missing."""

        def stop() -> None:
            if interrupt.number is not None:
                raise Interrupted(interrupt.number)

        with _explained(self.store):
            presence = Presence(self.store.objects, self.share, self.plan.layout.samples)
            self.store.make_folder()
            presence.join(self.store.name)
            try:
                if not self._is_laid_out():
                    with presence.alone("layout", stop):
                        self._enter(reporter)
                work = Work(self.store, self.plan, self.engine, presence, interrupt, reporter)
                work.before = lambda: self._probe(reporter)
                work.run()
            finally:
                presence.leave()


@contextmanager
def _explained(store: SweepStore) -> Iterator[None]:
    """Turn a refusal of the disk or the object store into a StoreError that says what to do."""
    try:
        yield
    except json.JSONDecodeError as error:
        raise StoreError(
            f"{store.name} has damaged metadata ({error}); restore the file, or give --overwrite."
        ) from error
    except failures() as error:
        raise StoreError(
            f"{store.name} could not be written: {reason_of(error)} (on {platform.node()}). What "
            "was finished is kept; make room, give permission or wait until the store answers, "
            "then run the same command again.",
            resumable=True,
        ) from error
