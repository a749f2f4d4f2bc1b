"""CPU time per sample of a sweep, against a fixed NumPy workload that runs in turn with it.

    python bench/throughput.py [SPEC] [--samples N] [--pairs K]

Three figures: computing alone (draws and model), the whole run into memory (with summaries, and
writing where samples are kept), and the reference. A ratio is the median over the pairs, with
the quarter of them below and above: trust it, not the times.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np

import fabricarlo
from fabricarlo.engine import Engine, tile_lanes
from fabricarlo.plan import Plan

SPEC = Path(__file__).resolve().parents[1] / "sweeps" / "first_look.yaml"
REFERENCE_LANES = 2**20


def reference() -> None:
    """The fixed workload: what one transcendental and two operations cost over 2^20 floats."""
    x = np.linspace(0.1, 0.9, REFERENCE_LANES, dtype=np.float32)
    for _ in range(8):
        x = np.exp(-x) + x * np.float32(0.5)


def compute(engine: Engine) -> int:
    """One block of the sweep, without summaries; gives its number of samples."""
    block = engine.plan.layout.at(0)
    for tile in engine.tiles(block):
        jax.block_until_ready(tile.outputs)
    return block.samples


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU time of all threads of this process."""
    start = time.process_time()
    work()
    return time.process_time() - start


def measure(name: str, work: Callable[[], object], samples: int, pairs: int) -> None:
    """Print CPU time per sample, and the ratio of one sample to one lane of the reference."""
    work()  # compiles
    seconds, ratios = [], []
    for _ in range(pairs):
        base = cpu_seconds(reference) / REFERENCE_LANES
        seconds.append(cpu_seconds(work) / samples)
        ratios.append(seconds[-1] / base)
    low, median, high = np.quantile(ratios, [0.25, 0.5, 0.75])
    each = 1e9 * float(np.median(seconds))
    print(f"{name:<18} {each:8.1f} ns CPU a sample   ratio {median:6.2f} ({low:.2f} to {high:.2f})")


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("spec", nargs="?", type=Path, default=SPEC)
    parser.add_argument("--samples", type=int, default=2**17, help="per cell of the whole run")
    parser.add_argument("--pairs", type=int, default=10)
    asked = parser.parse_args()
    sweep = fabricarlo.load_spec(asked.spec, [f"samples={asked.samples}"])
    engine = Engine(Plan(sweep, tile=tile_lanes()))
    total = engine.plan.layout.cell_count * asked.samples
    print(f"{sweep.name}: {len(sweep.outputs)} outputs, {engine.devices[0].device_kind}")
    measure("compute", lambda: compute(engine), engine.plan.layout.at(0).samples, asked.pairs)
    measure("run, no samples", lambda: run(asked, keep=False), total, max(3, asked.pairs // 3))
    measure("run, samples", lambda: run(asked, keep=True), total, max(3, asked.pairs // 3))


def run(asked: argparse.Namespace, *, keep: bool) -> None:
    """The whole sweep into a store in memory."""
    overrides = [f"samples={asked.samples}", f"keep.samples={str(keep).lower()}"]
    fabricarlo.run(asked.spec, overrides=overrides)


if __name__ == "__main__":
    main()
