"""What analysing a large store costs: time and memory of the analysis and of a report.

    python -m bench.analysis [--samples 100_000_000] [--cells 36]

Two stores are made by NumPy alone. One is of a sweep of 1e8 samples in a cell, of which 1e6 are
kept: its summaries and samples are analysed under the memory that the process reaches. The other
has 36 cells and 22 outputs: its report is written, with its size.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import xarray as xr

from fabricarlo import analysis
from fabricarlo.report.writing import write_page
from fabricarlo.summaries.bins import bin_of, edges

REPLICATES, RANKS, KEPT = 8, 64, 1_000_000
LEVELS = [0.01, 0.1, 0.5, 0.9, 0.99, 0.999]
PARTS = ("compute", "pipeline", "bandwidth", "latency", "thermal", "congestion", "jitter", "loss")


def peak() -> float:
    """The most memory this process has held, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def columns(number: int, cells: int, others: int, seed: int = 1) -> xr.Dataset:
    """Samples of the step time, its parts, other outputs and 12 draws, as float32."""
    rng = np.random.default_rng(seed)
    made = {}
    for k, part in enumerate(PARTS):
        values = 10 / (1 + k) * np.exp(0.2 * rng.standard_normal((cells, number), np.float32))
        made[f"step_time_{part}"] = (("gpus", "sample"), values, {"units": "s", "long_name": part})
    whole = sum(v[1] for v in made.values())
    made["step_time"] = (("gpus", "sample"), whole, {"units": "s", "long_name": "step"})
    for k in range(others):
        values = rng.standard_normal((cells, number), np.float32)
        made[f"output_{k}"] = (("gpus", "sample"), values, {"units": "1", "long_name": "output"})
    for k in range(12):
        made[f"draw_{k}"] = ("sample", rng.random(number, np.float32), {"units": "1"})
    return xr.Dataset(made, {"gpus": np.arange(1.0, cells + 1)})


def tree(samples: xr.Dataset, weight: int) -> xr.DataTree:
    """A store of these samples; each stands for `weight` samples in the histograms."""
    outputs = [str(n) for n in samples.data_vars if not str(n).startswith("draw")]
    results, histograms = xr.Dataset(coords=samples.coords), xr.Dataset(coords=samples.coords)
    for name in outputs:
        values, attrs = samples[name].values, samples[name].attrs
        found = analysis.quantiles(samples[name], LEVELS, replicates=REPLICATES)
        ends = np.stack([found.low, found.high], axis=-1)
        mean = values.mean(axis=1, dtype=np.float64)
        about = attrs | {"long_name": f"{attrs['long_name']}: of samples"}
        results[name] = (("gpus", "quantile"), found.estimate.values, about)
        results[f"{name}_interval"] = (("gpus", "quantile", "bound"), ends, about)
        results[f"{name}_mean"] = ("gpus", mean, about)
        results[f"{name}_mean_interval"] = (("gpus", "bound"), np.stack([mean, mean], 1), about)
        results[f"{name}_nonfinite"] = ("gpus", np.zeros(len(mean), np.int64), about)
        histograms = histograms.assign(_histogram(name, values, about, weight))
    results = results.assign_coords(quantile=LEVELS, bound=["low", "high"])
    results.attrs = {"title": "bench", "outputs": outputs, "samples": samples.sizes["sample"],
                     "sampler": "sobol", "replicates": REPLICATES, "state": "finished"}  # fmt: skip
    groups = {"/": results, "/samples": samples, "/histograms": histograms}
    return xr.DataTree.from_dict(groups)


def _histogram(name: str, values: np.ndarray, attrs: dict, weight: int) -> dict:
    bins = bin_of(values)
    occupied = np.unique(bins)
    shape = (len(values), REPLICATES, len(occupied))
    counts = np.zeros(shape, np.int64)
    ends = np.zeros((2, len(values), REPLICATES, RANKS), np.float32)
    for c in range(len(values)):
        for r in range(REPLICATES):
            place = np.searchsorted(occupied, bins[c, r::REPLICATES])
            counts[c, r] = np.bincount(place, minlength=len(occupied)) * weight
            own = np.sort(values[c, r::REPLICATES])
            ends[:, c, r] = own[:RANKS], own[::-1][:RANKS]
    low, high = edges(occupied)
    dim, rank = f"{name}_bin", ("gpus", "replicate", "rank")
    return {
        f"{name}_counts": (("gpus", "replicate", dim), counts),
        f"{name}_bin_low": (dim, low, attrs),
        f"{name}_bin_high": (dim, high, attrs),
        f"{name}_smallest": (rank, ends[0]),
        f"{name}_largest": (rank, ends[1]),
    }


def analysed(made: xr.DataTree) -> None:
    """Every kind of question, once."""
    samples, histograms = made["samples"].to_dataset(), made["histograms"].to_dataset()
    questions = {
        "quantiles of samples": lambda: analysis.quantiles(
            samples.step_time, LEVELS, replicates=REPLICATES
        ),
        "quantiles of histograms": lambda: analysis.histogram_quantiles(
            histograms, "step_time", LEVELS
        ),
        "exceedance": lambda: analysis.exceedance(samples.step_time, 30.0, replicates=REPLICATES),
        "attribution": lambda: analysis.attribution(samples, replicates=REPLICATES),
        "first-order indices": lambda: analysis.first_order_indices(
            samples.step_time, samples[[f"draw_{k}" for k in range(12)]], replicates=REPLICATES
        ),
    }
    for name, question in questions.items():
        begin = time.process_time()
        question().load()
        print(f"{name:24} {time.process_time() - begin:6.2f} s of CPU, peak {peak():.2f} GB")


def main() -> None:
    """Read the command line, make both stores, print what they cost."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--samples", type=int, default=100_000_000)
    parser.add_argument("--cells", type=int, default=36)
    asked = parser.parse_args()
    kept = min(KEPT, asked.samples)
    print(f"one cell of {asked.samples:,} samples, {kept:,} kept")
    analysed(tree(columns(kept, 1, 0), asked.samples // kept))
    made = tree(columns(2**14, asked.cells, 13), 1)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        begin, clock = time.process_time(), time.perf_counter()
        write_page(made, "bench", page)
        print(
            f"report of {asked.cells} cells: {time.process_time() - begin:.1f} s of CPU, "
            f"{time.perf_counter() - clock:.1f} s, {page.stat().st_size / 1e6:.2f} MB"
        )


if __name__ == "__main__":
    main()
