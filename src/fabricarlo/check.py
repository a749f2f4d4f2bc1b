"""Print the plan of a sweep; the only computing is a short probe of its speed."""

import time

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from fabricarlo.engine import Engine, tile_lanes
from fabricarlo.plan import Plan
from fabricarlo.sweep import Sweep
from fabricarlo.template import sample_arrays

PROBE_TILES = 4


def describe(sweep: Sweep) -> None:
    """Print what a run would do. Raises SpecError for a sweep that cannot be run."""
    plan = Plan(sweep, tile=tile_lanes())
    console = Console()
    total = plan.layout.cell_count * sweep.samples
    grid = " x ".join(f"{a.name} {len(a.labels)}" for a in plan.axes) or "one cell"
    console.print(f"[bold]{sweep.name}[/bold]  plan {plan.hash[:12]}", highlight=False)
    console.print(f"cells      {plan.layout.cell_count:,} ({grid})", highlight=False)
    console.print(
        f"samples    {total:,} ({sweep.samples:,} per cell, {sweep.replicates} replicates)",
        highlight=False,
    )
    console.print(
        f"blocks     {plan.layout.block_count:,} of up to {plan.layout.block:,} lanes",
        highlight=False,
    )
    console.print(f"to write   {size_text(bytes_to_write(plan))} of samples", highlight=False)
    console.print(f"variants   {len(plan.variants)} programs to compile", highlight=False)
    for variant in plan.variants:
        console.print("  " + ", ".join(f"{q}={a}" for q, a in variant.choices), highlight=False)
    console.print(_streams(plan))
    for line in remarks(plan):
        console.print(line, highlight=False)
    console.print(
        f"time       about {duration_text(estimated_seconds(plan, total))} on {jax.local_devices()[0].device_kind}, writing not counted",
        highlight=False,
    )


def bytes_to_write(plan: Plan) -> int:
    """Bytes of kept samples before any codec."""
    if not plan.sweep.keep.samples:
        return 0
    kept = -(-plan.sweep.samples // plan.sweep.keep.every)
    sizes = (
        np.dtype(a.dtype).itemsize * int(np.prod([plan.shape[k] for k in a.axes], dtype=object))
        for a in sample_arrays(plan)
    )
    return kept * sum(sizes)


def _streams(plan: Plan) -> Table:
    table = Table(title="what is random", title_justify="left")
    for heading in ("stream", "Sobol' dimension", "bits"):
        table.add_column(heading)
    sobol = plan.sweep.sampler == "sobol"
    for stream in plan.streams.values():
        where = str(stream.dimension) if sobol else "-"
        where += f", B: {stream.second}" if stream.second is not None and sobol else ""
        table.add_row(stream.name, where, "63" if stream.deep else "31")
    return table


def remarks(plan: Plan) -> list[str]:
    """Quantities of the spec that replace a stage's answer, or that nothing uses."""
    used = {n for v in plan.variants for n in (*v.inputs, *v.drawn)}
    settings = [plan.sweep.settings, *(s for a in plan.axes for s in a.settings)]
    named = dict.fromkeys([*(n for s in settings for n in (*s.values, *s.draws)), *plan.random])
    replaced = dict.fromkeys(n for v in plan.variants for n in v.replaced)
    lines = [
        f"replaced   {n}: the spec's value stands for the one that a stage would compute"
        for n in replaced
    ]
    unused = [n for n in named if n not in used]
    return lines + (
        [f"unused     {', '.join(unused)}: no requested output depends on it"] if unused else []
    )


def estimated_seconds(plan: Plan, total: int) -> float:
    """Seconds that computing will take here, by timing a few tiles of every variant."""
    engine, layout, seconds = Engine(plan), plan.layout, 0.0
    per_chunk = layout.blocks_per_cell
    first = {
        plan.variant(int(layout.at(c * per_chunk).cells[0])): c
        for c in reversed(range(min(layout.block_count // per_chunk, 4096)))
    }
    for chunk in first.values():
        block = layout.at(chunk * per_chunk)
        _seconds_of(engine, block, 1)  # compiles
        seconds += _seconds_of(engine, block, PROBE_TILES)
    lanes = layout.tile * len(first) * PROBE_TILES
    return seconds * total / lanes


def _seconds_of(engine: Engine, block: object, tiles: int) -> float:
    start, done = time.perf_counter(), 0
    while done < tiles:
        for tile in engine.tiles(block):  # type: ignore[arg-type]
            jax.block_until_ready(tile.outputs)
            done += 1
            if done >= tiles:
                break
    return time.perf_counter() - start


def size_text(size: int) -> str:
    """Bytes for people."""
    for prefix, factor in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if size >= factor:
            return f"{size / factor:,.1f} {prefix}B"
    return f"{size} B"


def duration_text(seconds: float) -> str:
    """A time for people."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
