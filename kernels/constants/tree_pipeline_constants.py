"""Simulate pipelined binary trees; write the table of `jitter.laws.pipeline`.

Run: python kernels/constants/tree_pipeline_constants.py        (about three minutes on one core)

One leg of one tree: an edge carries chunk after chunk, a node sends a chunk when it has that chunk
of both children and its edge is free: A[e, c] = max(R[child, c], A[e, c-1]) + w, R[node, c] the
larger of its children's A. A tree of depth d is a part of a deeper one, and the first c chunks are
a run of c chunks, so that one large run has samples of all smaller ones.
"""

import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray
from ring_draws import LAWS, Hops, cached

DEPTHS = (1, 2, 3, 4, 6, 8, 10, 12)
CHUNKS = (1, 2, 4, 8, 16, 32, 64, 128)
DEEPEST, MOST = max(DEPTHS), max(CHUNKS)
BATCHES = 40
WIDTH = 4  # samples of the deepest tree in a batch
KEPT = 1024


def finishes(random: np.random.Generator) -> NDArray[np.float32]:
    """Finishing times [depth, chunks, law, KEPT] of one batch."""
    hops = [Hops((2 ** (DEEPEST - h) * WIDTH,), random) for h in range(DEEPEST)]
    sent = [np.zeros((len(LAWS), h.hop.size), np.float32) for h in hops]
    made = np.full((len(DEPTHS), len(CHUNKS), len(LAWS), KEPT), np.nan, np.float32)
    for chunk in range(1, MOST + 1):
        ready = None
        for height, (edge, hop_of) in enumerate(zip(sent, hops, strict=True), start=1):
            for number, hop in hop_of.all_laws():
                if ready is not None:
                    np.maximum(edge[number], ready[number], out=edge[number])
                np.add(edge[number], hop, out=edge[number])
            ready = edge.reshape(len(LAWS), -1, 2).max(axis=2)
            if chunk in CHUNKS and height in DEPTHS:
                kept = ready[:, :KEPT]
                made[DEPTHS.index(height), CHUNKS.index(chunk), :, : kept.shape[1]] = kept
    return made


def simulated() -> NDArray[np.float32]:
    """Finishing times [depth, chunks, law, sample] of all batches."""
    return cached("pipeline", BATCHES, finishes, (DEEPEST, MOST))


def main() -> None:
    """Simulate and write the table."""
    found = simulated()
    print(found.shape, np.nanmean(found[:, :, 0], axis=-1))


if __name__ == "__main__":
    sys.exit(main())
