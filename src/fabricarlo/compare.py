"""Two stores against each other: what changed, by how much, and whether that can be chance."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from scipy import special

from fabricarlo.analysis import AnalysisError, outputs_of, replicate_quantiles, results_of
from fabricarlo.errors import StoreError
from fabricarlo.objects import Objects, open_store
from fabricarlo.reading import open as open_tree

PROBABILITIES = (0.01, 0.5, 0.99)
ALPHA = 1e-3
"""False alarms of a whole comparison of equal laws."""
TOLERANCE = 1e-5
"""Relative shift below which nothing is reported: other devices and versions differ by that."""
FEW = 20  # shifts that are printed
WIDTH = 400  # let the terminal fold lines, if it must
BLOCK = 2**22  # samples that are compared at a time


@dataclasses.dataclass(frozen=True)
class Shift:
    """One quantile of one variable in one cell: B minus A, with its 95 % interval."""

    variable: str
    cell: dict[str, Any]
    quantile: float
    before: float
    after: float
    low: float
    high: float
    probability: float  # that chance alone gives a shift this large
    significant: bool

    @property
    def relative(self) -> float:
        """The shift as a share of the value before."""
        return (self.after - self.before) / abs(self.before) if self.before else np.nan


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What `compare` found."""

    paired: bool  # same seed, sampler and replicates: the same luck in both
    bitwise: bool | None  # whether what was promised bitwise is so; None where nothing was
    different_bits: tuple[str, ...]  # variables
    only_in_one: tuple[str, ...]  # variables, and labels of axes
    shifts: tuple[Shift, ...]

    @property
    def passed(self) -> bool:
        """No significant shift, and no broken promise."""
        return self.bitwise is not False and not any(s.significant for s in self.shifts)


def compare(one: str | Path, other: str | Path, *, tolerance: float = TOLERANCE) -> Comparison:
    """Compare every variable in every cell that both stores have.

    Quantiles are compared replicate by replicate: by a paired t test where both stores have the
    same seed, sampler and replicates, else by Welch's. A shift is significant if it is larger than
    `tolerance` (relative) and its probability, corrected for the number of comparisons (Holm,
    Scandinavian Journal of Statistics 6, 1979), is below `ALPHA`. Stores of one plan from one
    device and one version must have the same bits in every sample that both kept.

    Raises StoreError for what is no finished store, has no histograms, or shares no cell.
    """
    trees = [_opened(path) for path in (one, other)]
    results = [tree.to_dataset() for tree in trees]
    promised = _bits_in(trees) if _plan(one) == _plan(other) else None
    bits = _different_bits(trees, promised) if promised else ()
    names = [n for n in outputs_of(results[0]) if n in outputs_of(results[1])]
    names = [n for n in names if all(f"{n}_mean" in r for r in results)]
    missing = _only_in_one(results)
    paired = all(
        results[0].attrs.get(k) == results[1].attrs.get(k)
        for k in ("seed", "sampler", "replicates")
    )
    groups = [tree["histograms"].to_dataset() for tree in trees]
    found = [s for n in names for s in _shifts(n, groups, paired=paired)]
    if not found:
        raise StoreError(f"{one} and {other} have no variable and cell in common.")
    judged = _judged(found, tolerance)
    return Comparison(paired, not bits if promised else None, bits, missing, judged)


def _opened(path: str | Path) -> xr.DataTree:
    tree = open_tree(path)
    try:
        results_of(tree)
    except AnalysisError as error:
        raise StoreError(f"{path}: {error}") from error
    names = tree["histograms"].data_vars if "histograms" in tree.children else {}
    if not any(str(n).endswith("_counts") for n in names):
        raise StoreError(f"{path} has no histograms to compare: its samples are weighted.")
    return tree


def _plan(path: str | Path) -> tuple[str, str]:
    """What promises the same bits: the plan and the digest of one tile."""
    found = json.loads(Objects(open_store(path)).get("_run/plan.json") or b"{}")
    return str(found.get("hash")), str(found.get("probe"))


def _bits_in(trees: list[xr.DataTree]) -> str | None:
    """The group in which two stores of one plan have the same bits: summaries of as many only."""
    if all("samples" in tree.children for tree in trees):
        return "samples"
    one, other = (tree.attrs.get("samples") for tree in trees)
    return "histograms" if one == other else None


def _different_bits(trees: list[xr.DataTree], group: str) -> tuple[str, ...]:
    """Variables of a group of which not all bits are equal, of samples as far as both go."""
    one, other = (tree[group].to_dataset() for tree in trees)
    return tuple(str(n) for n in one.data_vars if n in other and not _same_bits(one[n], other[n]))


def _same_bits(one: xr.DataArray, other: xr.DataArray) -> bool:
    if one.attrs.get("every") != other.attrs.get("every") or one.dims != other.dims:
        return one.attrs.get("every") != other.attrs.get("every")  # other samples: no promise
    labels = {d: np.intersect1d(one[d], other[d]) for d in one.dims if d in one.coords}
    one, other = one.sel(labels), other.sel(labels)
    if "sample" not in one.dims:
        return one.shape == other.shape and one.values.tobytes() == other.values.tobytes()
    last = min(one.sizes["sample"], other.sizes["sample"])
    for start in range(0, last, BLOCK):
        part = slice(start, min(start + BLOCK, last))
        values = (np.ascontiguousarray(v.isel(sample=part).values) for v in (one, other))
        if len({v.tobytes() for v in values}) > 1:
            return False
    return True


def _only_in_one(results: list[xr.Dataset]) -> tuple[str, ...]:
    found: list[str] = []
    for mine, theirs, name in ((results[0], results[1], "A"), (results[1], results[0], "B")):
        found += [f"{n} (in {name})" for n in outputs_of(mine) if n not in outputs_of(theirs)]
        for axis in (str(d) for d in mine.dims if d not in ("quantile", "bound")):
            have = theirs[axis].values.tolist() if axis in theirs.coords else []
            labels = mine[axis].values.tolist() if axis in mine.coords else []
            found += [f"{axis} {v} (in {name})" for v in labels if v not in have]
    return tuple(found)


def _shifts(name: str, groups: list[xr.Dataset], *, paired: bool) -> list[Shift]:
    """Every quantile of one variable in every cell that both have; not judged yet."""
    one, other = (replicate_quantiles(g, name, PROBABILITIES) for g in groups)
    if set(one.dims) != set(other.dims):
        return []
    axes = [str(d) for d in one.dims if d not in ("quantile", "replicate")]
    for axis in axes:
        both = [v for v in one[axis].values.tolist() if v in other[axis].values.tolist()]
        one, other = one.sel({axis: both}), other.sel({axis: both})
    order = (*axes, "quantile", "replicate")
    a, b = (v.transpose(*order).values for v in (one, other))
    low, high, probability = _tested(a, b, paired=paired)
    found = []
    for where in np.ndindex(a.shape[:-1]):
        labels = {x: one[x].values.tolist()[k] for x, k in zip(axes, where, strict=False)}
        ends = (float(v[where]) for v in (a.mean(axis=-1), b.mean(axis=-1), low, high, probability))
        found.append(Shift(name, labels, PROBABILITIES[where[-1]], *ends, significant=False))
    return found


def _tested(
    a: np.ndarray, b: np.ndarray, *, paired: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ends of the 95 % interval of mean(b) - mean(a), and the probability of so much by chance."""
    n, m = a.shape[-1], b.shape[-1]
    shift = b.mean(axis=-1) - a.mean(axis=-1)
    if min(n, m) < 2:
        return shift * np.nan, shift * np.nan, np.where(shift == 0, 1.0, np.nan)
    if paired:
        error = (b - a).std(axis=-1, ddof=1) / np.sqrt(n)
        freedom = np.full(shift.shape, n - 1.0)
    else:
        parts = a.var(axis=-1, ddof=1) / n, b.var(axis=-1, ddof=1) / m
        error = np.sqrt(parts[0] + parts[1])
        spread = parts[0] ** 2 / (n - 1) + parts[1] ** 2 / (m - 1)
        freedom = np.where(spread > 0, error**4 / np.where(spread > 0, spread, 1), n + m - 2.0)
    half = special.stdtrit(freedom, 0.975) * error
    size = np.where(error > 0, np.abs(shift) / np.where(error > 0, error, 1), np.inf)
    probability = np.where(shift == 0, 1.0, 2 * special.stdtr(freedom, -size))
    return shift - half, shift + half, probability


def _judged(shifts: list[Shift], tolerance: float) -> tuple[Shift, ...]:
    """Holm's step-down over all comparisons; one without an interval counts by its size alone."""
    order = sorted(range(len(shifts)), key=lambda k: np.nan_to_num(shifts[k].probability, nan=0.0))
    judged, rejecting = list(shifts), True
    for rank, k in enumerate(order):
        shift = shifts[k]
        probability = np.nan_to_num(shift.probability, nan=0.0)
        rejecting = rejecting and probability * (len(shifts) - rank) <= ALPHA
        scale = max(abs(shift.before), abs(shift.after))
        large = abs(shift.after - shift.before) > tolerance * scale
        judged[k] = dataclasses.replace(shift, significant=bool(rejecting and large))
    return tuple(judged)


def machine_form(found: Comparison) -> str:
    """The comparison as one JSON object; what is not finite is null."""
    shifts = [dataclasses.asdict(s) | {"relative": s.relative} for s in found.shifts]
    made = {"passed": found.passed} | dataclasses.asdict(found) | {"shifts": shifts}
    return json.dumps(_finite(made))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def print_comparison(found: Comparison) -> None:
    """The verdict, and the largest shifts."""
    console = Console()
    kind = "same draws: paired" if found.paired else "other draws: unpaired"
    count = sum(s.significant for s in found.shifts)
    console.print(
        f"{len(found.shifts):,} quantiles compared ({kind}); {count:,} shifted significantly "
        f"(false alarms of the whole comparison: {ALPHA:g})",
        highlight=False,
    )
    if found.bitwise is not None:
        bits = "every bit that both kept is the same" if found.bitwise else "bits differ in "
        console.print(f"same plan and device: {bits}{', '.join(found.different_bits)}")
    if found.only_in_one:
        console.print(f"not compared: {', '.join(found.only_in_one)}", highlight=False)
    ranked = sorted(
        found.shifts, key=lambda s: (not s.significant, -abs(np.nan_to_num(s.relative)))
    )
    if any(s.before != s.after for s in ranked):
        wide = Console(width=WIDTH)
        wide.print(_table([s for s in ranked if s.before != s.after][:FEW]))
    console.print("[bold]no significant shift[/bold]" if found.passed else "[bold]SHIFTED[/bold]")


def _table(shifts: list[Shift]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("variable", "cell", "quantile", "A", "B", "shift", "95 %", "relative", ""):
        table.add_column(heading, no_wrap=True)
    for s in shifts:
        cell = ", ".join(
            f"{k} {v:g}" if isinstance(v, float) else f"{k} {v}" for k, v in s.cell.items()
        )
        ends = f"{s.low:.3g} .. {s.high:.3g}" if np.isfinite(s.low) else "-"
        mark = "significant" if s.significant else ""
        table.add_row(
            s.variable, cell, f"p{100 * s.quantile:g}", f"{s.before:.6g}", f"{s.after:.6g}",
            f"{s.after - s.before:+.3g}", ends, f"{s.relative:+.3%}", mark,
        )  # fmt: skip
    return table
