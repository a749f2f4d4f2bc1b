"""Print the plan of a sweep; the only computing is a short probe of its speed."""

import time

import jax
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from fabricarlo.engine import Engine, tile_lanes
from fabricarlo.layout import Block
from fabricarlo.plan import Plan
from fabricarlo.room import bytes_to_write, size_text
from fabricarlo.sweep import Sweep

PROBE_TILES = 4
FEW = 4096  # blocks looked at to find every variant


def describe(sweep: Sweep) -> None:
    """Print what a run would do. Raises SpecError for a sweep that cannot be run."""
    plan = Plan(sweep, tile=tile_lanes())
    console = Console()
    total = plan.layout.cell_count * sweep.samples
    grid = " x ".join(f"{a.name} {len(a.labels)}" for a in plan.axes) or "one cell"
    facts = {
        "sweep": f"{sweep.name}, plan {plan.hash[:12]}",
        "cells": f"{plan.layout.cell_count:,} ({grid})",
        "samples": f"{total:,} ({sweep.samples:,} per cell, {sweep.replicates} replicates)",
        "steps": f"{sweep.steps:,} a sample",
        "blocks": f"{plan.layout.block_count:,} of up to {plan.layout.block:,} lanes",
        "to write": f"{size_text(bytes_to_write(plan))} of samples",
    }
    if sweep.steps == 1:
        del facts["steps"]
    for name, fact in facts.items():
        console.print(f"{name:<10} {fact}", highlight=False, soft_wrap=True)
    for line in (*choices(plan), *remarks(plan)):
        console.print(line, highlight=False, soft_wrap=True)
    console.print(_streams(plan))
    seconds = estimated_seconds(plan, total)
    device = jax.local_devices()[0].device_kind
    text = f"about {duration_text(seconds)} of computing on {device}, writing not counted"
    console.print(f"{'time':<10} {text}", highlight=False)


def choices(plan: Plan) -> list[str]:
    """The answers that all programs share, and those by which they differ."""
    answers = [dict(v.choices) for v in plan.variants]
    shared = {q for q in answers[0] if len({a[q] for a in answers}) == 1}
    common = ", ".join(f"{q} {a}" for q, a in answers[0].items() if q in shared)
    lines = [f"{'answers':<10} {common}", f"{'programs':<10} {len(answers)} to compile"]
    if len(answers) > 1:
        for answer in answers:
            differs = ", ".join(f"{q} {a}" for q, a in answer.items() if q not in shared)
            lines.append(f"{'':<10} {differs or 'laws or inputs of other kinds'}")
    return lines


def _streams(plan: Plan) -> Table:
    table = Table(title="what is random", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    often = plan.sweep.steps > 1
    tails = {t.stream: t for t in plan.sweep.tails}
    redrawn = {name for v in plan.variants for name in v.redrawn}
    headings = ["stream", "Sobol' dimension", "bits", *(["drawn"] if often else [])]
    for heading in (*headings, *(["tail"] if tails else [])):
        table.add_column(heading)
    sobol = plan.sweep.sampler == "sobol"
    for stream in plan.streams.values():
        where = str(stream.dimension) if sobol and stream.dimension is not None else "-"
        where += f", B: {stream.second}" if stream.second is not None and sobol else ""
        row = [stream.name, where, "63" if stream.deep else "31"]
        if often:
            row.append("every step" if stream.name in redrawn else "once a sample")
        if tails:
            tail = tails.get(stream.name)
            row.append(f"{tail.points:.3g} of points in {tail.probability:.3g}" if tail else "-")
        table.add_row(*row)
    return table


def remarks(plan: Plan) -> list[str]:
    """Quantities of the spec that replace a stage's answer, or that nothing uses."""
    used = {n for v in plan.variants for n in (*v.inputs, *v.drawn)}
    settings = [plan.sweep.settings, *(s for a in plan.axes for s in a.settings)]
    named = dict.fromkeys([*(n for s in settings for n in (*s.values, *s.draws)), *plan.random])
    replaced = dict.fromkeys(n for v in plan.variants for n in v.replaced)
    lines = [
        f"{'replaced':<10} {n}: the spec's value stands for what a stage would compute"
        for n in replaced
    ]
    idle = {n for v in plan.variants for n in v.replaced} - _read(plan)
    unused = ", ".join(n for n in named if n not in used or n in idle)
    return lines + ([f"{'unused':<10} {unused}: no output depends on it"] if unused else [])


def _read(plan: Plan) -> set[str]:
    """Replaced quantities that an output really depends on."""
    return {n for v in plan.variants for n in (*v.model.used(v.outputs, v.replaced), *v.outputs)}


def estimated_seconds(plan: Plan, total: int) -> float:
    """Seconds that computing will take here, by timing a few tiles of every variant."""
    engine, layout, seconds = Engine(plan), plan.layout, 0.0
    per_chunk = layout.blocks_per_cell
    chunks = range(min(layout.block_count // per_chunk, FEW))
    blocks = [layout.at(c * per_chunk) for c in reversed(chunks)]
    first = {plan.variant(int(block.cells[0])): block for block in blocks}
    for block in first.values():
        _seconds_of(engine, block, 1)  # compiles
        seconds += _seconds_of(engine, block, PROBE_TILES)
    return seconds * total / (layout.tile * len(first) * PROBE_TILES)


def _seconds_of(engine: Engine, block: Block, tiles: int) -> float:
    start, done = time.perf_counter(), 0
    while done < tiles:
        for tile in engine.tiles(block):
            jax.block_until_ready(tile.outputs)
            done += 1
            if done >= tiles:
                break
    return time.perf_counter() - start


def duration_text(seconds: float) -> str:
    """A time for people."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
