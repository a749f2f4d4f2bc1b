"""Simulate halving and doubling pair by pair; write the table of `jitter.laws.doubling`.

Run: python kernels/constants/doubling_constants.py        (about five minutes on one core)

t[i] = max(t[i], t[i xor d]) + w[i] for the distances d = 1, 2, 4 ... (one way), and back again
d = ... 4, 2, 1 (both ways); which distance comes first does not matter to the law. A group of 2^l
ranks is a block of a larger one, so that one large run has samples of all smaller groups.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from ring_draws import LAWS, Floats, Hops, cached
from ring_fit import (
    FAMILIES,
    Reals,
    deviation,
    fitted,
    members,
    nested,
    spike_members,
    standardised,
)

SCRIPT = "kernels/constants/doubling_constants.py"
TARGET = Path(__file__).parents[1] / "fabric_kernels/jitter/laws/doubling_table.py"
GUMBELS = np.linspace(-2.0, 9.0, 23)

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


@cache
def simulated() -> NDArray[np.float32]:
    """Finishing times [level, way, law, sample] of all batches."""
    return cached("doubling", BATCHES, finishes, (MOST,))


def fitted_family(family: str, way: int) -> Reals:
    """Coefficients over level, doublings and shape."""
    points: list[list[float]] = []
    for number, y in members(family):
        for row, doublings in enumerate(LEVELS):
            times = simulated()[row, way, number].astype(np.float64)
            times = times[np.isfinite(times)]
            probabilities = np.exp(-np.exp(-GUMBELS))
            seen = (probabilities * times.size > 4) & ((1 - probabilities) * times.size > 4)
            gumbels, chances = GUMBELS[seen], probabilities[seen]
            values = np.quantile(times, chances)
            hops, most = np.asarray((way + 1.0) * doublings), (way + 1) * doublings * 2.0**doublings
            rest = standardised(number, values, hops, most, gumbels)
            error = _error(times, chances) + 2e-3 * np.abs(times.mean())
            unit = 1.0 if family == "pareto" else deviation(number)
            points += [
                [(v - 3.5) / 5.5, (doublings - 9) / 8, y, r, e / unit]
                for v, r, e in zip(gumbels, rest, error, strict=True)
            ]
    a, b, c, value, error = np.array(points).T
    found, missed = fitted([a, b, c], (3, 6, min(FAMILIES[family].degree, 4)), value, error)
    print(f"{family}, way {way}: within {np.abs(missed / error).max():.1f} errors", flush=True)
    return found


def _error(times: Reals, chances: Reals) -> Reals:
    """Standard errors of quantiles, by the distance of the neighbouring order statistics."""
    step = np.sqrt(chances * (1 - chances) / times.size)
    high, low = np.clip(chances + step, 0, 1), np.clip(chances - step, 0, 1)
    return (np.quantile(times, high) - np.quantile(times, low)) / 2


def fitted_spikes(way: int) -> Reals:
    """Coefficients of the logarithm of the mean wait for equal spikes, over doublings and share."""
    points: list[list[float]] = []
    for number, y in spike_members():
        for row, doublings in enumerate(LEVELS):
            times = simulated()[row, way, number].astype(np.float64)
            times = times[np.isfinite(times)]
            mean, error = times.mean(), times.std() / np.sqrt(times.size)
            if mean > 0:
                points.append([(doublings - 9) / 8, y, np.log(mean), error / mean + 2e-3])
    x, y, value, error = np.array(points).T
    found, missed = fitted([x, y], (5, 5), value, error)
    print(f"spikes, way {way}: within {np.abs(missed).max():.4f}", flush=True)
    return found


def main() -> None:
    """Simulate and write the table."""
    text = f'"""Constants of halving and doubling; written by {SCRIPT}; do not edit."""\n\n'
    text += "# ruff: noqa: E501\n# fmt: off\n"
    for way, name in enumerate(("ONE_WAY", "BOTH_WAYS")):
        rows = (f'"{f}": {nested(fitted_family(f, way))}' for f in FAMILIES)
        text += f"{name} = {{\n" + ",\n".join(rows) + ",\n}\n"
        text += f"SPIKES_{name} = {nested(fitted_spikes(way))}\n"
    TARGET.write_text(text)


if __name__ == "__main__":
    main()
