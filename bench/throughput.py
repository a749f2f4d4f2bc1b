"""Speed as ratios of CPU time, of things that run in turn in one process.

    python -m bench.throughput [--rounds K] [--samples N] [--directory D] [--json FILE]

Every figure is a ratio: the median over the rounds, with its quartiles. CPU time is that of all
threads of the process. Work that can be counted is counted instead.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np

import fabricarlo
from bench.counted import Work, compilations
from bench.sides import LIGHT, SPEC, Idiomatic, NumPy, Ours, Side, Stored, plan_of

OVERRIDES = (
    "axes.gpus=[98304]",
    "axes.fabric=[fabric/roce-800g, fabric/infiniband-xdr]",
    "axes.cooling=[cooling/air, cooling/single-phase-45c]",
)
BLOCKS = (0, 3)  # RoCE with air; InfiniBand with liquid: two of the four programs
VARIABLES = 20  # float32, of the goal for storing
CHUNKS = tuple(2**k for k in range(10, 18))

Row = dict[str, Any]


def cpu_seconds(work: Any) -> float:
    """CPU time of all threads of this process."""
    start = time.process_time()
    work()
    return time.process_time() - start


def best_chunk(rivals: Sequence[NumPy]) -> dict[int, float]:
    """Give every rival its best chunk; CPU time of a sample for each chunk, in ns."""
    found = {}
    for chunk in CHUNKS:
        for rival in rivals:
            rival.chunk = min(chunk, rival.samples)
            rival.run()
        seconds = min(sum(cpu_seconds(r.run) for r in rivals) for _ in range(3))
        found[chunk] = 1e9 * seconds / sum(r.samples for r in rivals)
    best = min(found, key=found.__getitem__)
    for rival in rivals:
        rival.chunk = best
    return found


def rounds(sides: Sequence[Side], stored: Sequence[Stored], count: int) -> dict[str, np.ndarray]:
    """CPU time of a sample, in ns, of every side in every round; the order turns."""
    for store in stored:
        store.prepare()
    for side in sides:
        side.run()  # compiles
    times: dict[str, list[float]] = {side.name: [] for side in sides}
    for number in range(count):
        for store in stored:
            store.prepare()
        turned = [*sides[number % len(sides) :], *sides[: number % len(sides)]]
        for side in turned:
            times[side.name].append(1e9 * cpu_seconds(side.run) / side.samples)
    for store in stored:
        store.clear()
    return {name: np.array(values) for name, values in times.items()}


def ratio(what: str, over: np.ndarray, under: np.ndarray, goal: str) -> Row:
    """A row of the table from two columns of times."""
    low, median, high = np.quantile(over / under, [0.25, 0.5, 0.75])
    return {"what": what, "measured": float(median), "low": float(low), "high": float(high),
            "goal": goal, "met": _met(float(median), goal)}  # fmt: skip


def count(what: str, measured: float, goal: str) -> Row:
    """A row of the table from a number that does not vary."""
    return {"what": what, "measured": measured, "goal": goal, "met": _met(measured, goal)}


def _met(measured: float, goal: str) -> bool | None:
    if not goal:
        return None
    sign, number = goal.split()
    return measured >= float(number) if sign == ">=" else measured <= float(number)


def stores_of(ours: Ours, where: Path) -> dict[str, Stored]:
    """What is stored, in three ways."""
    return {
        "stored": Stored(ours, where, codec="none", variables=VARIABLES),
        "all": Stored(ours, where, codec="none", variables=None),
        "zstd": Stored(ours, where, codec="blosc-zstd", variables=VARIABLES),
    }


def timed(asked: argparse.Namespace) -> tuple[list[Row], dict[str, Any]]:
    """Goals a to e."""
    samples = f"samples={asked.samples}"
    plan = plan_of(SPEC, samples, *OVERRIDES)
    ours = Ours(plan, BLOCKS)
    plain = Ours(plan_of(SPEC, samples, "sampler=random", *OVERRIDES), BLOCKS)
    cells = [int(plan.layout.at(b).cells[0]) for b in BLOCKS]
    numpy = [NumPy(plan, cell, 2**17) for cell in cells]
    usual = [Idiomatic(plan, cell, 8) for cell in cells]
    chunks = best_chunk(numpy)
    stores = stores_of(ours, Path(asked.directory))
    sides = [
        Side("ours", ours.samples, ours.compute),
        Side("numpy", sum(n.samples for n in numpy), lambda: [n.run() for n in numpy]),
        Side("jax.random", sum(u.samples for u in usual), lambda: [u.run() for u in usual]),
        Side("random", plain.samples, plain.compute),
        Side("summaries", ours.samples, ours.summarise),
        *(Side(name, ours.samples, store.run) for name, store in stores.items()),
    ]
    t = rounds(sides, list(stores.values()), asked.rounds)
    each = {n: stores[n].bytes / ours.samples for n in stores}
    rows = [
        ratio("a. NumPy float64 / ours (sobol)", t["numpy"], t["ours"], ">= 4.5"),
        ratio("b. jax.random, one jit / ours (sobol)", t["jax.random"], t["ours"], ">= 2"),
        ratio("c. NumPy float64 / ours (random)", t["numpy"], t["random"], ">= 3.5"),
        ratio("d. summaries on / compute only", t["summaries"], t["ours"], ""),
        ratio(f"e. stored, {VARIABLES} variables / compute only", t["stored"], t["ours"], "<= 2"),
        ratio("e. stored, all variables / compute only", t["all"], t["ours"], ""),
        ratio(
            f"e. stored, {VARIABLES} variables by blosc-zstd / compute only",
            t["zstd"],
            t["ours"],
            "",
        ),
        *(count(f"f. bytes a sample, {n}", b, "") for n, b in each.items()),
    ]
    rows += [count("f. XOR done / traced, sobol", repeated(ours), "<= 1.3")]
    rows += [count("f. XOR done / traced, random", repeated(plain), "<= 2")]
    medians = {name: float(np.median(values)) for name, values in t.items()}
    return rows, {"cpu_ns_a_sample": medians, "numpy_cpu_ns_by_chunk": chunks}


def repeated(ours: Ours) -> float:
    """The largest share of repeated random-number work among the programs."""
    layout = ours.plan.layout
    return max(Work.of(ours.engine, layout.at(b)).repeated() for b in ours.blocks)


def compilations_of_a_sweep(samples: int) -> int:
    """Compilations of a whole sweep of two light programs, not the first sweep of a process."""
    plan = plan_of(LIGHT, f"samples={samples}")
    fabricarlo.run(plan.sweep)  # what all sweeps share
    with compilations() as found:
        fabricarlo.run(plan.sweep)
    return len(found)


def facts() -> dict[str, str]:
    """What a reader needs to judge the numbers."""
    about = _lines("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in about if line.startswith("model name")]
    wide = [f for f in ("avx2", "avx512f") if any(f in line.split() for line in about)]
    versions = ", ".join(f"{p} {version(p)}" for p in ("jax", "numpy", "scipy", "zarr"))
    return {
        "command": " ".join(["python -m bench.throughput", *sys.argv[1:]]),
        "processor": ", ".join([*names[:1], f"{os.cpu_count()} cores", *wide]),
        "device": jax.devices()[0].device_kind,
        "load before": " ".join(" ".join(_lines("/proc/loadavg")).split()[:3]),
        "versions": f"Python {platform.python_version()}, {versions}",
        "date": time.strftime("%Y-%m-%d"),
    }


def _lines(path: str) -> list[str]:
    found = Path(path)
    return found.read_text(encoding="utf-8").splitlines() if found.exists() else []


def table(rows: Sequence[Row]) -> str:
    """The results, in Markdown."""
    lines = ["| what | measured | goal | met |", "|---|---|---|---|"]
    for row in rows:
        spread = f" ({row['low']:.2f} to {row['high']:.2f})" if "low" in row else ""
        met = {True: "yes", False: "no", None: ""}[row["met"]]
        lines.append(f"| {row['what']} | {row['measured']:.2f}{spread} | {row['goal']} | {met} |")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--samples", type=int, default=2**20, help="of each of the two programs")
    parser.add_argument("--directory", default=tempfile.gettempdir(), help="of the stores written")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    asked = parser.parse_args()
    before = facts()
    rows, more = timed(asked)
    few, many = compilations_of_a_sweep(2**17), compilations_of_a_sweep(2**20)
    what = f"f. compilations of a sweep of 8 times the samples / {few}"
    rows.append(count(what, many / few, "<= 1"))
    print("\n".join(f"{k}: {v}" for k, v in before.items()))
    print(table(rows))
    print("\n".join(f"{k}: {v}" for k, v in more.items()))
    if asked.json:
        result = {"facts": before, "rows": rows} | more
        asked.json.write_text(json.dumps(result, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
