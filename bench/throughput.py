"""CPU time per sample of a sweep, against a fixed NumPy workload that runs in turn with it.

    python bench/throughput.py [SPEC] [--pairs K]

One block of the sweep, compiled before: draws and model alone; with the summaries; with samples
brought to the host and written to a local store as well. A ratio is the median over the pairs,
with the quarter of them below and above: trust it, not the times.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np

import fabricarlo
from fabricarlo.blocks import Buffers, Computed, Worker
from fabricarlo.engine import Engine, tile_lanes
from fabricarlo.interrupt import Interrupt
from fabricarlo.plan import Plan
from fabricarlo.store import SampleWriter, SweepStore

SPEC = Path(__file__).resolve().parents[1] / "sweeps" / "first_look.yaml"
REFERENCE_LANES = 2**20


def reference() -> None:
    """The fixed workload: what one transcendental and two operations cost over 2^20 floats."""
    x = np.linspace(0.1, 0.9, REFERENCE_LANES, dtype=np.float32)
    for _ in range(8):
        x = np.exp(-x) + x * np.float32(0.5)


class Bench:
    """One block of a sweep, and what can be done with it."""

    def __init__(self, spec: Path, folder: Path) -> None:
        sweep = fabricarlo.load_spec(spec, ["samples=1048576", "keep.samples=true"])
        self.plan = Plan(sweep, tile=tile_lanes())
        self.engine = Engine(self.plan)
        self.block = self.plan.layout.at(0)
        self.worker = Worker(self.plan, self.engine, Interrupt())
        self.buffers = Buffers(self.plan)
        store = SweepStore(folder / "bench.zarr")
        store.create(self.plan, {"device": "", "versions": ""})
        self.writer = SampleWriter(store, self.plan)

    def evaluate(self) -> None:
        """Draws and model."""
        for tile in self.engine.tiles(self.block):
            jax.block_until_ready(tile.outputs)

    def summarise(self) -> None:
        """Draws, model and summaries."""
        self._computed(set())

    def write(self) -> None:
        """Everything that a run does, with samples kept."""
        names = {a.name for a in self.writer.wanted(self.block)}
        self.writer.write(self.block, self._computed(names).values)

    def _computed(self, names: set[str]) -> Computed:
        computed = self.worker.compute(self.block, self.buffers, names)
        assert computed is not None, "nothing interrupts a benchmark"
        return computed


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
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("spec", nargs="?", type=Path, default=SPEC)
    parser.add_argument("--pairs", type=int, default=10)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(asked.spec, Path(folder))
        sweep, samples = bench.plan.sweep, bench.block.samples
        device = bench.engine.devices[0].device_kind
        print(f"{sweep.name}: {len(sweep.outputs)} outputs, {samples:,} samples, {device}")
        measure("evaluate", bench.evaluate, samples, asked.pairs)
        measure("and summarise", bench.summarise, samples, asked.pairs)
        measure("and write", bench.write, samples, asked.pairs)


if __name__ == "__main__":
    main()
