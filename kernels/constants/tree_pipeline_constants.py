"""Simulate pipelined binary trees; write the table of `jitter.laws.pipeline`.

Run: python kernels/constants/tree_pipeline_constants.py        (about three minutes on one core)

One tree: an edge carries chunk after chunk, a node sends a chunk when it has that chunk of both
children and its edge is free: A[e, c] = max(R[child, c], A[e, c-1]) + w, R[node, c] the larger of
its children's A; the root sends every chunk down again as it comes. The first c chunks of a run
are a run of c chunks. Finished batches are kept under .cache/, so a run that is stopped goes on
where it was.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from ring_draws import LAWS, Floats, Hops, cached
from ring_fit import (
    FAMILIES,
    Reals,
    deviation,
    fitted,
    mean,
    members,
    nested,
    quantile,
    spike_members,
)

SCRIPT = "kernels/constants/tree_pipeline_constants.py"
TARGET = Path(__file__).parents[1] / "fabric_kernels/jitter/laws/pipeline_table.py"
CHANCES = np.array([0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.99])
DEGREES = 3, 4, 5  # of kappa: level, chunks, depth
ENOUGH = 5  # samples beyond a quantile

CHUNKS = (1, 2, 4, 8, 16, 32, 64)
RUNS = {
    (1, 64): (2, 4096), (2, 64): (2, 4096), (3, 64): (4, 2048), (4, 64): (8, 1024),
    (6, 64): (24, 256), (8, 64): (50, 48), (10, 64): (60, 12), (12, 8): (60, 16),
    (12, 64): (60, 4),
}  # fmt: skip
"""Depth and most chunks -> batches and samples a batch."""


def _pass(edges: Floats, ready: Floats | None, hops: Hops) -> None:
    """One chunk over the edges of one level, of all laws."""
    for number, hop in hops.all_laws():
        if ready is not None:
            np.maximum(edges[number], ready[number], out=edges[number])
        np.add(edges[number], hop, out=edges[number])


def finishes(
    depth: int, most: int, samples: int, random: np.random.Generator
) -> NDArray[np.float32]:
    """Finishing times up and down again [chunks, law, sample]."""
    hops = {d: Hops((2**d, samples), random) for d in range(1, depth + 1)}
    up = [np.zeros((len(LAWS), 2**d, samples), np.float32) for d in range(depth, 0, -1)]
    down = [np.zeros_like(edges) for edges in reversed(up)]
    made = np.full((len(CHUNKS), len(LAWS), samples), np.nan, np.float32)
    for chunk in range(1, most + 1):
        ready = None
        for d, edges in zip(range(depth, 0, -1), up, strict=True):
            _pass(edges, ready, hops[d])
            ready = np.maximum(edges[:, ::2], edges[:, 1::2])
        for d, edges in enumerate(down, start=1):
            assert ready is not None
            _pass(edges, np.repeat(ready, 2, axis=1), hops[d])
            ready = edges
        if chunk in CHUNKS:
            made[CHUNKS.index(chunk)] = down[-1].max(axis=1)
    return made


@cache
def simulated(depth: int, most: int) -> NDArray[np.float64]:
    """Finishing times [chunks, law, sample] of all batches."""
    batches, samples = RUNS[depth, most]

    def simulate(random: np.random.Generator) -> NDArray[np.float32]:
        return finishes(depth, most, samples, random)

    return cached("pipelined", batches, simulate, (depth, most)).astype(np.float64)


class Rise(NamedTuple):
    """Finishing times of one run with one chunk and with more, of one law."""

    depth: int
    chunks: int
    single: Reals
    several: Reals


def rises(number: int) -> Iterator[Rise]:
    """All runs of one law, chunks by chunks."""
    for depth, most in RUNS:
        times = simulated(depth, most)[:, number]
        for column, chunks in enumerate(CHUNKS[1:], start=1):
            if chunks <= most:
                yield Rise(depth, chunks, times[0], times[column])


def place(one: Rise) -> tuple[float, float]:
    """The coordinates of chunks and depth in [-1, 1]."""
    return float(np.log2(one.chunks)) / 3 - 1, (one.depth - 6.5) / 5.5


def fitted_family(family: str) -> Reals:
    """Coefficients of kappa over level, log2 of the chunks, depth and shape.

    T(C) = T(1) + (C - 1) m + M(C) - M(1) + kappa sigma sqrt(D (C - 1)), quantile by quantile, M
    the largest of all hops.
    """
    points: list[list[float]] = []
    for number, y in members(family):
        unit = 1.0 if family == "pareto" else deviation(number)
        for one in rises(number):
            scale = unit * np.sqrt(one.depth * (one.chunks - 1))
            many = one.single.size
            chances = CHANCES[np.minimum(CHANCES, 1 - CHANCES) * many > ENOUGH]
            rise = np.quantile(one.several, chances) - np.quantile(one.single, chances)
            hops = 2 * (2 ** (one.depth + 1) - 2)
            below = np.log(chances)
            jump = quantile(number, below / hops / one.chunks) - quantile(number, below / hops)
            kappa = (rise - (one.chunks - 1) * mean(number) - jump) / scale
            error = one.several.std() / np.sqrt(many * (1 - chances)) / scale
            points += [
                [-np.log(-np.log(p)) / 4, *place(one), y, k, e]
                for p, k, e in zip(chances, kappa, error + 0.01, strict=True)
            ]
    *axes, value, error = np.array(points).T
    found, missed = fitted(axes, (*DEGREES, min(FAMILIES[family].degree, 3)), value, error)
    print(f"{family}: within {np.abs(missed / error).max():.1f} errors", flush=True)
    return found


def fitted_spikes() -> Reals:
    """Coefficients of log of the mean rise over sqrt(eps D (C - 1)), of equal spikes."""
    points: list[list[float]] = []
    for number, y in spike_members():
        share = LAWS[number][1]
        for one in rises(number):
            rise = one.several - one.single
            error = rise.std() / np.sqrt(rise.size) / max(rise.mean(), 1e-9)
            if rise.mean() > 0 and error < 0.3:
                value = np.log(rise.mean() / np.sqrt(share * one.depth * (one.chunks - 1)))
                points.append([*place(one), y, value, error + 0.01])
    *axes, value, error = np.array(points).T
    found, missed = fitted(axes, (5, 5, 5), value, error)
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
