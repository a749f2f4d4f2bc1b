"""Known laws and designs that tests of the analysis draw from."""

import math
from collections.abc import Callable

import numpy as np
import xarray as xr
from scipy import stats
from scipy.stats import qmc

DIM = "sample"


def sampled(values: np.ndarray, **attrs: object) -> xr.DataArray:
    """Rows of samples as a labelled array."""
    dims = ("cell", DIM) if values.ndim == 2 else (DIM,)
    about = {"units": "s", "long_name": "time of a step"}
    return xr.DataArray(values, dims=dims, name="step_time", attrs=about | attrs)


def stratified(rows: int, replicates: int, points: int, seed: int) -> np.ndarray:
    """Sums of a normal over scrambled points and a plain one: N(0, 2), sample i of replicate i % R.

    A scrambled net in one dimension has one uniform point in each of its equal cells.
    """
    rng = np.random.default_rng(seed)
    cells = (np.arange(points)[:, None] + rng.random((rows, points, replicates))) / points
    return (stats.norm.ppf(cells) + rng.standard_normal(cells.shape)).reshape(rows, -1)


def ishigami(x: np.ndarray) -> np.ndarray:
    """Ishigami's function with a = 7, b = 0.1, of x in (0, 1)^3."""
    z = math.pi * (2 * x - 1)
    return np.sin(z[..., 0]) * (1 + 0.1 * z[..., 2] ** 4) + 7 * np.sin(z[..., 1]) ** 2


def ishigami_indices() -> tuple[list[float], list[float]]:
    """Its indices (Ishigami & Homma 1990): from the variances of its orthogonal parts."""
    a, b, pi = 7.0, 0.1, math.pi
    first = (0.5 * (1 + b * pi**4 / 5) ** 2, a**2 / 8, 0.0)
    both = b**2 * pi**8 * (1 / 18 - 1 / 50)
    whole = sum(first) + both
    totals = (first[0] + both, first[1], both)
    return [v / whole for v in first], [v / whole for v in totals]


G = (0.0, 1.0, 4.5, 9.0)


def g_function(x: np.ndarray) -> np.ndarray:
    """Sobol's g: the product of (|4 x - 2| + a) / (1 + a)."""
    a = np.array(G)
    return np.prod((np.abs(4 * x - 2) + a) / (1 + a), axis=-1)


def g_indices() -> tuple[list[float], list[float]]:
    """Its indices: each factor has the mean 1 and the variance 1 / (3 (1 + a)^2)."""
    each = [1 / (3 * (1 + a) ** 2) for a in G]
    whole = math.prod(1 + v for v in each) - 1
    rest = [math.prod(1 + w for k, w in enumerate(each) if k != j) for j in range(len(each))]
    return [v / whole for v in each], [v * r / whole for v, r in zip(each, rest, strict=True)]


CASES = {"ishigami": (ishigami, 3, ishigami_indices()), "g": (g_function, 4, g_indices())}


def points(dimensions: int, replicates: int, each: int, seed: int) -> np.ndarray:
    """Points [sample, dimension]: plain for one replicate, else scrambled Sobol', interleaved."""
    if replicates == 1:
        return np.random.default_rng(seed).random((each, dimensions))
    nets = [
        qmc.Sobol(dimensions, scramble=True, rng=np.random.default_rng([seed, r])).random(each)
        for r in range(replicates)
    ]
    return np.stack(nets, axis=1).reshape(-1, dimensions)


def design(
    function: Callable[[np.ndarray], np.ndarray], dimensions: int, replicates: int, each: int
) -> xr.DataArray:
    """The function on matrices A, B and every AB, labelled as the engine labels them."""
    both = points(2 * dimensions, replicates, each, seed=5)
    a, b = both[:, :dimensions], both[:, dimensions:]
    rows = {"A": function(a), "B": function(b)}
    for k in range(dimensions):
        mixed = a.copy()
        mixed[:, k] = b[:, k]
        rows[f"AB_x{k}"] = function(mixed)
    values = np.stack(list(rows.values()))
    return xr.DataArray(values, {"design": list(rows)}, ("design", DIM), "y", {"units": "s"})
