"""Check a store: every checksum, and a few blocks computed again. Damage is noted in the store."""

import dataclasses
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import zarr

from fabricarlo.errors import SpecError, StoreError
from fabricarlo.finish import read_manifest
from fabricarlo.index import Index
from fabricarlo.intervals import Intervals
from fabricarlo.layout import Block
from fabricarlo.notes import Notes
from fabricarlo.objects import failures, reason_of
from fabricarlo.plan import Plan
from fabricarlo.recompute import recompute
from fabricarlo.records import Damaged
from fabricarlo.samples import SampleWriter
from fabricarlo.segment import Checks, Segment
from fabricarlo.spec import load_spec
from fabricarlo.store import SweepStore
from fabricarlo.summaries.wire import from_bytes
from fabricarlo.sweep import Axis

READERS = 8
BATCH = 64  # final objects, or blocks, read at once


@dataclasses.dataclass
class Findings:
    """What a check of a store found."""

    store: str
    blocks: int = 0  # finished blocks whose checksums were looked at
    chunks: int = 0
    segments: int = 0
    summaries: int = 0
    results: int = 0  # final objects
    recomputed: list[int] = dataclasses.field(default_factory=list)
    comparison: str = ""  # how recomputed blocks were compared
    problems: list[str] = dataclasses.field(default_factory=list)
    damaged_blocks: set[int] = dataclasses.field(default_factory=set)
    damaged_segments: set[str] = dataclasses.field(default_factory=set)
    damaged_results: bool = False
    advice: str = ""

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def verify(
    path: str | Path, *, blocks: int = 3, seed: int | None = None, spec: Path | None = None
) -> Findings:
    """Check every checksum of a store, and compute `blocks` random finished blocks again.

    `seed` picks the blocks, at random without it; `spec` is the file of the sweep, where the text
    kept in the store does not do (it names files beside it). Raises StoreError where there is no
    store, SpecError where its spec gives another plan than the store's.
    """
    store = SweepStore(path)
    meta = store.meta()
    if meta is None:
        raise StoreError(f"{path} is no fabricarlo store: there is no plan in it.")
    plan = plan_of(store, meta, spec)
    found, writer = Findings(store.name), SampleWriter(store, plan)
    segments = store.ledger.segments()
    index = Index(_whole_segments(store, segments, found), plan.layout)
    picked = _picked(index.done, blocks, np.random.default_rng(seed))
    rows = _check_chunks(index, writer, picked, found)
    _check_results(store, found)
    if rows:
        recompute(plan, writer, rows, str(meta["probe"]), found)
    _leave_note(store, plan, found)
    return found


def plan_of(store: SweepStore, meta: dict[str, Any], spec: Path | None) -> Plan:
    """The plan of a store, from the spec that is kept in it or from its file."""
    root = zarr.open_group(store.target, mode="r", use_consolidated=False)
    text = str(root.attrs.get("spec", "")) + "\n"
    overrides = [*meta.get("overrides", []), f"samples={meta['samples']}"]
    plan = Plan(load_spec(spec or text, overrides), block=meta["block"], tile=meta["tile"])
    if plan.hash != meta["hash"]:
        source = f"the spec {spec}" if spec else "the spec kept in it"
        raise SpecError(
            [
                f"{store.name} was written by plan {meta['hash'][:12]}, {source} gives plan "
                f"{plan.hash[:12]} here: use the version of fabricarlo that wrote it "
                f"({meta['versions']}), or name the right file by --spec."
            ]
        )
    return plan


# ---- the ledger


def _whole_segments(store: SweepStore, segments: list[Segment], found: Findings) -> list[Segment]:
    """Segments whose every part has its checksum; the others are noted."""
    whole = []
    for segment in segments:
        try:
            segment.checks()
            for row in segment.summaries:
                from_bytes(segment.part(row))
                found.summaries += 1
            whole.append(segment)
        except (Damaged, ValueError) as error:
            store.ledger.damaged[segment.key] = str(error)
    found.segments = len(whole)
    for key, reason in store.ledger.damaged.items():
        found.damaged_segments.add(key)
        found.problems.append(f"ledger: {reason} ({key}): its blocks must be computed again")
    return whole


def _picked(done: Intervals, count: int, rng: np.random.Generator) -> set[int]:
    total = len(done)
    ranks = rng.choice(total, min(count, total), replace=False) if total else []
    before = np.cumsum([0, *(b - a for a, b in done)])
    k = np.searchsorted(before, ranks, side="right") - 1
    starts = np.array(done.starts, np.int64)
    return {int(n) for n in starts[k] + ranks - before[k]} if total else set()


# ---- samples


def _check_chunks(
    index: Index, writer: SampleWriter, picked: set[int], found: Findings
) -> dict[int, Checks]:
    """Compare every chunk with the ledger; gives what the ledger says of the picked blocks."""
    rows: dict[int, Checks] = {}
    layout = writer.plan.layout
    with ThreadPoolExecutor(READERS) as pool:
        for _, checks in index.checks():
            numbers = [layout.number(int(c), int(p)) for c, p in checks.blocks]
            for row, number in enumerate(numbers):
                if number in picked:
                    rows[number] = checks.picked(np.arange(len(numbers)) == row)
            found.blocks += len(numbers)
            if writer.arrays:
                for some in _batches(range(len(numbers))):
                    work = [pool.submit(_wrong, writer, checks, r, numbers[r]) for r in some]
                    for done in work:
                        _note(writer.plan, *done.result(), found)
    return rows


def _batches(rows: range) -> Iterator[range]:
    return (rows[k : k + BATCH] for k in range(0, len(rows), BATCH))


def _wrong(
    writer: SampleWriter, checks: Checks, row: int, number: int
) -> tuple[Block, int, list[str], int]:
    """Block, its number, what is wrong with its chunks, and how many chunks it has."""
    block, texts, count = writer.plan.layout.at(number), [], 0
    for name, values in writer.stored(block):
        count += 1
        if values is None:
            texts.append(f"{name} cannot be read")
        elif (
            google_crc32c.value(values.tobytes()) != checks.sums[row, checks.variables.index(name)]
        ):
            texts.append(f"{name} has another checksum")
    if not texts and writer.damaged(checks.picked(np.arange(len(checks.blocks)) == row)):
        texts.append("a chunk is missing or has another size")
    return block, number, texts, count


def _note(
    plan: Plan, block: Block, number: int, texts: list[str], count: int, found: Findings
) -> None:
    found.chunks += count
    if texts:
        found.damaged_blocks.add(number)
        found.problems.append(f"{described(plan, block, number)}: {', '.join(texts)}")


def described(plan: Plan, block: Block, number: int) -> str:
    """A block for people: its number, its cells and its samples."""

    def label(axis: Axis, k: int) -> str:
        found = axis.labels[k]
        return found if isinstance(found, str) else f"{found:.10g}"

    labels = [
        f"{axis.name} {label(axis, s.start)}"
        + (f" to {label(axis, s.stop - 1)}" if s.stop - s.start > 1 else "")
        for axis, s in zip(plan.axes, block.region, strict=True)
    ]
    samples = f"samples {block.start:,} to {block.stop - 1:,}"
    return f"block {number} ({', '.join([*labels, samples])})"


# ---- results


def _check_results(store: SweepStore, found: Findings) -> None:
    root = zarr.open_group(store.target, mode="r", use_consolidated=False)
    if root.attrs.get("state") == "running":
        return
    manifest = read_manifest(store.objects)
    if manifest is None:
        found.damaged_results = True
        found.problems.append("results: the list of final objects is missing or damaged")
        return
    keys = list(manifest)
    found.results = len(keys)
    for first in range(0, len(keys), BATCH):
        some = keys[first : first + BATCH]
        for key, data in zip(some, store.objects.get_all(some), strict=True):
            size, checksum = manifest[key]
            there = (None if data is None else len(data), google_crc32c.value(data or b""))
            if there != (size, checksum):
                found.damaged_results = True
                what = "is missing" if data is None else "has another checksum"
                found.problems.append(f"results: {key} {what}")


def _leave_note(store: SweepStore, plan: Plan, found: Findings) -> None:
    """Tell the next run what to repair."""
    if found.passed:
        return
    blocks = [plan.layout.at(n) for n in sorted(found.damaged_blocks)]
    again = "run the sweep again with the same command"
    try:
        Notes(store.objects).leave(
            [(b.chunk, b.part) for b in blocks],
            sorted(found.damaged_segments),
            results=found.damaged_results,
        )
        found.advice = f"noted in the store; {again} to repair it"
    except failures() as error:
        found.advice = (
            f"could not be noted in the store ({reason_of(error)}): give permission to write, "
            f"verify again, then {again}"
        )


def print_findings(found: Findings, *, as_json: bool) -> None:
    """Print what was found, for people or as one JSON object."""
    if as_json:
        content = dataclasses.asdict(found) | {"passed": found.passed}
        content["damaged_blocks"] = sorted(found.damaged_blocks)
        content["damaged_segments"] = sorted(found.damaged_segments)
        print(json.dumps(content))
        return
    print(
        f"{found.store}: {found.chunks:,} chunks of {found.blocks:,} blocks, "
        f"{found.summaries:,} summaries in {found.segments:,} segments of the ledger, "
        f"{found.results:,} objects of results"
    )
    if found.recomputed:
        again = ", ".join(map(str, found.recomputed))
        print(f"computed again: blocks {again}, compared {found.comparison}")
    for problem in found.problems:
        print(problem)
    print(f"DAMAGED: {found.advice}" if found.problems else "all as it was written")
