"""Simulate the chain law behind `fabric_kernels.maths.chain`; writes its table.

Run: python kernels/constants/chain_length.py        (about four minutes)

n points are uniform on a cylinder of circumference 1 and height h, the turns of a ring: 2 for an
all-reduce, 1 for one phase of it, more for calls one after another. q follows p if a message that
leaves p can have reached q: dt >= (dx mod 1). The longest chain is found by dynamic programming
for few points, and for many by patience sorting of the points' images on the plane (in the
coordinates x and t - x a chain is a sequence that grows in both). Mean, standard deviation and
skewness of its length are tabled for every pair of n and h.
"""

import bisect
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SEED = 20261130
TURNS = (1, 2, 4, 8, 16)
REPETITIONS = {
    2: 400_000, 3: 400_000, 4: 400_000, 5: 400_000, 7: 300_000, 10: 300_000, 15: 200_000,
    20: 100_000, 30: 60_000, 50: 40_000, 100: 20_000, 200: 6_000, 500: 4_000, 1000: 2_000,
    2000: 1_000,
}  # fmt: skip
FEW = 50  # points up to which the recursion over pairs is faster
TARGET = Path(__file__).parents[1] / "fabric_kernels/maths/chain_coefficients.py"


def few(
    points: int, turns: int, repetitions: int, random: np.random.Generator
) -> NDArray[np.float64]:
    """Longest chains, by the recursion over pairs of points."""
    time = np.sort(random.uniform(0, turns, (points, repetitions)), axis=0)
    place = random.uniform(0, 1, (points, repetitions))
    longest = np.ones((points, repetitions), dtype=np.int16)
    for q in range(1, points):
        follows = time[q] - time[:q] >= (place[q] - place[:q]) % 1
        longest[q] += np.where(follows, longest[:q], 0).max(axis=0)
    return longest.max(axis=0).astype(np.float64)


def many(
    points: int, turns: int, repetitions: int, random: np.random.Generator
) -> NDArray[np.float64]:
    """Longest chains, by patience sorting."""
    found = [_patience(points, turns, random) for _ in range(repetitions)]
    return np.array(found, dtype=np.float64)


def _patience(points: int, turns: int, random: np.random.Generator) -> int:
    time, place = random.uniform(0, turns, points), random.uniform(0, 1, points)
    across = (place + np.arange(turns + 1)[:, None]).ravel()
    along = np.tile(time, turns + 1) - across
    tops: list[float] = []
    for value in along[np.argsort(across)].tolist():
        pile = bisect.bisect_right(tops, value)
        tops[pile : pile + 1] = [value]
    return len(tops)


def moments(lengths: NDArray[np.float64]) -> tuple[float, float, float]:
    """Mean, standard deviation and skewness."""
    mean, deviation = float(lengths.mean()), float(lengths.std())
    return mean, deviation, float((((lengths - mean) / deviation) ** 3).mean())


def exact_pair(turns: int) -> tuple[float, float, float]:
    """Two points: one follows the other with probability 1 - 1/h + 1/(3 h^2)."""
    chance = 1 - 1 / turns + 1 / (3 * turns**2)
    deviation = (chance * (1 - chance)) ** 0.5
    return 1 + chance, deviation, (1 - 2 * chance) / deviation


def main() -> None:
    """Simulate and write the table."""
    random = np.random.default_rng(SEED)
    rows = []
    for points, repetitions in REPETITIONS.items():
        simulate = few if points <= FEW else many
        found = [moments(simulate(points, h, repetitions, random)) for h in TURNS]
        if points == 2:
            found = [exact_pair(h) for h in TURNS]
        errors = [d / repetitions**0.5 for _, d, _ in found]
        shown = ", ".join(f"{m:.4f} +- {e:.4f}" for (m, _, _), e in zip(found, errors, strict=True))
        print(f"{points:5d} {shown}", flush=True)
        cells = ", ".join(f"({m:.6g}, {d:.4g}, {s:.3g})" for m, d, s in found)
        rows.append(f"    ({points}, ({cells})),\n")
    TARGET.write_text(
        '"""Length of the longest chain; written by kernels/constants/chain_length.py."""\n\n'
        f"TURNS = {TURNS}\n\n"
        "# points, then for every number of turns: mean, standard deviation, skewness\n"
        "CHAIN = (\n" + "".join(rows) + ")\n"
    )


if __name__ == "__main__":
    main()
