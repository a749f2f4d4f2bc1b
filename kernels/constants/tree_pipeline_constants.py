"""Simulate pipelined binary trees; write the table of `jitter.laws.pipeline`.

Run: python kernels/constants/tree_pipeline_constants.py        (about three minutes on one core)

One tree: an edge carries chunk after chunk, a node sends a chunk when it has that chunk of both
children and its edge is free: A[e, c] = max(R[child, c], A[e, c-1]) + w, R[node, c] the larger of
its children's A; the root sends every chunk down again as it comes. A tree of depth d is a part
of a deeper one, and the first c chunks are a run of c chunks, so that one large run has samples
of all smaller ones.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from ring_draws import LAWS, Floats, Hops, cached
from ring_fit import FAMILIES, Reals, deviation, fitted, mean, members, nested, spike_members

SCRIPT = "kernels/constants/tree_pipeline_constants.py"
TARGET = Path(__file__).parents[1] / "fabric_kernels/jitter/laws/pipeline_table.py"
CHANCES = np.array([0.05, 0.2, 0.5, 0.8, 0.95, 0.99])

DEPTHS = (1, 2, 4, 8, 12)
CHUNKS = (1, 2, 4, 16, 64)
DEEPEST, MOST = max(DEPTHS), max(CHUNKS)
BATCHES = 40
KEPT = 256  # samples of one batch, depth, count and law


def _pass(edges: Floats, ready: Floats | None, hops: Hops) -> None:
    """One chunk over the edges of one level, of all laws."""
    for number, hop in hops.all_laws():
        if ready is not None:
            np.maximum(edges[number], ready[number], out=edges[number])
        np.add(edges[number], hop, out=edges[number])


def _down(falls: list[Floats], ready: Floats, hops: list[Hops]) -> Floats:
    """One chunk from all roots of one depth down; when its last leaf has it."""
    roots = ready.shape[1]
    for edges, hop_of in zip(falls, hops, strict=True):
        _pass(edges, np.repeat(ready, 2, axis=1), hop_of)
        ready = edges
    return ready.reshape(len(LAWS), roots, -1).max(axis=2)


def finishes(random: np.random.Generator) -> NDArray[np.float32]:
    """Finishing times up and down again [depth, chunks, law, KEPT] of one batch."""
    widths = [2 ** (DEEPEST - h) for h in range(DEEPEST)]
    hops = {w: Hops((w,), random) for w in {*widths, *(2**d for d in range(1, DEEPEST + 1))}}
    sent = [np.zeros((len(LAWS), w), np.float32) for w in widths]
    falls = {
        d: [np.zeros((len(LAWS), 2 ** (DEEPEST - d + k)), np.float32) for k in range(1, d + 1)]
        for d in DEPTHS
    }
    made = np.full((len(DEPTHS), len(CHUNKS), len(LAWS), KEPT), np.nan, np.float32)
    for chunk in range(1, MOST + 1):
        ready = None
        for height, edges in enumerate(sent, start=1):
            _pass(edges, ready, hops[edges.shape[1]])
            ready = edges.reshape(len(LAWS), -1, 2).max(axis=2)
            if height in DEPTHS:
                below = [hops[f.shape[1]] for f in falls[height]]
                last = _down(falls[height], ready, below)[:, :KEPT]
                if chunk in CHUNKS:
                    place = DEPTHS.index(height), CHUNKS.index(chunk)
                    made[*place, :, : last.shape[1]] = last
    return made


@cache
def simulated() -> NDArray[np.float32]:
    """Finishing times [depth, chunks, law, sample] of all batches."""
    return cached("pipeline", BATCHES, finishes, (DEEPEST, MOST))


def fitted_family(family: str) -> Reals:
    """Coefficients of kappa over level, log2 of the chunks, depth and shape.

    T(C) = T(1) + (C - 1) m + kappa sigma sqrt(D (C - 1)), quantile by quantile.
    """
    points: list[list[float]] = []
    for number, y in members(family):
        unit = 1.0 if family == "pareto" else deviation(number)
        for row, depth in enumerate(DEPTHS):
            times = simulated()[row, :, number].astype(np.float64)
            times = times[:, np.isfinite(times[0])]
            chances = CHANCES[CHANCES * times.shape[1] > 4]
            single = np.quantile(times[0], chances)
            for column, chunks in enumerate(CHUNKS[1:], start=1):
                scale = unit * np.sqrt(depth * (chunks - 1))
                rise = np.quantile(times[column], chances) - single
                kappa = (rise - (chunks - 1) * mean(number)) / scale
                error = times[column].std() / np.sqrt(times.shape[1] * (1 - chances)) / scale
                points += [
                    [-np.log(-np.log(p)) / 4, np.log2(chunks) / 3 - 1, (depth - 6.5) / 5.5, y, k, e]
                    for p, k, e in zip(chances, kappa, error + 0.01, strict=True)
                ]
    *axes, value, error = np.array(points).T
    found, missed = fitted(axes, (1, 3, 3, min(FAMILIES[family].degree, 3)), value, error)
    print(f"{family}: within {np.abs(missed / error).max():.1f} errors", flush=True)
    return found


def fitted_spikes() -> Reals:
    """Coefficients of log of the mean rise over sqrt(eps D (C - 1)), of equal spikes."""
    points: list[list[float]] = []
    for number, y in spike_members():
        share = LAWS[number][1]
        for row, depth in enumerate(DEPTHS):
            times = simulated()[row, :, number].astype(np.float64)
            times = times[:, np.isfinite(times[0])]
            for column, chunks in enumerate(CHUNKS[1:], start=1):
                rise = times[column] - times[0]
                error = rise.std() / np.sqrt(rise.size) / max(rise.mean(), 1e-9)
                if rise.mean() > 0 and error < 0.3:
                    value = np.log(rise.mean() / np.sqrt(share * depth * (chunks - 1)))
                    places = [np.log2(chunks) / 3 - 1, (depth - 6.5) / 5.5, y]
                    points.append([*places, value, error + 0.01])
    *axes, value, error = np.array(points).T
    found, missed = fitted(axes, (3, 2, 4), value, error)
    print(f"spikes: within {np.abs(missed / error).max():.1f} errors", flush=True)
    return found


def main() -> None:
    """Simulate and write the table."""
    text = f'"""Constants of pipelined trees; written by {SCRIPT}; do not edit."""\n\n'
    text += "# ruff: noqa: E501\n# fmt: off\n"
    rows = (f'"{f}": {nested(fitted_family(f))}' for f in FAMILIES)
    text += "KAPPA = {\n" + ",\n".join(rows) + ",\n}\n"
    TARGET.write_text(text + f"SPIKES = {nested(fitted_spikes())}\n")


if __name__ == "__main__":
    main()
