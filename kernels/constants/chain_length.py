"""Simulate the chain law behind `fabric_kernels.maths.chain`; writes its table.

Run: python kernels/constants/chain_length.py        (about a minute)

n points are uniform on a cylinder of circumference 1 and height 2, the two turns of a ring
all-reduce. q follows p if a message that leaves p can have reached q: dt >= (dx mod 1). The mean
length of the longest chain is found by dynamic programming for few points, and for many by
patience sorting of the points' images on the plane (in the coordinates x and t - x a chain is a
sequence that grows in both). Mean lengths are tabled with the slopes of a monotone cubic
(Fritsch and Butland, SIAM J. Sci. Stat. Comput. 5(2), 1984) in sqrt(n).
"""

import bisect
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator

SEED = 20261130
TURNS = 2
REPETITIONS = {
    3: 600_000, 4: 600_000, 5: 600_000, 7: 600_000, 10: 400_000, 20: 200_000, 50: 100_000,
    100: 50_000, 200: 25_000, 500: 10_000, 1000: 5_000, 2000: 2_500,
}  # fmt: skip
EXACT = {1: 1.0, 2: 19 / 12}
TARGET = Path(__file__).parents[1] / "fabric_kernels/maths/chain_coefficients.py"


def few(points: int, repetitions: int, random: np.random.Generator) -> NDArray[np.float64]:
    """Longest chains, by the recursion over pairs of points."""
    time = np.sort(random.uniform(0, TURNS, (points, repetitions)), axis=0)
    place = random.uniform(0, 1, (points, repetitions))
    longest = np.ones((points, repetitions), dtype=np.int16)
    for q in range(1, points):
        follows = time[q] - time[:q] >= (place[q] - place[:q]) % 1
        longest[q] += np.where(follows, longest[:q], 0).max(axis=0)
    return longest.max(axis=0).astype(np.float64)


def many(points: int, repetitions: int, random: np.random.Generator) -> NDArray[np.float64]:
    """Longest chains, by patience sorting."""
    return np.array([_patience(points, random) for _ in range(repetitions)], dtype=np.float64)


def _patience(points: int, random: np.random.Generator) -> int:
    time, place = random.uniform(0, TURNS, points), random.uniform(0, 1, points)
    across = (place + np.arange(TURNS + 1)[:, None]).ravel()
    along = np.tile(time, TURNS + 1) - across
    tops: list[float] = []
    for value in along[np.argsort(across)].tolist():
        pile = bisect.bisect_right(tops, value)
        tops[pile : pile + 1] = [value]
    return len(tops)


def main() -> None:
    """Simulate and write the table."""
    random = np.random.default_rng(SEED)
    mean = dict(EXACT)
    for points, repetitions in REPETITIONS.items():
        simulate = few if points <= 50 else many
        lengths = simulate(points, repetitions, random)
        mean[points] = float(lengths.mean())
        error = lengths.std() / np.sqrt(repetitions)
        print(f"{points:5d} {mean[points]:9.4f} +- {error:.4f}", flush=True)
    root = np.sqrt(np.array(list(mean), dtype=np.float64))
    slopes = PchipInterpolator(root, np.array(list(mean.values()))).derivative()(root)
    rows = [
        f"    ({count}, {length:.6g}, {slope:.6g}),\n"
        for (count, length), slope in zip(mean.items(), slopes, strict=True)
    ]
    TARGET.write_text(
        '"""Mean length of the longest chain; written by kernels/constants/chain_length.py."""\n\n'
        "# points, mean length, slope against the square root of the points\n"
        "CHAIN = (\n" + "".join(rows) + ")\n"
    )


if __name__ == "__main__":
    main()
