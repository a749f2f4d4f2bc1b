"""A store in memory, made by NumPy alone: every kind of variable, with laws that are known."""

from typing import Any

import numpy as np
import xarray as xr

from fabricarlo.analysis import quantiles
from fabricarlo.analysis.differences import _mean
from fabricarlo.summaries.bins import bin_of, edges

LEVELS = [0.01, 0.1, 0.5, 0.9, 0.99]
KEPT = 64
FLAGS = ("none", "power", "thermal")
COOLING, GPUS, FABRIC = ["air", "liquid"], [1024.0, 4096.0, 16384.0], ["roce", "infiniband"]
DIMS = ("cooling", "fabric", "gpus")


def samples(number: int, seed: int, slower: float = 1.0) -> xr.Dataset:
    """Step time = compute + jitter + loss; loss is 0.05 gpus^(1/4) times an exponential."""
    rng = np.random.default_rng(seed)
    efficiency, luck, stall = rng.random(number), rng.random(number), rng.random(number)
    axes = {"cooling": COOLING, "fabric": FABRIC, "gpus": GPUS}
    cold = xr.DataArray([1.0, 0.9], {"cooling": COOLING}, "cooling")
    lossy = xr.DataArray([1.0, 0.2], {"fabric": FABRIC}, "fabric")
    size = xr.DataArray(np.array(GPUS) ** 0.25, {"gpus": GPUS}, "gpus")
    shape = xr.DataArray(np.ones((2, 2, 3)), axes, DIMS)
    compute = shape * cold * xr.DataArray(20 * slower * (1.2 - 0.4 * efficiency), dims="sample")
    jitter = shape * xr.DataArray(1 + luck**2, dims="sample")
    loss = shape * lossy * size * 0.05 * xr.DataArray(-np.log(stall), dims="sample")
    found = {"step_time_compute": compute, "step_time_jitter": jitter, "step_time_loss": loss}
    made = xr.Dataset({n: v.astype(np.float32) for n, v in found.items()}, axes)
    made["step_time"] = made.step_time_compute + made.step_time_jitter + made.step_time_loss
    made = made[["step_time", *found]]
    for name in made.data_vars:
        made[name].attrs = {"units": "s", "long_name": f"{name} of one step"}
    reason = shape * xr.DataArray(np.digitize(efficiency, [0.3, 0.6]), dims="sample")
    made["limiting_reason"] = reason.astype(np.int8)
    for name, values in (("compute_efficiency", efficiency), ("packet_loss_rate", stall)):
        made[name] = xr.DataArray(values.astype(np.float32), dims="sample", attrs={"units": "1"})
    made["gpus"].attrs = {"units": "1", "long_name": "GPUs"}
    return made


def store(number: int = 4096, *, seed: int = 1, kept: bool = True, slower: float = 1.0,
          **attrs: Any) -> xr.DataTree:  # fmt: skip
    """The tree that `fabricarlo.open` would give, with 8 replicates."""
    each = samples(number, seed, slower)
    numbers = [n for n in each.data_vars if str(n).startswith("step_time")]
    results, histograms = xr.Dataset(coords=each.coords), xr.Dataset(coords=each.coords)
    for name in map(str, numbers):
        results = results.assign(_results(name, each[name]))
        histograms = histograms.assign(_histogram(name, each[name].values, each[name].attrs))
    codes = each.limiting_reason.values[..., None] == np.arange(3)
    results["limiting_reason_share"] = ((*DIMS, "limiting_reason_flag"), codes.mean(axis=-2))
    results["limiting_reason_share"].attrs = {"units": "1", "long_name": "what limits: share"}
    about = {"flag_meanings": " ".join(FLAGS), "flag_values": [0, 1, 2]}
    results = results.assign_coords(limiting_reason_flag=("limiting_reason_flag", [0, 1, 2], about))
    results = results.assign_coords(quantile=LEVELS, bound=["low", "high"])
    results.attrs = {
        "title": "a <small> sweep", "description": "Is it the cooling & the fabric?",
        "outputs": [*map(str, numbers), "limiting_reason"], "samples": number, "seed": seed,
        "sampler": "sobol", "replicates": 8, "state": "finished", "spec": "sweep: <small>\n",
        "plan": "0" * 64, "device": "none", "versions": "numpy", "fabricarlo_version": "0",
    } | attrs  # fmt: skip
    groups = {"/": results, "/histograms": histograms.assign_coords(replicate=np.arange(8))}
    return xr.DataTree.from_dict(groups | ({"/samples": each} if kept else {}))


def _results(name: str, values: xr.DataArray) -> dict[str, xr.DataArray]:
    found = quantiles(values, LEVELS, replicates=8)
    ends = xr.concat([found.low, found.high], "bound", coords="minimal")
    whole = values.astype(np.float64)
    rows = whole.values.reshape(-1, whole.sizes["sample"])
    spread = np.stack([_mean(row, 8, 0.95)[1:] for row in rows]).reshape((2, 2, 3, 2))
    count = whole.mean("sample") * 0 + whole.sizes["sample"]
    spread = xr.DataArray(spread, dims=(*DIMS, "bound"))
    made = {
        "": found.estimate, "_interval": ends.transpose(..., "bound"),
        "_mean": whole.mean("sample"), "_mean_interval": spread,
        "_std": whole.std("sample", ddof=1), "_min": whole.min("sample"),
        "_max": whole.max("sample"), "_count": count.astype(np.int64),
        "_nonfinite": (count * 0).astype(np.int64),
    }  # fmt: skip
    for array in made.values():
        array.attrs = values.attrs | {"long_name": f"{values.attrs['long_name']}: of samples"}
    return {name + suffix: a.drop_vars("quantile", errors="ignore") for suffix, a in made.items()}


def _histogram(name: str, values: np.ndarray, attrs: dict[str, Any]) -> dict[str, Any]:
    bins = bin_of(values)
    occupied = np.unique(bins)
    rows = np.moveaxis(values.reshape((2, 2, 3, -1, 8)), -1, -2)
    place = np.moveaxis(np.searchsorted(occupied, bins).reshape((2, 2, 3, -1, 8)), -1, -2)
    counts = np.apply_along_axis(np.bincount, -1, place, minlength=len(occupied))
    ordered = np.sort(rows, axis=-1)
    low, high = edges(occupied)
    dim, rank = f"{name}_bin", (*DIMS, "replicate", "rank")
    meaning = attrs | {"long_name": f"{attrs['long_name']}: low edge of the bin"}
    return {
        f"{name}_counts": ((*DIMS, "replicate", dim), counts.astype(np.int64)),
        f"{name}_bin_low": (dim, low, meaning),
        f"{name}_bin_high": (dim, high, attrs),
        f"{name}_smallest": (rank, ordered[..., :KEPT]),
        f"{name}_largest": (rank, ordered[..., ::-1][..., :KEPT]),
    }
