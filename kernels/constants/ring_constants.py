"""Simulate rings message by message; write the constants of `fabric_kernels.jitter.laws.ring`.

Run: python kernels/constants/ring_constants.py        (about 15 minutes on one core)

t[i, k+1] = max(t[i, k], t[i-1, k]) + w[i, k], K = 2 (N - 1) steps, all ranks start together; the
finishing time is the largest t. Batches are kept under .cache/, so a run that is stopped goes on
where it was.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from ring_draws import LAWS, SEED, Hops, cached
from ring_fit import FAMILIES, Reals, deviation, fitted, mean, members
from ring_spread import offset_at, place, spread_of, unit_of

SCRIPT = "kernels/constants/ring_constants.py"
TARGET = Path(__file__).parents[1] / "fabric_kernels/jitter/laws/ring_table.py"
MEASURED = Path(__file__).with_name("ring_simulated.csv")
DECAY = -0.57  # of the excess with the ranks, KPZ's -2/3 and its logarithms around 4096

RINGS = {
    2: (1, 200_000), 3: (1, 200_000), 4: (1, 300_000), 8: (4, 60_000), 16: (8, 16_384),
    32: (12, 4_096), 64: (24, 1024), 128: (24, 256), 256: (36, 72), 512: (20, 32),
    1024: (20, 8), 2048: (10, 5), 4096: (4, 2),
}  # fmt: skip
"""Ranks -> batches and samples a batch, of an all-reduce."""

PHASES = {
    2: (1, 100_000), 4: (1, 100_000), 8: (1, 60_000), 16: (2, 16_384), 32: (4, 4_096),
    64: (6, 1024), 128: (8, 256), 256: (10, 72), 512: (8, 32), 1024: (8, 8),
}  # fmt: skip
"""The same, of one phase."""

SPREADS = (4, 8, 16, 32, 64, 128, 256, 512)
"""Ranks of which enough samples are left to know the spread."""


def finishes(
    ranks: int, steps: int, samples: int, random: np.random.Generator
) -> NDArray[np.float32]:
    """Finishing times [law, sample] of `samples` rings of every law."""
    width = max(1, min(samples, 16384 // ranks))
    made = np.empty((len(LAWS), samples), np.float32)
    for start in range(0, samples, width):
        many = min(width, samples - start)
        hops = Hops((ranks, many), random)
        done = np.zeros((len(LAWS), ranks, many), np.float32)
        later = np.empty((ranks, many), np.float32)
        for _ in range(steps):
            for number, hop in hops.all_laws():
                now = done[number]
                np.maximum(now[1:], now[:-1], out=later[1:])
                np.maximum(now[0], now[-1], out=later[0])
                np.add(later, hop, out=now)
        made[:, start : start + many] = done.max(axis=1)
    return made


def simulated(ranks: int) -> NDArray[np.float64]:
    """Finishing times [law, sample] of both phases, all batches."""
    batches, samples = RINGS[ranks]

    def simulate(random: np.random.Generator) -> NDArray[np.float32]:
        return finishes(ranks, 2 * (ranks - 1), samples, random)

    return cached("ring", batches, simulate, (ranks,)).astype(np.float64)


def simulated_phase(ranks: int) -> NDArray[np.float64]:
    """The same of one phase, ranks - 1 steps."""
    batches, samples = PHASES[ranks]

    def simulate(random: np.random.Generator) -> NDArray[np.float32]:
        return finishes(ranks, ranks - 1, samples, random)

    return cached("ring_phase", batches, simulate, (ranks, 1)).astype(np.float64)


class Constants(NamedTuple):
    """What is known of one law in rings of one size."""

    excess: Reals  # over the mean, of one hop, in units; [size, law]
    error: Reals
    width: Reals  # a / (unit K^(1/3))


def constants() -> Constants:
    """The constants of all sizes and laws."""
    made = np.full((3, len(RINGS), len(LAWS)), np.nan)
    for row, ranks in enumerate(RINGS):
        steps, times = 2 * (ranks - 1), simulated(ranks)
        for number in range(len(LAWS)):
            unit = unit_of(number)
            made[0, row, number] = (times[number].mean() / steps - mean(number)) / unit
            made[1, row, number] = times[number].std() / np.sqrt(times.shape[1]) / steps / unit
            if ranks in SPREADS and "spikes" not in LAWS[number][0]:
                width = spread_of(number, steps * ranks, times[number])
                made[2, row, number] = width / unit / steps ** (1 / 3)
    return Constants(*made)


def fitted_family(family: str, known: Constants) -> dict[str, Reals]:
    """Coefficients of every constant of a family, and their largest misses."""
    sizes, degree = np.array(list(RINGS), float), FAMILIES[family].degree
    numbers, places = zip(*members(family), strict=True)
    x, y = (v.ravel() for v in np.meshgrid(place(sizes), np.array(places), indexing="ij"))

    def fit(values: Reals, errors: Reals, degrees: tuple[int, int]) -> tuple[Reals, Reals]:
        flat, error = values[:, list(numbers)].ravel(), errors[:, list(numbers)].ravel()
        seen = np.isfinite(flat)
        return fitted([x[seen], y[seen]], degrees, flat[seen], error[seen])

    relative = known.error / known.excess + 4e-4
    excess, missed = fit(np.log(known.excess), relative, (8, degree))
    top = np.array([_limit(known, number) for number in numbers])
    limit, _ = fitted([np.array(places)], [min(degree, 4)], top, top)
    phase = _phase(known, numbers, np.array(places), degree)
    print(f"{family}: excess fits to {np.abs(missed).max():.4f}", flush=True)
    made = {"EXCESS": excess, "LIMIT": limit, "PHASE": phase}
    return made | _spread(known, numbers, np.array(places), degree)


def _limit(known: Constants, number: int) -> float:
    """The excess of an endless ring, from 512 ranks on: falling like N^DECAY, never rising.

    1 for exponential hops (Johansson, Commun. Math. Phys. 209, 2000).
    """
    if LAWS[number][0] == "exponential":
        return 1.0
    sizes = np.array([n for n in RINGS if n >= 512], float)
    excess, error = known.excess[-sizes.size :, number], known.error[-sizes.size :, number]
    decay = (sizes / 4096) ** DECAY
    slope, limit = np.polyfit(decay, excess, 1, w=1 / error)
    return float(limit if slope > 0 else max(excess[-1], excess[-2]))


def _phase(known: Constants, numbers: Sequence[int], places: Reals, degree: int) -> Reals:
    """log of the excess of one phase over that of an all-reduce of as many ranks."""
    points: list[tuple[float, float, float, float]] = []
    for ranks in PHASES:
        times, row = simulated_phase(ranks), list(RINGS).index(ranks)
        for number, y in zip(numbers, places, strict=True):
            steps, unit = ranks - 1, unit_of(number)
            excess = (times[number].mean() / steps - mean(number)) / unit
            error = times[number].std() / np.sqrt(times.shape[1]) / steps / unit
            ratio = excess / known.excess[row, number]
            both = np.hypot(error / excess, known.error[row, number] / known.excess[row, number])
            points.append((float(place(np.array(ranks))), y, np.log(ratio), both + 1e-3))
    x, y, value, error = np.array(points).T
    return fitted([x, y], (5, min(degree, 3)), value, error)[0]


def _spread(
    known: Constants, numbers: Sequence[int], places: Reals, degree: int
) -> dict[str, Reals]:
    """log of the width, its offset, and what one phase adds to each.

    The offset is that of the fitted width, which keeps the mean; rings of two ranks, whose width
    is not fitted, get the width of four and an offset of their own.
    """
    points: list[tuple[float, ...]] = []
    for ranks in SPREADS:
        times, row, steps = simulated_phase(ranks), list(RINGS).index(ranks), ranks - 1
        for number, y in zip(numbers, places, strict=True):
            width = spread_of(number, steps * ranks, times[number])
            narrower = width / unit_of(number) / steps ** (1 / 3) / known.width[row, number]
            size, error = float(place(np.array(ranks))), 0.03 + 1 / np.sqrt(times.shape[1])
            points.append((size, y, np.log(known.width[row, number]), np.log(narrower), error))
    x, y, both, narrower, error = np.array(points).T
    wide, missed = fitted([x, y], (3, min(degree, 4)), both, np.full_like(x, 0.03))
    phase, _ = fitted([x, y], (3, min(degree, 3)), narrower, error)
    print(f"    width fits to {np.abs(missed).max():.3f}", flush=True)
    offsets: list[tuple[float, ...]] = []
    for ranks in (2, *SPREADS):
        size, held = (float(place(np.array(max(ranks, n)))) for n in (2, min(SPREADS)))
        for number, y in zip(numbers, places, strict=True):
            law = number, ranks, unit_of(number)
            one = np.polynomial.polynomial.polyval2d(held, y, wide)
            other = one + np.polynomial.polynomial.polyval2d(held, y, phase)
            offset, nearer = offset_at(*law, 2, float(one)), offset_at(*law, 1, float(other))
            offsets.append((size, y, offset, nearer - offset))
    x, y, offset, nearer = np.array(offsets).T
    even = np.full_like(x, 0.01)
    made, missed = fitted([x, y], (4, min(degree, 4)), offset, even)
    print(f"    offset fits to {np.abs(missed).max():.3f}", flush=True)
    return {
        "WIDTH": wide, "OFFSET": made, "PHASE_WIDTH": phase,
        "PHASE_OFFSET": fitted([x, y], (5, min(degree, 3)), nearer, even)[0],
    }  # fmt: skip


def fitted_spikes(family: str, known: Constants) -> Reals:
    """Coefficients of log(excess / base) of spikes: 7 powers of w, 2 x 3 of eps, 4 of q."""
    rows, values, errors = [], [], []
    for row, ranks in enumerate(RINGS):
        for number, (name, share) in enumerate(LAWS):
            if name == family and ranks >= 4:
                steps, unit = 2 * (ranks - 1), unit_of(number)
                spikes = share * steps * ranks
                base = spikes / np.sqrt(1 + spikes / 2) * (1 - 1 / ranks) / steps
                rows.append(spike_terms(spikes, share, ranks))
                values.append(np.log(known.excess[row, number] * unit / base))
                errors.append(known.error[row, number] / known.excess[row, number] + 2e-3)
    design, error = np.array(rows), np.array(errors)
    solved = np.linalg.lstsq(design / error[:, None], np.array(values) / error, rcond=None)[0]
    print(f"{family}: fits to {np.abs(design @ solved - values).max():.4f}", flush=True)
    return np.asarray(solved, np.float64)


def spike_terms(spikes: float, share: float, ranks: float) -> Reals:
    """The terms of the excess of spikes."""
    w = np.log1p(spikes) / (np.log1p(spikes) + 3)
    q = ranks ** (-1 / 3)
    return np.concatenate(
        [w ** np.arange(7), share * w ** np.arange(3), share**2 * w ** np.arange(3),
         q * w ** np.arange(4)]
    )  # fmt: skip


def _row(values: Reals) -> str:
    if values.ndim == 1:
        return "(" + ", ".join(f"{v:.7g}" for v in values) + ",)"
    return "(" + "".join(f"{_row(v)}, " for v in values).rstrip() + ")"


def written(known: Constants) -> str:
    """The text of the table."""
    tables = {family: fitted_family(family, known) for family in FAMILIES}
    text = f'"""Constants of rings; written by {SCRIPT}; do not edit."""\n\n'
    text += "# ruff: noqa: E501\n# fmt: off\n"
    ranges = {f: (kind.low, kind.high) for f, kind in FAMILIES.items()}
    text += "RANGE = {\n" + "".join(f'    "{f}": {r},\n' for f, r in ranges.items()) + "}\n"
    for name in ("EXCESS", "LIMIT", "PHASE", "WIDTH", "OFFSET", "PHASE_WIDTH", "PHASE_OFFSET"):
        text += f"{name} = {{\n"
        for family, table in tables.items():
            text += f'    "{family}": {_row(table[name])},\n'
        text += "}\n"
    for family in ("spikes", "long_spikes"):
        text += f"{family.upper()} = {_row(fitted_spikes(family, known))}\n"
    return text


def measured(known: Constants) -> str:
    """The simulated constants themselves, with their standard errors."""
    text = f"# written by {SCRIPT}, seed {SEED}; excess of one hop over its mean, in deviations\n"
    text += "law,shape,ranks,samples,excess,standard_error\n"
    for number, (family, shape) in enumerate(LAWS):
        for row, (ranks, (batches, samples)) in enumerate(RINGS.items()):
            scale = unit_of(number) / deviation(number)
            excess, error = (v[row, number] * scale for v in (known.excess, known.error))
            text += f"{family},{shape},{ranks},{batches * samples},{excess:.6g},{error:.3g}\n"
    return text


def main() -> None:
    """Simulate and write the tables."""
    known = constants()
    TARGET.write_text(written(known))
    MEASURED.write_text(measured(known))


if __name__ == "__main__":
    main()
