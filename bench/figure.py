"""The figure and the table of a finished store: step time per cell, and where its mean goes.

    python bench/figure.py STORE FIGURE.png [--readme README.md]

Reads the store with plain xarray, as any program may. Prints the table; with --readme also puts
it between the two `results` marks of that file.
"""

import argparse
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes

BEGIN, END = "<!-- results:begin -->", "<!-- results:end -->"
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
"""In the fixed order of attribution."""
COLOURS = (
    "#bbbbbb",
    "#e69f00",
    "#0072b2",
    "#56b4e9",
    "#d55e00",
    "#cc79a7",
    "#009e73",
    "#000000",
)
"""Grey, and seven of Okabe and Ito's colours, which colour-blind readers tell apart."""


def axes_of(dataset: xr.Dataset) -> list[str]:
    """The dimensions of the sweep's grid."""
    return [str(d) for d in dataset["step_time"].dims if d != "quantile"]


def label(value: object) -> str:
    """A coordinate as text: 98,304 or air."""
    if isinstance(value, float | np.floating):
        return f"{value:,.0f}" if float(value).is_integer() else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int | np.integer) else str(value)


NAMES = {"thermal": "clock (power cap and heat)"}
"""Parts whose quantity's name says less than a reader needs."""


def cells(dataset: xr.Dataset) -> Iterator[tuple[tuple[str, ...], xr.Dataset]]:
    """Labels and results of every cell, in the order of the grid."""
    names = axes_of(dataset)
    for where in itertools.product(*(range(dataset.sizes[n]) for n in names)):
        picked = dataset.isel(dict(zip(names, where, strict=True)))
        yield tuple(label(picked[n].values[()]) for n in names), picked


def parts(cell: xr.Dataset) -> dict[str, float]:
    """Mean of every part of the step time that the store holds, in s."""
    return {p: float(m) for p in PARTS if (m := cell.get(f"step_time_{p}_mean")) is not None}


def table(dataset: xr.Dataset) -> str:
    """A row per cell, in Markdown: median and tail of the step, and what costs most."""
    names = [*axes_of(dataset), "median step", "99 % of samples within"]
    if "scaling_efficiency" in dataset:
        names.append("scaling efficiency (median)")
    lines = [f"| {' | '.join([*names, 'largest cost beside compute'])} |"]
    lines.append(f"|{'---|' * (len(names) + 1)}")
    for labels, cell in cells(dataset):
        step = cell["step_time"].sel(quantile=[0.5, 0.99], method="nearest").values
        row = [*labels, *(f"{t:.4g} s" for t in step)]
        if "scaling_efficiency" in dataset:
            row.append(f"{float(cell['scaling_efficiency'].sel(quantile=0.5)):.3f}")
        costs = {p: t for p, t in parts(cell).items() if p != "compute"}
        most = max(costs, key=costs.__getitem__, default=None)
        share = costs[most] / float(cell["step_time_mean"]) if most else 0.0
        row.append(f"{NAMES.get(most, most)}, {share:.1%} of the mean step" if most else "")
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def draw_spread(axes: Axes, dataset: xr.Dataset) -> None:
    """A line over the kept quantiles of each cell, thick between the inner ones; a dot: median."""
    quantiles = dataset["quantile"].values
    for row, (_, cell) in enumerate(cells(dataset)):
        times = cell["step_time"].values
        axes.plot(times[[0, -1]], [row, row], color="#0072b2", lw=1.2)
        axes.plot(times[[1, -2]], [row, row], color="#0072b2", lw=4, solid_capstyle="butt")
        median = float(cell["step_time"].sel(quantile=0.5, method="nearest"))
        axes.plot(median, row, "o", color="white", mec="#0072b2", ms=6)
    share = [f"{100 * q:g}" for q in quantiles]
    axes.set_title("Step time", loc="left", pad=22)
    note = (
        f"dot: median; thick: {share[1]} to {share[-2]} % of samples; "
        f"thin: {share[0]} to {share[-1]} %"
    )
    axes.text(0, 1.01, note, transform=axes.transAxes, fontsize=8, color="#555555")
    axes.set_xlabel("s")


def draw_parts(axes: Axes, dataset: xr.Dataset) -> None:
    """Where the mean step goes, as bars that add up."""
    rows = [parts(cell) for _, cell in cells(dataset)]
    left = np.zeros(len(rows))
    for name, colour in zip(PARTS, COLOURS, strict=True):
        width = np.array([row.get(name, 0.0) for row in rows])
        if width.any():
            shown = NAMES.get(name, name)
            axes.barh(range(len(rows)), width, left=left, color=colour, label=shown, height=0.7)
        left += width
    axes.set_title("Where the mean step goes", loc="left", pad=22)
    axes.set_xlabel("s")


def figure(dataset: xr.Dataset, path: Path) -> None:
    """Write the figure; the same store gives the same bytes."""
    names = [" · ".join(labels) for labels, _ in cells(dataset)]
    height = 2.2 + 0.34 * len(names)
    made, (left, right) = plt.subplots(
        1, 2, figsize=(12, height), sharey=True, layout="constrained"
    )
    draw_spread(left, dataset)
    draw_parts(right, dataset)
    left.set_yticks(range(len(names)), names)
    left.set_ylabel(" · ".join(axes_of(dataset)))
    left.invert_yaxis()
    for axes in (left, right):
        axes.grid(axis="x", color="#dddddd", lw=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    made.legend(loc="outside lower right", ncols=len(PARTS), frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    made.savefig(path, dpi=144, metadata={"Software": None})
    plt.close(made)


def fill(readme: Path, text: str) -> None:
    """Put the table between the marks of a Markdown file."""
    before, begin, rest = readme.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"{readme} has no place for the table: add the lines {BEGIN} and {END}.")
    readme.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


def main() -> None:
    """Read the command line, write the figure, print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("store", type=Path)
    parser.add_argument("figure", type=Path)
    parser.add_argument("--readme", type=Path, help="also fill the table of this file")
    asked = parser.parse_args()
    dataset = xr.open_zarr(asked.store)
    if "step_time" not in dataset:
        sys.exit(f"{asked.store} has no step_time: name it in `outputs` and run the sweep.")
    dataset = dataset.load()
    figure(dataset, asked.figure)
    text = table(dataset)
    print(text)
    if asked.readme:
        fill(asked.readme, text)


if __name__ == "__main__":
    main()
