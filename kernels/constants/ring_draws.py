"""Draws of every standard law, many shapes of a family from the same random numbers.

The event-level simulations behind the constants of `fabric_kernels.jitter` share these: one
uniform, one exponential, one normal and a few gamma numbers a hop give a hop of all laws at once,
so that neighbouring shapes of a family differ by the shape and not by luck.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

SEED = 20261130
CACHE = Path(__file__).parents[2] / ".cache/constants"
"""Where finished batches wait, so that a script that is stopped goes on where it was."""

WEIBULL = (0.3, 0.35, 0.4, 0.5, 0.6, 0.8, 1.5, 2.0, 4.0, 10.0)
PARETO = (-0.5, -0.3, -0.1, 0.1, 0.2, 0.3, 0.4, 0.45, 0.49)
LOGNORMAL = (0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0)
GAMMA = (0.2, 0.3, 0.5, 2.0, 4.0, 8.0, 20.0)
SPIKES = (0.5, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0001)

LAWS: tuple[tuple[str, float], ...] = (
    ("exponential", 0.0),
    *(("weibull", k) for k in WEIBULL),
    *(("pareto", x) for x in PARETO),
    ("normal", 0.0),
    *(("lognormal", s) for s in LOGNORMAL),
    ("uniform", 0.0),
    *(("spikes", eps) for eps in SPIKES),
    *(("long_spikes", eps) for eps in SPIKES),
    *(("gamma", shape) for shape in GAMMA),
)
"""Family and shape; spikes have length 1, long spikes an exponential length of mean 1."""


def moments(family: str, shape: float) -> tuple[float, float]:
    """Mean and standard deviation of one draw."""
    from scipy import stats

    law = {
        "exponential": lambda: stats.expon(),
        "weibull": lambda: stats.weibull_min(shape),
        "pareto": lambda: stats.genpareto(shape),
        "normal": lambda: stats.norm(),
        "lognormal": lambda: stats.lognorm(shape),
        "uniform": lambda: stats.uniform(),
        "gamma": lambda: stats.gamma(shape),
    }
    if family == "spikes":
        return shape, float(np.sqrt(shape * (1 - shape)))
    if family == "long_spikes":
        return shape, float(np.sqrt(shape * (2 - shape)))
    made = law[family]()
    return float(made.mean()), float(made.std())


def transform(
    family: str, shape: float, base: dict[str, Floats], out: Floats, random: np.random.Generator
) -> None:
    """Write one hop of the law into `out`, from the shared numbers."""
    if family == "exponential":
        np.copyto(out, base["exponential"])
    elif family == "weibull":
        np.multiply(base["logarithm"], np.float32(1 / shape), out=out)
        np.exp(out, out=out)
    elif family == "pareto":
        np.multiply(base["exponential"], np.float32(shape), out=out)
        np.expm1(out, out=out)
        np.multiply(out, np.float32(1 / shape), out=out)
    elif family == "normal":
        np.copyto(out, base["normal"])
    elif family == "lognormal":
        np.multiply(base["normal"], np.float32(shape), out=out)
        np.exp(out, out=out)
    elif family == "uniform":
        np.copyto(out, base["uniform"])
    elif family == "spikes":
        np.less(base["uniform"], np.float32(shape), out=out)
    elif family == "long_spikes":
        np.less(base["uniform"], np.float32(shape), out=out)
        np.multiply(out, base["exponential"], out=out)
    else:
        random.standard_gamma(shape, dtype=np.float32, out=out)


class Hops:
    """One array of hops after another, of all laws."""

    def __init__(self, shape: tuple[int, ...], random: np.random.Generator) -> None:
        self.random = random
        self.base = {
            name: np.empty(shape, np.float32)
            for name in ("exponential", "logarithm", "normal", "uniform")
        }
        self.hop = np.empty(shape, np.float32)

    def all_laws(self) -> Iterator[tuple[int, Floats]]:
        """Number of the law in LAWS and its hops; the array is used again by the next law."""
        base, random = self.base, self.random
        random.standard_exponential(dtype=np.float32, out=base["exponential"])
        np.maximum(base["exponential"], np.float32(1e-30), out=base["exponential"])
        np.log(base["exponential"], out=base["logarithm"])
        random.standard_normal(dtype=np.float32, out=base["normal"])
        random.random(dtype=np.float32, out=base["uniform"])
        for number, (family, shape) in enumerate(LAWS):
            transform(family, shape, base, self.hop, random)
            yield number, self.hop


def cached(
    name: str,
    batches: int,
    simulate: Callable[[np.random.Generator], NDArray[Any]],
    key: tuple[int, ...],
) -> NDArray[Any]:
    """The samples of all batches, along the last axis; a finished batch is read, not repeated."""
    folder = CACHE / name
    folder.mkdir(parents=True, exist_ok=True)
    parts = []
    for batch in range(batches):
        path = folder / ("-".join(map(str, (*key, batch))) + ".npy")
        if not path.exists():
            random = np.random.Generator(np.random.SFC64([SEED, *key, batch]))
            made = simulate(random)
            partial = path.with_suffix(".part.npy")
            np.save(partial, made)
            partial.rename(path)
        parts.append(np.load(path))
    return np.concatenate(parts, axis=-1)
