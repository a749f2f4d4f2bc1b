"""The charts of a page as PNG files, as they stand when the page opens."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fabricarlo.report.charts import fill
from fabricarlo.report.facts import MAIN, Facts
from fabricarlo.report.library import png
from fabricarlo.report.page import drawn, filters
from fabricarlo.report.tables import Table, key_of

WIDTH = 760
SOURCES = {
    "ranges": "summary",
    "density": "densities",
    "exceedance": "curves",
    "parts": "parts",
    "differences": "differences",
    "indices": "indices",
    "heat": "summary",
    "shares": "shares",
}
Row = dict[str, Any]


def write_images(facts: Facts, tables: dict[str, Table], page: Path) -> list[Path]:
    """Write PAGE-CHART.png beside the page, for every chart that has something to show."""
    written = []
    for name, source in SOURCES.items():
        if source not in tables:
            continue
        rows, choice = _view(facts, tables[source], name)
        if not rows:
            continue
        chart = fill(drawn(facts)[name], choice, rows) | {"width": WIDTH}
        path = page.with_name(f"{page.stem}-{name}.png")
        path.write_bytes(png(chart))
        written.append(path)
    return written


def _view(facts: Facts, table: Table, name: str) -> tuple[list[Row], dict[str, str]]:
    """The rows of a chart, and what stands in the reader's places."""
    several = [k for k, (_, n) in enumerate(facts.shape) if n > 1]
    scale, main = facts.scale(facts.main), facts.numbers.index(facts.main)
    shown = MAIN if name == "parts" else facts.main
    title = f"{shown} ({scale.symbol})" if scale.symbol else shown
    rows = [_expanded(facts, table, row) for row in table.as_json()["rows"]]
    rows = [r for r in rows if r.get("o", main) == main]
    colour = facts.axes[several[0]] if several else "cell"
    choice = {"$VALUE": title, "$COLOUR": colour, "$X": "cell", "$Y": "cell"}
    if name == "heat":
        return _heat(facts, rows, several, choice)
    keeps: dict[str, Callable[[Row], bool]] = {
        "parts": lambda r: r["of"] == "mean",
        "differences": lambda r: r["of"] == "p99" and r["axis"] == several[0],
        "indices": lambda r: r["c"] == 0 and r["index"] is not None,
        "shares": lambda r: r["flag"] == facts.flags[0],
    }
    keep = keeps.get(name, lambda _: True)
    fixed = filters(facts) if name != "indices" else [-1] * facts.depth
    rows = [r for r in rows if keep(r) and _inside(r, fixed)]
    for r in rows if name == "differences" else ():
        names = facts.labels[facts.axes[several[0]]]
        r["others"] = _naming(facts, r["c"], several[0])
        r["label"] = f"{names[0]} → {names[r['label']]}"
    return sorted(rows, key=lambda r: -r["index"]) if name == "indices" else rows, choice


def _expanded(facts: Facts, table: Table, row: list[Any]) -> Row:
    made = dict(zip(table.columns, row, strict=True))
    at = facts.cells[made["c"]]
    named = {a: facts.labels[a][k] for a, k in zip(facts.axes, at, strict=True)}
    return made | named | {"cell": _naming(facts, made["c"], None), "at": list(at)}


def _naming(facts: Facts, cell: int, without: int | None) -> str:
    at = facts.cells[cell]
    texts = [
        facts.labels[axis][at[k]]
        for k, (axis, n) in enumerate(facts.shape)
        if n > 1 and k != without
    ]
    return " · ".join(texts) or "this design"


def _inside(row: Row, fixed: list[int]) -> bool:
    return all(f < 0 or f == k for f, k in zip(fixed, row["at"], strict=True))


def _heat(
    facts: Facts, rows: list[Row], several: list[int], choice: dict[str, str]
) -> tuple[list[Row], dict[str, str]]:
    if len(several) < 2:
        return [], choice
    y, x = several[-2:]
    kept = [r for r in rows if all(k in (x, y) or i == 0 for k, i in enumerate(r["at"]))]
    level = facts.levels[facts.nearest(0.99)]
    kept = [r | {"shown": r[key_of(level)]} for r in kept if r[key_of(level)] is not None]
    low, high = (f((r["shown"] for r in kept), default=0.0) for f in (min, max))
    for r in kept:
        r["rank"] = (r["shown"] - low) / (high - low) if high > low else 1.0
    more = {"$X": facts.axes[x], "$Y": facts.axes[y], "$VALUE": f"{level} of {choice['$VALUE']}"}
    return kept, choice | more
