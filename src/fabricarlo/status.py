"""How far a sweep is: progress, rates, who works on what, and which blocks failed."""

import dataclasses
import json
import time
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from fabricarlo import presence as beats
from fabricarlo.claims import Claims
from fabricarlo.errors import StoreError
from fabricarlo.failed import Failed
from fabricarlo.identity import identity
from fabricarlo.index import Index
from fabricarlo.layout import Layout
from fabricarlo.ledger import Ledger
from fabricarlo.objects import Objects, is_url, open_store
from fabricarlo.presence import Presence, Watch

FEW = 20  # failed blocks that are listed


@dataclasses.dataclass(frozen=True)
class Worker:
    """One process that is, or was, at work on a store."""

    share: str
    host: str
    pid: int
    state: str  # at work, silent, dead
    samples: int  # finished by it, the last time it said
    rate: float  # samples a second since it began
    blocks: str  # that it works on or has still to do


@dataclasses.dataclass(frozen=True)
class Status:
    """What a store says of itself now."""

    sweep: str
    state: str
    blocks: int
    blocks_done: int
    samples: int  # of all cells
    samples_done: int
    rate: float  # samples a second, of the processes at work
    seconds_left: float | None
    workers: tuple[Worker, ...]
    failed: dict[int, str]  # block -> message
    damaged_segments: int


def status(path: str | Path, watch: float | None = None) -> Status:
    """Read it from the store; only processes of other machines are watched, for `watch` seconds.

    Raises StoreError where there is no store.
    """
    objects = Objects(_there(path))
    layout = _layout(path, objects)
    ledger = Ledger(objects)
    index = Index(ledger.segments(), layout)
    failed = Failed(objects).numbers(layout)
    workers = _workers(objects, layout, index, 2.5 * beats.BEAT if watch is None else watch)
    total, done = layout.cell_count * layout.samples, index.samples()
    rate = sum(w.rate for w in workers if w.state == "at work")
    name, state = _titles(objects)
    return Status(
        sweep=name,
        state=state,
        blocks=layout.block_count,
        blocks_done=len(index.done),
        samples=total,
        samples_done=done,
        rate=rate,
        seconds_left=(total - done) / rate if rate else None,
        workers=tuple(workers),
        failed={n: m for n, m in failed.items() if n not in index.done},
        damaged_segments=len(ledger.damaged),
    )


def _there(path: str | Path) -> Any:
    if not is_url(path) and not Path(path).is_dir():
        raise StoreError(f"{path} is no store: there is no such directory.")
    return open_store(path)


def _layout(path: str | Path, objects: Objects) -> Layout:
    try:
        meta = json.loads(objects.get("_run/plan.json") or b"")
        shape, structural = tuple(meta["shape"]), tuple(meta["structural"])
        sizes = (meta[k] for k in ("samples", "replicates", "block", "tile"))
        return Layout(shape, structural, *sizes)
    except (ValueError, KeyError, TypeError):
        raise StoreError(
            f"{path} is no fabricarlo store, or is only just begun: there is no plan in it."
        ) from None


def _titles(objects: Objects) -> tuple[str, str]:
    try:
        attrs = json.loads(objects.get("zarr.json") or b"")["attributes"]
        return str(attrs["title"]), str(attrs["state"])
    except (ValueError, KeyError, TypeError):
        return "?", "being laid out"


def _workers(objects: Objects, layout: Layout, index: Index, seconds: float) -> list[Worker]:
    watch = Watch(objects)
    first = {record["token"]: record["beat"] for _, record in watch.all()}
    here = identity(0)["machine"]
    if any(record["machine"] != here for _, record in watch.all()):
        time.sleep(seconds)
    held = Claims(objects, layout, Presence(objects, None)).held(index.done)
    found = []
    for _, record in watch.all():
        done, elapsed = int(record.get("done", 0)), float(record.get("seconds", 0))
        share = record["share"]
        blocks = held.get(record["token"], []) if share is None else _left(share, layout, index)
        found.append(
            Worker(
                share="elastic" if share is None else "/".join(map(str, share)),
                host=str(record["host"]),
                pid=int(record["pid"]),
                state=_state(record, here, first),
                samples=done,
                rate=done / elapsed if elapsed > 0 else 0.0,
                blocks=_shown(blocks),
            )
        )
    return found


def _state(record: dict[str, Any], here: str, first: dict[str, int]) -> str:
    if record["machine"] == here:
        return "at work" if record["started"] == identity(record["pid"])["started"] else "dead"
    return "at work" if first.get(record["token"], -1) != record["beat"] else "silent"


def _left(share: list[int], layout: Layout, index: Index) -> list[tuple[int, int]]:
    part, of = share
    count = layout.block_count
    return list(index.done.missing(count * part // of, count * (part + 1) // of))


def _shown(ranges: list[tuple[int, int]]) -> str:
    shown = [f"{a}" if b - a == 1 else f"{a}-{b - 1}" for a, b in ranges[:3]]
    return ", ".join(shown + (["..."] if len(ranges) > 3 else []))


def print_status(path: str | Path, *, as_json: bool) -> None:
    """Print the status of a store, for people or as one JSON object."""
    found = status(path)
    if as_json:
        print(json.dumps(dataclasses.asdict(found)))
        return
    console = Console(soft_wrap=True, highlight=False)
    share = found.samples_done / max(1, found.samples)
    console.print(f"{found.sweep}: {found.state}")
    blocks = f"{found.blocks_done:,} of {found.blocks:,} blocks"
    console.print(f"{share:.1%} of {found.samples:,} samples, {blocks}")
    if found.seconds_left is not None and found.samples_done < found.samples:
        console.print(f"{found.rate:,.0f} samples/s, {found.seconds_left:,.0f} s left")
    if found.workers:
        console.print(_table(found.workers))
    if found.damaged_segments:
        text = f"{found.damaged_segments:,} segments of the ledger are damaged and do not count"
        console.print(f"{text}: the next run computes their blocks again")
    for number, message in list(sorted(found.failed.items()))[:FEW]:
        console.print(f"block {number} failed: {message}")
    if len(found.failed) > FEW:
        console.print(f"... and {len(found.failed) - FEW:,} blocks more failed")


def _table(workers: tuple[Worker, ...]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("share", "host", "process", "state", "samples", "samples/s", "blocks to do"):
        table.add_column(heading, no_wrap=True)
    for w in workers:
        numbers = (f"{w.samples:,}", f"{w.rate:,.0f}")
        table.add_row(w.share, w.host, str(w.pid), w.state, *numbers, w.blocks)
    return table
