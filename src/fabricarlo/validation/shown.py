"""What a person and what a program sees of a validation."""

import collections
import dataclasses
import json
import math
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fabricarlo.validation.report import Criterion, Report, Row

WIDTH = 150
SHORT = 30
"""A table of so many rows is shown whole."""
FAILURES = 40
"""So many failures are shown of a longer one."""
WORST = 10
"""And so many of the rows that are furthest off among those that pass."""

COLOURS = {"pass": "green", "fail": "red", "not applicable": "yellow"}


def print_report(report: Report, *, every_row: bool) -> None:
    """Print a report: criteria, rows (all, or those that say most), and how many there are."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDTH
    verdict = _verdict("pass" if report.passed else "fail")
    console.print(f"[bold]{escape(report.table)}[/bold]: {escape(report.kind)}: {verdict}")
    console.print(_criteria(report.criteria))
    rows = report.rows if every_row else telling(report.rows)
    console.print(_rows(rows))
    if len(rows) < len(report.rows):
        console.print(f"{len(rows)} of {len(report.rows)} rows shown; --all shows every row.")
    counts = collections.Counter(row.verdict for row in report.rows)
    console.print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    reasons = collections.Counter(r.reason for r in report.rows if r.verdict == "not applicable")
    if len(rows) < len(report.rows):
        for reason, count in reasons.most_common():
            console.print(f"  not applicable, {count}: {escape(reason)}")


def telling(rows: Sequence[Row]) -> list[Row]:
    """The rows of a long table that say most: failures, and the worst of those that pass."""
    if len(rows) <= SHORT:
        return list(rows)
    failed = [row for row in rows if row.verdict == "fail"]
    passed = [row for row in rows if row.verdict == "pass"]
    return (
        sorted(failed, key=distance, reverse=True)[:FAILURES]
        + (sorted(passed, key=distance, reverse=True)[:WORST])
    )


def distance(row: Row) -> float:
    """How far a row is off: the number its deviation starts with, else the relative difference."""
    try:
        off = abs(float(row.deviation.split()[0]))
    except (IndexError, ValueError):
        if row.reference is None or row.found is None:
            return 0.0
        off = abs(row.found - row.reference) / (abs(row.reference) or 1.0)
    return math.inf if math.isnan(off) else off


def machine_form(report: Report) -> str:
    """One line of JSON with every criterion and every row; what is not finite is text."""
    form = {
        "table": report.table,
        "kind": report.kind,
        "passed": report.passed,
        "criteria": [dataclasses.asdict(criterion) for criterion in report.criteria],
        "rows": [_finite(dataclasses.asdict(row)) for row in report.rows],
    }
    return json.dumps(form, allow_nan=False)


def _finite(fields: dict[str, object]) -> dict[str, object]:
    return {
        name: str(value) if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in fields.items()
    }


def _verdict(verdict: str) -> str:
    return f"[{COLOURS[verdict]}]{verdict}[/{COLOURS[verdict]}]"


def _criteria(criteria: Sequence[Criterion]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("criterion", "found", ""):
        table.add_column(heading)
    for criterion in criteria:
        held = "pass" if criterion.passed else "fail"
        held = "not applicable" if criterion.passed is None else held
        table.add_row(escape(criterion.demand), escape(criterion.found), _verdict(held))
    return table


def _rows(rows: Sequence[Row]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("row", overflow="fold")
    for heading in ("reference", "found"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("unit", "deviation", "", "reason"):
        table.add_column(heading)
    for row in rows:
        numbers = ("" if v is None else f"{v:.8g}" for v in (row.reference, row.found))
        texts = (escape(text) for text in (row.unit, row.deviation))
        table.add_row(escape(row.name), *numbers, *texts, _verdict(row.verdict), escape(row.reason))
    return table
