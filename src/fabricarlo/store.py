"""A sweep's Zarr hierarchy: what stands in it, and how it is made and grown."""

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import zarr
from zarr.errors import ContainsArrayError, ContainsGroupError

from fabricarlo import __version__
from fabricarlo.errors import StoreError
from fabricarlo.ledger import Ledger
from fabricarlo.objects import Objects, is_url, open_store, reason_of
from fabricarlo.plan import Plan
from fabricarlo.template import CONVENTIONS, create_samples, sample_arrays, write_axes

PLAN = "_run/plan.json"
MUST_HAVE = ("hash", "samples", "block", "tile", "probe", "created", "device", "versions")
TRIES = 20  # to make what another process makes at the same moment


def _tails(plan: Plan) -> dict[str, str]:
    """The attribute of a store whose samples have weights; no attribute of any other."""
    texts = [
        f"{t.stream} {'beyond' if t.upper else 'below'} "
        f"{1 - t.probability if t.upper else t.probability:.12g} (share {t.share:g})"
        for t in plan.sweep.tails
    ]
    return {"tail": ", ".join(texts)} if texts else {}


class SweepStore:
    """The store of one sweep: in a directory, in an object store by its URL, or in memory."""

    def __init__(self, path: str | Path | None) -> None:
        self.path = path
        self.folder = None if path is None or is_url(path) else Path(path)
        if self.folder is not None and self.folder.is_file():
            raise StoreError(f"{path} is a file; a store is a directory: choose another --out.")
        self.target = open_store(path)
        self.objects = Objects(self.target)
        self.ledger = Ledger(self.objects)

    # ---- what is there

    @property
    def name(self) -> str:
        """The store in messages."""
        return "the store in memory" if self.path is None else f"store {self.path}"

    def meta(self) -> dict[str, Any] | None:
        """The plan the store was made for, or None where there is no store.

        Raises StoreError where something else lies at the path.
        """
        if self.folder is not None and not self.folder.exists():
            return None  # asking the store itself would make the directory
        data = self.objects.get(PLAN)
        if data is not None:
            return self._read(data)
        if self.path is not None and not self._is_ours():
            raise StoreError(
                f"{self.path} is not empty and holds no fabricarlo store; choose another --out, or "
                "remove it yourself."
            )
        return None

    def _read(self, data: bytes) -> dict[str, Any]:
        try:
            meta = json.loads(data)
            return {name: meta[name] for name in MUST_HAVE} | meta
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"{self.name} has a damaged {PLAN} ({error!r}); restore it, or remove the store "
                "and run again: the numbers will be the same."
            ) from error

    def _is_ours(self) -> bool:
        """Whether a place is empty, or was left by a run that died before it had a plan."""
        is_empty = (
            self.objects.is_empty() if self.folder is None else not any(self.folder.iterdir())
        )
        return is_empty or bool(self.objects.keys("_run/processes/"))

    def create(self, plan: Plan, facts: dict[str, Any]) -> None:
        """An empty store of this plan."""
        self.make_folder()
        # The plan comes first, so that arrays never lie here without one. Nothing is deleted: of
        # several processes that start at once, or after each other's death, each writes the same.
        self.put_meta(plan, facts | {"created": False})
        for left in reversed(range(TRIES)):
            try:
                root = zarr.open_group(self.target, mode="a", use_consolidated=False)
                root.update_attributes(self._attributes(plan, facts))
                root.require_group("_run")
                self.complete(plan)
                break
            except (ContainsArrayError, ContainsGroupError, FileNotFoundError):
                if not left:
                    raise
                time.sleep(0.05)
        self.put_meta(plan, facts | {"created": True})

    def complete(self, plan: Plan) -> None:
        """Make the arrays that are missing."""
        root = zarr.open_group(self.target, mode="r+", use_consolidated=False)
        write_axes(root, plan)
        if plan.sweep.keep.samples:
            create_samples(root, plan)

    def put_meta(self, plan: Plan, facts: dict[str, Any]) -> None:
        """Record plan, layout and device: what a later process must agree with."""
        layout = plan.layout
        meta = facts | {
            "hash": plan.hash,
            "samples": layout.samples,
            "block": layout.block,
            "tile": layout.tile,
            "shape": layout.shape,
            "structural": layout.structural,
            "replicates": layout.replicates,
            "streams": {s.name: s.dimension for s in plan.streams.values()},
            "content": plan.content,
        }
        self.objects.put(PLAN, json.dumps(meta, indent=1, sort_keys=True).encode())

    def _attributes(self, plan: Plan, facts: dict[str, Any]) -> dict[str, Any]:
        sweep = plan.sweep
        return (
            {
                "Conventions": CONVENTIONS,
                "title": sweep.name,
                "outputs": list(plan.outputs),
                "description": sweep.description,
                "spec": sweep.text,
                "plan": plan.hash,
                "seed": sweep.seed,
                "samples": sweep.samples,
                "sampler": sweep.sampler,
                "replicates": sweep.replicates,
                "steps": sweep.steps,
                "fabricarlo_version": __version__,
                "state": "running",
            }
            | _tails(plan)
            | {name: facts[name] for name in ("device", "versions")}
        )

    def make_folder(self) -> None:
        """The directory of the store, where it is one.

        Raises StoreError where it cannot be made: then nothing was begun.
        """
        if self.folder is None:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"{self.path} cannot be written: {reason_of(error)}. Nothing was begun; choose "
                "another --out, give permission or make room."
            ) from error

    def erase(self) -> None:
        """Remove everything; the plan first, so that a half-erased store is not taken for one."""
        self.objects.delete(PLAN)
        self.objects.clear("")

    # ---- growing

    def grow(self, plan: Plan, facts: dict[str, Any]) -> None:
        """Make room for more samples; what is finished stays where it is."""
        self.forget_consolidated(("", "samples/", "histograms/"))
        self.forget_results(plan)
        root = zarr.open_group(self.target, mode="r+", use_consolidated=False)
        root.update_attributes(self._attributes(plan, facts))
        if plan.sweep.keep.samples:
            kept = -(-plan.layout.samples // plan.sweep.keep.every)
            for array in sample_arrays(plan):
                stored = root[f"samples/{array.name}"]
                assert isinstance(stored, zarr.Array)
                stored.resize((*stored.shape[:-1], kept))
        self.put_meta(plan, facts | {"created": True})

    def forget_results(self, plan: Plan) -> None:
        """Remove the results of a shorter run: they are no longer those of the attributes."""
        root = zarr.open_group(self.target, mode="r+", use_consolidated=False)
        axes = {a.name for a in plan.axes}
        for name in [n for n, _ in root.arrays() if n not in axes]:
            del root[name]
        self.objects.clear("histograms")

    def forget_consolidated(self, groups: Iterable[str]) -> None:
        """Drop consolidated metadata, which would hide later changes."""
        for group in groups:
            data = self.objects.get(f"{group}zarr.json")
            if data is not None and "consolidated_metadata" in (head := json.loads(data)):
                del head["consolidated_metadata"]
                self.objects.put(f"{group}zarr.json", json.dumps(head, indent=2).encode())
