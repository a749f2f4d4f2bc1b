"""The exact law of a binary tree under hop noise; writes the table of `jitter.laws.tree`.

Run: python kernels/constants/tree_constants.py        (about three minutes on one core)

One chunk, one leg of depth h: F_h = (F_{h-1} * dF_w)^2, the larger of two independent children's
arrivals, on a grid by fast Fourier transform; both legs: F_h * dF_h, as up and down share no hop.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ring_draws import LAWS, cached
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
from scipy import fft, stats

SCRIPT = "kernels/constants/tree_constants.py"
TARGET = Path(__file__).parents[1] / "fabric_kernels/jitter/laws/tree_table.py"
DEPTHS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 17, 20)
GUMBELS = np.linspace(-3.0, 9.0, 25)
"""Where the quantile function is kept: -log(-log F)."""


def law_of(family: str, shape: float) -> Any:
    """The SciPy law of one hop."""
    return {
        "exponential": lambda: stats.expon(), "weibull": lambda: stats.weibull_min(shape),
        "pareto": lambda: stats.genpareto(shape), "normal": lambda: stats.norm(),
        "lognormal": lambda: stats.lognorm(shape), "uniform": lambda: stats.uniform(),
        "gamma": lambda: stats.gamma(shape),
    }[family]()  # fmt: skip


def _grid(law: Any) -> tuple[float, float, int]:
    """Start of one hop, step and points of a grid that holds the deepest tree."""
    depth = max(DEPTHS)
    start = float(law.ppf(1e-12))
    rare = float(law.isf(1e-5 * 0.5 ** (depth + 2)))
    spread = float(law.std())
    reach = 2 * depth * (float(law.mean()) - start + 2.8 * spread) + 1.2 * (rare - start)
    step = max(spread / 150, reach / 2**21)
    return start, step, int(2 ** np.ceil(np.log2(reach / step)))


def _quantiles(below: NDArray[np.float64], start: float, step: float) -> NDArray[np.float64]:
    """Quantiles at GUMBELS from the CDF at the upper edges of the cells."""
    want = -np.exp(-GUMBELS)  # log F
    with np.errstate(divide="ignore"):
        have = np.log(np.clip(below, 1e-300, 1.0))
    first = int(np.searchsorted(below, 1e-14))
    last = int(np.searchsorted(below, 1 - 1e-10))
    inside = slice(first, max(last, first + 2))
    ordered = np.maximum.accumulate(have[inside])
    # F is curved, -log(-log F) nearly straight in x
    flat = -np.log(np.maximum(-ordered, 1e-12))
    keep = np.concatenate([[True], np.diff(flat) > 0])
    places = start + step * (np.arange(below.size)[inside] + 1.0)
    return np.interp(-np.log(-want), flat[keep], places[keep])


def tabulated(family: str, shape: float) -> NDArray[np.float64]:
    """Quantiles [depth, one or both legs, GUMBELS] of the law."""
    law = law_of(family, shape)
    start, step, points = _grid(law)
    edges = start + step * np.arange(points + 1)
    survival = law.sf(edges)
    mass = -np.diff(survival)
    mass[0] += 1 - survival[0]
    size = 2 * points
    hop = np.asarray(fft.rfft(mass, size))
    below, made = np.ones(points), []
    arrival = np.zeros(points)
    arrival[0] = 1.0
    # a mass sits in the middle of its cell: half a step for every hop
    for depth in range(1, max(DEPTHS) + 1):
        arrival = np.asarray(fft.irfft(np.asarray(fft.rfft(arrival, size)) * hop, size))[:points]
        below = np.clip(np.cumsum(np.maximum(arrival, 0)), 0, 1) ** 2
        if depth in DEPTHS:
            # F at the middle between two masses; the masses of depth hops are off by depth / 2
            origin = depth * start + (depth - 1) * step / 2
            one = _quantiles(below, origin, step)
            both = np.asarray(fft.rfft(np.diff(below, prepend=0.0), size))
            pair = np.cumsum(np.asarray(fft.irfft(both * both, size))[:points])
            made.append([one, _quantiles(pair, 2 * origin + step / 2, step)])
        arrival = np.diff(below, prepend=0.0)
    return np.array(made)


@cache
def simulated() -> dict[tuple[str, float], NDArray[np.float64]]:
    """The table of every law with a density."""
    return {
        (family, shape): cached("tree", 1, lambda _, f=family, s=shape: tabulated(f, s), (number,))
        for number, (family, shape) in enumerate(LAWS)
        if "spikes" not in family
    }


def spike_means() -> Reals:
    """Mean of the wait for equal spikes [leg - 1, depth, law] in their length, by the recursion."""
    made = np.zeros((2, len(DEPTHS), len(spike_members())))
    for column, (number, _) in enumerate(spike_members()):
        share, above = LAWS[number][1], np.zeros(64)  # P(more than k spikes)
        for depth in range(1, max(DEPTHS) + 1):
            before = np.concatenate([[1.0], above[:-1]])
            arrived = (1 - share) * above + share * before
            above = arrived * (2 - arrived)
            if depth in DEPTHS:
                mean_of_leg = above.sum()
                made[:, DEPTHS.index(depth), column] = mean_of_leg, 2 * mean_of_leg
    return made


def fitted_family(family: str, legs: int) -> Reals:
    """Coefficients over level, depth and shape."""
    points: list[list[float]] = []
    for number, y in members(family):
        table = simulated()[LAWS[number]]
        for row, depth in enumerate(DEPTHS):
            values = table[row, legs - 1]
            hops, most = np.asarray(1.0 * legs * depth), legs * (2 ** (depth + 1) - 2)
            rest = standardised(number, values, hops, most, GUMBELS)
            size = np.maximum(np.abs(values), 0.2 * hops * deviation(number))
            error = size / (1.0 if family == "pareto" else deviation(number))
            points += [
                [(v - 3.5) / 5.5, (depth - 10.5) / 9.5, y, r, e]
                for v, r, e in zip(GUMBELS, rest, error, strict=True)
                if v >= -2
            ]
    a, b, c, value, error = np.array(points).T
    found, missed = fitted([a, b, c], (6, 6, min(FAMILIES[family].degree, 5)), value, error)
    print(f"{family}, {legs} legs: within {np.abs(missed / error).max():.4f}", flush=True)
    return found


def fitted_spikes(means: Reals) -> Reals:
    """Coefficients of the logarithm of the mean over depth and share."""
    places = np.array([y for _, y in spike_members()])
    x, y = (v.ravel() for v in np.meshgrid((np.array(DEPTHS) - 10.5) / 9.5, places, indexing="ij"))
    found, missed = fitted([x, y], (6, 6), np.log(means.ravel()), np.ones(x.size))
    print(f"spikes: within {np.abs(missed).max():.4f}", flush=True)
    return found


def main() -> None:
    """Compute and write the table."""
    text = f'"""Constants of trees; written by {SCRIPT}; do not edit."""\n\n'
    text += "# ruff: noqa: E501\n# fmt: off\n"
    for legs, name in ((1, "ONE_LEG"), (2, "BOTH_LEGS")):
        rows = (f'"{f}": {nested(fitted_family(f, legs))}' for f in FAMILIES)
        text += f"{name} = {{\n" + ",\n".join(rows) + ",\n}\n"
    text += f"SPIKES = {nested(fitted_spikes(spike_means()[0]))}\n"
    TARGET.write_text(text)


if __name__ == "__main__":
    main()
