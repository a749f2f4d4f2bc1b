"""Simulate halving and doubling pair by pair; write the table of `jitter.laws.doubling`.

Run: python kernels/constants/doubling_constants.py        (about five minutes on one core)

t[i] = max(t[i], t[i xor d]) + w[i] for the distances d = 1, 2, 4 ... (one way), and back again
d = ... 4, 2, 1 (both ways); which distance comes first does not matter to the law. A group of 2^l
ranks is a block of a larger one, so that one large run has samples of all smaller groups.
"""

import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray
from ring_draws import LAWS, Floats, Hops, cached

MOST = 17
LEVELS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 17)
BATCHES = 48
KEPT = 2048  # samples of one batch, size and law


def _exchange(done: Floats, bit: int, hops: Hops) -> None:
    """One exchange of all ranks with their partners at distance 2^bit, of all laws."""
    later = np.empty(done.shape[1], np.float32)
    for number, hop in hops.all_laws():
        pairs = done[number].reshape(-1, 2, 2**bit)
        np.maximum(pairs[:, 0], pairs[:, 1], out=later.reshape(pairs.shape)[:, 0])
        later.reshape(pairs.shape)[:, 1] = later.reshape(pairs.shape)[:, 0]
        np.add(later, hop, out=done[number])


def _largest(done: Floats, level: int) -> Floats:
    """Finishing times [law, KEPT] of groups of 2^level, padded with NaN."""
    blocks = done.reshape(len(LAWS), -1, 2**level).max(axis=2)[:, :KEPT]
    padded = np.full((len(LAWS), KEPT), np.nan, np.float32)
    padded[:, : blocks.shape[1]] = blocks
    return padded


def finishes(random: np.random.Generator) -> NDArray[np.float32]:
    """Finishing times [level, one or both ways, law, KEPT] of one large run."""
    done = np.zeros((len(LAWS), 2**MOST), np.float32)
    hops = Hops((2**MOST,), random)
    made = []
    for level in range(1, MOST + 1):
        _exchange(done, level - 1, hops)
        if level in LEVELS:
            back = done.copy()
            for bit in reversed(range(level)):
                _exchange(back, bit, hops)
            made.append(np.stack([_largest(done, level), _largest(back, level)]))
    return np.stack(made)


def simulated() -> NDArray[np.float32]:
    """Finishing times [level, way, law, sample] of all batches."""
    return cached("doubling", BATCHES, finishes, (MOST,))


def main() -> None:
    """Simulate and write the table."""
    found = simulated()
    print(found.shape, np.nanmean(found[3, 0, 0]), np.nanmean(found[-1, :, 0], axis=1))


if __name__ == "__main__":
    sys.exit(main())
