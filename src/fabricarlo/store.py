"""A sweep's Zarr hierarchy: what stands in it, who may write, and whole-chunk writes of blocks."""

import json
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import zarr
from zarr.errors import ContainsArrayError, ContainsGroupError

from fabricarlo import __version__
from fabricarlo.errors import StoreError
from fabricarlo.layout import Block
from fabricarlo.ledger import Ledger, Written
from fabricarlo.objects import Objects, open_store
from fabricarlo.plan import Plan
from fabricarlo.template import CONVENTIONS, SampleArray, create_samples, sample_arrays, write_axes

PLAN = "_run/plan.json"
MUST_HAVE = ("hash", "samples", "block", "tile", "probe", "created", "device", "versions")
TRIES = 20  # to make what another process makes at the same moment


class SweepStore:
    """The store of one sweep, at a path or in memory."""

    def __init__(self, path: str | Path | None) -> None:
        self.path = path
        if path is not None and Path(path).is_file():
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
        folder = None if self.path is None else Path(self.path)
        if folder is not None and not folder.exists():
            return None  # asking the store itself would make the directory
        data = self.objects.get(PLAN)
        if data is not None:
            return self._read(data)
        if folder is not None and not self._is_ours(folder):
            raise StoreError(
                f"{folder} is not empty and holds no fabricarlo store; choose another --out, or "
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

    def _is_ours(self, path: Path) -> bool:
        """Whether a directory is empty, or was left by a run that died before it had a plan."""
        return not any(path.iterdir()) or bool(self.objects.keys("_run/processes/"))

    def create(self, plan: Plan, facts: dict[str, Any]) -> None:
        """An empty store of this plan."""
        self._writable()
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
            "streams": {s.name: s.dimension for s in plan.streams.values()},
            "content": plan.content,
        }
        self.objects.put(PLAN, json.dumps(meta, indent=1, sort_keys=True).encode())

    def _attributes(self, plan: Plan, facts: dict[str, Any]) -> dict[str, Any]:
        sweep = plan.sweep
        return {
            "Conventions": CONVENTIONS,
            "title": sweep.name,
            "outputs": list(sweep.outputs),
            "description": sweep.description,
            "spec": sweep.text,
            "plan": plan.hash,
            "seed": sweep.seed,
            "samples": sweep.samples,
            "sampler": sweep.sampler,
            "replicates": sweep.replicates,
            "fabricarlo_version": __version__,
            "state": "running",
        } | {name: facts[name] for name in ("device", "versions")}

    def _writable(self) -> None:
        if self.path is not None:
            Path(self.path).mkdir(parents=True, exist_ok=True)

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


class SampleWriter:
    """Writes the kept samples of blocks, whole chunks only."""

    def __init__(self, store: SweepStore, plan: Plan) -> None:
        self.plan, self.store = plan, store
        self.arrays = sample_arrays(plan) if plan.sweep.keep.samples else ()
        group = (
            zarr.open_group(store.target, mode="r+", use_consolidated=False) if self.arrays else {}
        )
        self._stored: dict[str, Any] = {a.name: group[f"samples/{a.name}"] for a in self.arrays}

    def wanted(self, block: Block) -> list[SampleArray]:
        """Arrays that this block writes: draws shared by cells are written by the first of them."""
        return [
            a
            for a in self.arrays
            if all(s.start == 0 for k, s in enumerate(block.region) if k not in a.axes)
        ]

    def keys(self, block: Block) -> dict[str, str]:
        """Variable -> key of the chunk that this block writes."""
        extents = self.plan.layout.extents
        keys = {}
        for array in self.wanted(block):
            where = [block.region[k].start // extents[k] for k in array.axes]
            keys[array.name] = f"samples/{array.name}/c/" + "/".join(map(str, (*where, block.part)))
        return keys

    def write(self, block: Block, values: dict[str, np.ndarray]) -> Written:
        """Write the chunks of a block; values [cell, sample] per variable, every sample of it."""
        keys, plain, checksums = self.keys(block), {}, {}
        for array in self.wanted(block):
            kept = self._kept(array, block, values[array.source])
            data = kept.tobytes()
            checksums[array.name] = google_crc32c.value(data)
            if self._is_its_own_code(array, kept):
                plain[keys[array.name]] = data
            else:
                self._encode(array, block, kept)
        self.store.objects.put_all(plain)
        sizes = dict(zip(keys, self.store.objects.sizes(list(keys.values())), strict=True))
        return Written(block.chunk, block.part, block.stop, checksums, sizes)

    def _is_its_own_code(self, array: SampleArray, kept: np.ndarray) -> bool:
        """Whether the bytes of a chunk are the bytes of its values, with nothing to encode."""
        whole = kept.shape == self._stored[array.name].chunks
        return whole and self.plan.sweep.keep.codec == "none" and sys.byteorder == "little"

    def _encode(self, array: SampleArray, block: Block, kept: np.ndarray) -> None:
        every, stored = self.plan.sweep.keep.every, self._stored[array.name]
        samples = slice(-(-block.start // every), -(-block.stop // every))
        # zarr cuts what lies beyond an array without a word
        assert samples.stop <= stored.shape[-1], f"{array.name} ends before {samples}"
        # a store in memory keeps the very array it is given, and the buffer is used again
        copied = kept.copy() if self.store.path is None else kept
        stored[(*(block.region[k] for k in array.axes), samples)] = copied

    def _kept(self, array: SampleArray, block: Block, values: np.ndarray) -> np.ndarray:
        keep = self.plan.sweep.keep
        shape = tuple(s.stop - s.start for s in block.region)
        grid = values[:, :: keep.every].reshape(*shape, -1)
        first = tuple(slice(None) if k in array.axes else 0 for k in range(len(shape)))
        grid = grid[first]
        if array.is_flag:
            return grid.astype(np.int8)
        return rounded(grid, keep.mantissa_bits) if keep.mantissa_bits else grid

    def damaged(self, blocks: dict[int, Written]) -> set[int]:
        """Blocks with a chunk that is missing or has another size than was written."""
        keys, owner, sizes = [], [], []
        for number, written in blocks.items():
            for name, key in self.keys(self.plan.layout.at(number)).items():
                keys.append(key)
                owner.append(number)
                sizes.append(written.sizes.get(name))
        found = self.store.objects.sizes(keys)
        return {n for n, want, got in zip(owner, sizes, found, strict=True) if got != want}


def rounded(values: np.ndarray, bits: int) -> np.ndarray:
    """float32 rounded half to even to `bits` mantissa bits; relative error <= 2^-(bits + 1)."""
    pattern = np.ascontiguousarray(values, np.float32).view(np.uint32)
    drop = np.uint32(23 - bits)
    half = (np.uint32(1) << (drop - np.uint32(1))) - np.uint32(1)
    odd = (pattern >> drop) & np.uint32(1)
    up = ((pattern + half + odd) >> drop) << drop
    return np.where(np.isfinite(values), up.view(np.float32), values)
