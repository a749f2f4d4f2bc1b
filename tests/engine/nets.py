"""Digital nets in base 2: their quality by algebra, and the elementary intervals by counting."""

import numpy as np
from numpy.typing import NDArray


def rank(rows: list[int]) -> int:
    """Rank over GF(2) of rows given as integers."""
    basis: list[int] = []
    for row in rows:
        for known in basis:
            row = min(row, row ^ known)
        if row:
            basis.append(row)
    return len(basis)


def quality(directions: NDArray[np.uint32], power: int) -> int:
    """The t of the (t, m, 2)-net of the first 2^m points in two dimensions, m = power.

    Least t such that any m - t leading digits, split between the two, are independent
    (Niederreiter, Random Number Generation and Quasi-Monte Carlo Methods, 1992, theorem 4.28).
    """
    digit_rows = [
        [
            sum(((int(column) >> (31 - digit)) & 1) << k for k, column in enumerate(one[:power]))
            for digit in range(power)
        ]
        for one in directions
    ]
    for t in range(power):
        digits = power - t
        splits = [digit_rows[0][:a] + digit_rows[1][: digits - a] for a in range(digits + 1)]
        if all(rank(rows) == digits for rows in splits):
            return t
    return power


def assert_net(points: NDArray[np.uint32], power: int, *, quality: int) -> None:
    """Every elementary interval of volume 2^(quality - power) holds 2^quality of the points.

    `points` [dimension, 2^power] are integers of one or two dimensions.
    """
    digits = power - quality
    wide = points.astype(np.int64)
    splits = [(digits,)] if len(points) == 1 else [(a, digits - a) for a in range(digits + 1)]
    for split in splits:
        cell = np.zeros(points.shape[1], dtype=np.int64)
        for word, bits in zip(wide, split, strict=True):
            cell = (cell << bits) | (word >> (32 - bits))
        counts = np.bincount(cell, minlength=2**digits)
        assert np.all(counts == 2**quality), (
            f"elementary intervals 2^-{split} hold from {counts.min()} to {counts.max()} points, "
            f"not {2**quality} each"
        )
