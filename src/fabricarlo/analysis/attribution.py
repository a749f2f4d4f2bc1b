"""Which part of a quantile comes from what: the parts of the samples that stand at it."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from fabricarlo.analysis.checks import (
    AnalysisError,
    need_confidence,
    need_dims,
    need_names,
    probabilities_of,
)
from fabricarlo.analysis.labelled import described, row_wise
from fabricarlo.analysis.replicates import SECTIONS, Floats, groups_of, over_groups, t_interval
from fabricarlo.analysis.tails import plain_quantiles

PARTS = (
    "compute",
    "pipeline",
    "bandwidth",
    "latency",
    "thermal",
    "congestion",
    "jitter",
    "loss",
)
"""Parts of the step time, in the fixed order in which effects are switched on."""
WIDEST = 0.02
"""Half the window around a quantile, in probability, at most."""
NARROWEST = 10
"""Half the window in samples, at least."""


def parts_of(names: Sequence[str] | xr.Dataset, total: str = "step_time") -> list[str]:
    """The variables `total_part` that are there, in the order of attribution."""
    have = {str(n) for n in names}
    return [f"{total}_{p}" for p in PARTS if f"{total}_{p}" in have]


def attribution(
    samples: xr.Dataset,
    probabilities: float | Sequence[float] = (0.5, 0.99),
    *,
    total: str = "step_time",
    parts: Sequence[str] | None = None,
    dim: str = "sample",
    replicates: int = 1,
    confidence: float = 0.95,
) -> xr.Dataset:
    """The parts of a quantile of `total`: `value` (its unit), and `share` with `low` and `high`.

        part k of quantile q = E[part k | total = q], so the parts add up to q

    Such conditional means are the Euler contributions to a quantile (Tasche, "Capital allocation to
    business units and sub-portfolios: the Euler principle", 2008, section 3). They are means over a
    window of samples around the quantile, half as wide as a fifth of the nearer tail, at most 2 %
    of all samples, and scaled so that they add up to the quantile.

    `parts` are variables that add up to `total` in every sample; `step_time_*` if not given. New
    dimensions are `quantile` and `part`. Intervals are over replicates, or sections of plain
    samples. An effect that makes the tail has a larger share of the 0.99 than of the 0.5 quantile.
    """
    names = list(parts) if parts is not None else parts_of(samples, total)
    need_names([total, *names], samples.data_vars, "the samples")
    if not names:
        raise AnalysisError(
            f"the samples have no parts of {total}: ask for outputs such as {total}_compute."
        )
    need_dims(samples[total], dim)
    need_confidence(confidence)
    asked, groups = probabilities_of(probabilities), groups_of(samples[total], replicates)
    stacked = xr.concat([samples[n].astype(np.float32) for n in names], "part", coords="minimal")

    def kernel(whole: NDArray, pieces: NDArray) -> Floats:
        flat = zip(whole.reshape(-1, whole.shape[-1]), pieces.reshape(-1, *pieces.shape[-2:]),
                   strict=True)  # fmt: skip
        rows = [_parts(t, p, asked, groups, confidence) for t, p in flat]
        return np.stack(rows).reshape((*whole.shape[:-1], *rows[0].shape))

    added = {"number": 4, "quantile": len(asked), "part": len(names)}
    stacked = stacked.transpose(*samples[total].dims[:-1], "part", dim)
    core = [[dim], ["parts_given", dim]]
    found = row_wise(kernel, [samples[total], stacked.rename(part="parts_given")], core, added)
    short = [n.removeprefix(f"{total}_") for n in names]
    return _named(found.assign_coords(part=short), asked, samples[total].attrs, confidence)


def _named(found: xr.DataArray, asked: Floats, attrs: dict, confidence: float) -> xr.Dataset:
    found = found.assign_coords(
        quantile=("quantile", asked, {"units": "1", "long_name": "probability"})
    )
    names = ("value", "share", "low", "high")
    made = xr.Dataset({n: found.isel(number=k) for k, n in enumerate(names)})
    made["value"].attrs = described(attrs, "part of its quantile")
    ends = f"end of the {confidence:.4g} interval of the share"
    for name, text in (
        ("share", "share of the quantile"), ("low", f"low {ends}"), ("high", f"high {ends}")
    ):  # fmt: skip
        made[name].attrs = {"units": "1", "long_name": text}
    return made


def _parts(
    whole: NDArray, pieces: NDArray, asked: Floats, groups: int, confidence: float
) -> Floats:
    """Value, share, low and high [4, quantiles, parts] of one cell."""
    usable = np.isfinite(whole) & np.isfinite(pieces).all(axis=0)
    rows = np.concatenate([whole[None], pieces])
    rows = np.where(usable, rows, np.nan)
    share = _shares(rows, asked)
    own = over_groups(lambda r: _shares(r, asked), rows, groups if groups > 1 else SECTIONS)
    value = share * plain_quantiles(rows[0], asked)[:, None]
    return np.stack([value, share, *t_interval(own, confidence)])


def _shares(rows: NDArray, asked: Floats) -> Floats:
    """Share [quantiles, parts] of every part among the samples around the quantiles."""
    rows = rows[:, np.isfinite(rows[0])]
    n = rows.shape[-1]
    if not n:
        return np.full((len(asked), len(rows) - 1), np.nan)
    found = []
    for p in asked:
        half = max(NARROWEST, n * min(0.2 * min(p, 1 - p), WIDEST))
        low = int(np.clip(n * p - half, 0, max(0, n - 2 * half)))
        high = int(min(n, low + 2 * half))
        ends = np.unique([low, high - 1])
        inside = np.argpartition(rows[0], ends)[low:high]
        means = rows[1:, inside].mean(axis=1, dtype=np.float64)
        found.append(means / means.sum())
    return np.stack(found)
