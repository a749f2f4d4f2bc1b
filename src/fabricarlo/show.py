"""Print a store: quantiles of every output in every cell, their intervals, and the shape of each.

The distribution of a cell is drawn in one line of blocks, over the range that all cells of that
output share, so that rows can be compared.
"""

from itertools import product
from pathlib import Path

import numpy as np
import xarray as xr
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from fabricarlo.errors import StoreError
from fabricarlo.reading import open as open_tree
from fabricarlo.units import readable

BLOCKS = " ▁▂▃▄▅▆▇█"
COLUMNS = 24
WIDTH = 400  # a folded table of numbers cannot be read: let the terminal fold lines, if it must


def outputs_of(summary: xr.Dataset) -> list[str]:
    """Outputs that a store summarises so far, in the order of the spec."""
    named = summary.attrs.get("outputs", [])
    return [n for n in named if f"{n}_mean" in summary or f"{n}_share" in summary]


def show_store(path: str | Path, wanted: list[str]) -> None:
    """Print the tables of a store. Raises StoreError for an output that it does not have."""
    tree = open_tree(path)
    summary = tree["/"].to_dataset()
    outputs = outputs_of(summary)
    unknown = [n for n in wanted if n not in outputs]
    if unknown or not outputs:
        have = ", ".join(outputs) or "none yet: the sweep is not finished, run it again to go on"
        asked = f"has no output {', '.join(unknown)}; it has {have}" if unknown else f"has {have}"
        raise StoreError(f"{path} {asked}.")
    console, wide = Console(), Console(width=WIDTH)
    attrs = summary.attrs
    state = (
        ""
        if attrs.get("state") == "finished"
        else "  (NOT FINISHED: the table is of an earlier state)"
    )
    console.print(
        f"[bold]{attrs.get('title', path)}[/bold]: {attrs.get('samples', 0):,} samples per cell, "
        f"seed {attrs.get('seed')}, {attrs.get('sampler')}{state}"
    )
    if attrs.get("description"):
        console.print(str(attrs["description"]).strip(), highlight=False)
    if attrs.get("tail"):
        console.print(f"weighted; drawn more often: {attrs['tail']}", highlight=False)
    histograms = tree["histograms"].to_dataset() if "histograms" in tree.children else None
    for name in wanted or outputs:
        wide.print(_table(summary, histograms, name))


def _cells(summary: xr.Dataset, over: tuple[str, ...]) -> list[dict[str, int]]:
    ranges = [range(summary.sizes[d]) for d in over]
    return [dict(zip(over, where, strict=True)) for where in product(*ranges)]


def _label(summary: xr.Dataset, axis: str, k: int) -> str:
    value = summary[axis].values[k]
    if isinstance(value, str) or summary[axis].dtype.kind not in "fiu":
        return str(value)
    return readable(float(value), summary[axis].attrs.get("units", "1"))


def _table(summary: xr.Dataset, histograms: xr.Dataset | None, name: str) -> Table:
    if f"{name}_share" in summary:
        return _flag_table(summary, name)
    return _number_table(summary, shapes(histograms, name), name)


def shapes(histograms: xr.Dataset | None, name: str) -> dict[tuple[int, ...], str]:
    """One line of blocks for the distribution of every cell, by its position; none without bins.

    All cells share the range from the least to the largest of their 0.5 and 99.5 % points; the
    outermost blocks hold what lies beyond. A block is as high as its share of the fullest one.
    """
    if histograms is None or f"{name}_counts" not in histograms:
        return {}
    counts = histograms[f"{name}_counts"]
    counts = counts.where(counts > 0, 0).sum("replicate")
    middle = (histograms[f"{name}_bin_low"] + histograms[f"{name}_bin_high"]).values / 2
    rows = counts.values.reshape(-1, len(middle))
    if not rows.any():
        return {}
    shares = np.cumsum(rows, axis=1) / np.maximum(rows.sum(axis=1, keepdims=True), 1)
    filled = shares[rows.any(axis=1)]
    low = middle[(filled >= 0.005).argmax(axis=1)].min()
    high = middle[(filled >= 0.995).argmax(axis=1)].max()
    edges = np.linspace(low, high, COLUMNS + 1) if high > low else np.array([low, low + 1])
    inside = np.clip(middle, edges[0], edges[-1])
    found = {}
    for where, row in zip(np.ndindex(counts.shape[:-1]), rows, strict=True):
        heights = np.histogram(inside, edges, weights=row)[0]
        found[where] = _blocks(heights / max(1, heights.max()))
    return found


def _blocks(heights: np.ndarray) -> str:
    """Heights in [0, 1] as blocks: nothing is blank, and what is not nothing is seen."""
    levels = np.ceil(heights * (len(BLOCKS) - 1)).astype(int)
    return "".join(BLOCKS[k] for k in levels)


def _number_table(summary: xr.Dataset, drawn: dict[tuple[int, ...], str], name: str) -> Table:
    values, mean = summary[name], summary[f"{name}_mean"]
    axes = tuple(map(str, mean.dims))
    unit = values.attrs["units"]
    table = _empty(f"{name} ({unit}): {values.attrs['long_name'].rpartition(':')[0]}")
    for axis in axes:
        table.add_column(axis, no_wrap=True)
    quantiles = (f"p{100 * q:g}" for q in summary["quantile"].values)
    if drawn:
        table.add_column("distribution", no_wrap=True)
    for heading in ("mean", "± 95 %", *quantiles, "not finite"):
        table.add_column(heading, justify="right", no_wrap=True)
    for cell in _cells(summary, axes):
        low, high = summary[f"{name}_mean_interval"].isel(cell).values
        half = "-" if np.isnan(low) else f"{(high - low) / 2:.2g}"
        numbers = [_number(v) for v in values.isel(cell).values]
        bad = summary[f"{name}_nonfinite"].isel(cell).item()
        labels = [_label(summary, a, k) for a, k in cell.items()]
        labels += [drawn[tuple(cell.values())]] if drawn else []
        table.add_row(*labels, _number(mean.isel(cell).item()), half, *numbers, f"{bad:,.0f}")
    return table


def _number(value: float) -> str:
    return f"{value:.6g}"


def _empty(title: str) -> Table:
    return Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)


def _flag_table(summary: xr.Dataset, name: str) -> Table:
    shares, flag = summary[f"{name}_share"], f"{name}_flag"
    axes = tuple(str(d) for d in shares.dims if d != flag)
    meanings = summary[flag].attrs["flag_meanings"].split()
    seen = [k for k in range(len(meanings)) if float(shares.isel({flag: k}).max()) > 0]
    table = _empty(f"{name}: {shares.attrs['long_name']}")
    for heading in (*axes, *(meanings[k] for k in seen)):
        table.add_column(heading, no_wrap=True)
    for cell in _cells(summary, axes):
        labels = [_label(summary, a, k) for a, k in cell.items()]
        table.add_row(*labels, *(f"{float(shares.isel(cell | {flag: k})):.4%}" for k in seen))
    return table
