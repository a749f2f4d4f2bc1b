"""Several processes on one store, and a store in S3: ratios of wall time on a quiet machine.

    python -m bench.cluster [--samples N] [--rounds K] [--json FILE]

Two processes are pinned to a core each and compared with one, pinned as well, that computes the
same sweep; fixed shares are compared with claims; a directory with S3 (moto on the loopback, whose
server needs a core itself). Every process compiles from a warm cache. Wall time says something
only where nothing else runs: the load is printed, and the median of the rounds is taken.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.sides import LIGHT

Row = dict[str, float | str | bool]

CHILD = """
import os, sys, time
cores, cache, spec, out, samples, block, mode = sys.argv[1:]
os.sched_setaffinity(0, {int(c) for c in cores.split(",")})
import jax, fabricarlo
jax.config.update("jax_compilation_cache_dir", cache)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
from fabricarlo.loop import Loop
run, spent = Loop.run, []
def timed(self, todo):
    begin = time.monotonic()
    try:
        return run(self, todo)
    finally:
        spent.append(time.monotonic() - begin)
Loop.run = timed
share = {"elastic": True} if mode == "elastic" else {"process": tuple(map(int, mode.split("/")))}
fabricarlo.run(spec, out, overrides=["samples=" + samples, "keep.samples=true"],
               block=int(block), **share)
print(max(spent))
"""


class Bench:
    """Runs of one light sweep."""

    def __init__(self, samples: int, folder: Path) -> None:
        self.samples, self.folder = samples, folder
        self.number = 0

    def run(self, modes: Sequence[str], cores: Sequence[str], out: str | None = None) -> float:
        """Seconds from the first to the last block of the slowest process."""
        self.number += 1
        store = out or str(self.folder / f"s{self.number}.zarr")
        fixed = [str(self.folder / "cache"), str(LIGHT), store, str(self.samples), str(2**20)]
        begun = [
            subprocess.Popen(
                [sys.executable, "-c", CHILD, core, *fixed, mode], stdout=subprocess.PIPE, text=True
            )
            for mode, core in zip(modes, cores, strict=True)
        ]
        seconds = [float(p.communicate()[0].split()[-1]) for p in begun]
        if out is None:
            shutil.rmtree(store)
        return max(seconds)


def ratio(
    what: str, over: Callable[[], float], under: Callable[[], float], rounds: int, goal: str
) -> Row:
    """The median over the rounds of the ratio of two times, taken in turn."""
    found = [over() / under() for _ in range(rounds)]
    median = statistics.median(found)
    sign, _, number = goal.partition(" ")
    met = median >= float(number) if sign == ">=" else median <= float(number)
    return {"what": what, "measured": median, "low": min(found), "high": max(found),
            "goal": goal, "met": met}  # fmt: skip


def measured(samples: int, rounds: int, folder: Path) -> list[Row]:
    """All rows."""
    bench = Bench(samples, folder)

    def one() -> float:
        return bench.run(["0/1"], ["0"])

    def two() -> float:
        return bench.run(["0/2", "1/2"], ["0", "1"])

    def claimed() -> float:
        return bench.run(["elastic"], ["0"])

    one()  # compiles
    rows = [
        ratio("one process / two processes on two cores", one, two, rounds, ">= 1.8"),
        ratio("claims / fixed shares, one process", claimed, one, rounds, "<= 1.02"),
    ]
    return rows + _in_s3(bench, rounds)


def _in_s3(bench: Bench, rounds: int) -> list[Row]:
    try:
        from tests.engine import s3
    except ImportError:
        print("S3 is not measured: pip install 'fabricarlo[dev]'")
        return []
    with s3.serving() as proxy:
        os.environ["AWS_ENDPOINT"] = "http://{}:{}".format(*proxy.upstream)

        def far() -> float:
            url = f"s3://{s3.BUCKET}/bench-{bench.number}"
            return bench.run(["0/1"], ["0"], url)

        def near() -> float:
            return bench.run(["0/1"], ["0"])

        return [ratio("S3 / directory, 4 MiB chunks", far, near, rounds, "<= 1.5")]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--samples", type=int, default=2**24, help="of each of the two programs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the results to this file")
    asked = parser.parse_args()
    load = " ".join(f"{n:.1f}" for n in os.getloadavg())
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        rows = measured(asked.samples, asked.rounds, Path(folder))
    print(f"load before: {load}; {time.monotonic() - start:.0f} s\n")
    print("| what | measured | goal | met |\n|---|---|---|---|")
    for row in rows:
        spread = f"{row['measured']:.2f} ({row['low']:.2f} to {row['high']:.2f})"
        print(f"| {row['what']} | {spread} | {row['goal']} | {'yes' if row['met'] else 'no'} |")
    if asked.json:
        asked.json.write_text(json.dumps({"load": load, "rows": rows}), encoding="utf-8")


if __name__ == "__main__":
    main()
