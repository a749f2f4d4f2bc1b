"""What the figures of all pages share."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#888888",
)  # fmt: skip
"""Okabe and Ito's, which colour-blind readers tell apart, and a grey."""
MARKERS = "osD^vP*Xd<>"


def panels(count: int, width: float = 5.2, height: float = 4.2) -> tuple[Figure, list[Axes]]:
    """A row of panels of one size."""
    figure, axes = plt.subplots(
        1, count, figsize=(width * count, height), layout="constrained", squeeze=False
    )
    return figure, list(axes[0])


def plain(axes: Axes, title: str, along: str, up: str) -> None:
    """Title at the left, a light grid, no box."""
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlabel(along)
    axes.set_ylabel(up)
    axes.grid(color="#dddddd", lw=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def save(figure: Figure, path: Path) -> None:
    """Write a figure; the same numbers give the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120, metadata={"Software": None})
    plt.close(figure)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def seconds(value: float) -> str:
    """A time for people, with three digits."""
    for limit, factor, unit in ((1e-3, 1e6, "us"), (1.0, 1e3, "ms")):
        if value < limit:
            return f"{value * factor:.3g} {unit}"
    return f"{value:.3g} s"


def bytes_of(value: float) -> str:
    """A size for people, in powers of 1024."""
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if value >= size:
            return f"{value / size:g} {unit}"
    return f"{value:g} B"
