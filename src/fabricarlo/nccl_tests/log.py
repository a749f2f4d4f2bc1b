"""Read a log of nccl-tests or rccl-tests, as published: cut, labelled, mixed, coloured."""

import dataclasses
import itertools
import re
from collections.abc import Iterable
from pathlib import Path

from fabricarlo.errors import FabricarloError
from fabricarlo.nccl_tests.checks import examine
from fabricarlo.nccl_tests.lines import lines_of, text_of
from fabricarlo.nccl_tests.rows import Entry
from fabricarlo.nccl_tests.run import ELEMENT_SIZES, Row, Run
from fabricarlo.nccl_tests.tables import NOT_ALL, Table, tables_of

STARTED = re.compile(r"nThread \d+ nGpus \d+|Using devices|_perf\b|NCCL (?:INFO|WARN|version)")
"""What a test prints before its table."""


def read_log(path: Path) -> list[Run]:
    """All runs of a log, those that must not be used with their refusals.

    A log without any run gives one empty run that says why. Raises FabricarloError for a file that
    cannot be opened.
    """
    try:
        text = text_of(path)
    except OSError as error:
        raise FabricarloError(f"{path} cannot be read: {error.strerror}; give a log.") from error
    return read_text(text)


def read_text(text: str) -> list[Run]:
    """All runs of the text of a log."""
    tables = tables_of(lines_of(text))
    runs: list[Run] = []
    for k, table in enumerate(tables):
        below = tables[k + 1] if k + 1 < len(tables) else None
        mixed = _interleaved(table) or (
            below is not None and below.unfinished_before and _interleaved(below)
        )
        runs += _runs(table, mixed=mixed)
    return runs or [_empty(_why_nothing(text))]


def _runs(table: Table, *, mixed: bool) -> list[Run]:
    entries = table.entries()
    if not entries:
        return [_empty(_why_empty(table))]
    cut = [f"line {number} left out: {why}" for number, why in table.cut]
    groups: dict[object, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.run, []).append(entry)
    runs = [_run(group, table.program, cut) for group in groups.values()]
    if not mixed:
        return runs
    why = "two tables are interleaved line by line: rows of independent processes"
    return [dataclasses.replace(run, refusals=(why, *run.refusals)) for run in runs]


def _run(entries: list[Entry], program: str | None, cut: list[str]) -> Run:
    first = entries[0]
    found = examine(
        [entry.row for entry in entries], first.element, first.reduction, first.root, program
    )
    return Run(
        operation=found.operation,
        element=first.element,
        element_size=ELEMENT_SIZES[first.element],
        reduction=first.reduction,
        rows=found.rows,
        ranks=found.ranks,
        ranks_range=found.ranks_range,
        column=first.column,
        refusals=found.refusals,
        notes=(*cut, *found.notes, *_wrong(found.rows)),
        alternatives=found.alternatives,
    )


def _wrong(rows: Iterable[Row]) -> list[str]:
    """Rows whose data were wrong; old versions print an error of rounding there, below 1."""
    wrong = [row.line for row in rows if any((half.wrong or 0) >= 1 for half in row.halves)]
    return [f"line {number}: wrong elements in the result" for number in wrong]


def _empty(why: str) -> Run:
    return Run(None, "", 0, None, (), None, None, None, (why,), ())


def _why_nothing(text: str) -> str:
    if STARTED.search(text):
        return "no heading and no row: the run ended before its first result"
    return "no table of nccl-tests: no heading and no row was found"


def _why_empty(table: Table) -> str:
    shape = table.heading
    if shape is not None and not shape.readable:
        names = ", ".join((*shape.before, "size", "...", "type", *shape.after))
        return f"a table of other columns ({names}): times and bandwidths cannot be told apart"
    if bad := [f"line {number}: {why}" for number, why in table.cut if why != NOT_ALL]:
        return f"a heading and no row that can be used: {bad[0]}"
    rows = "only cut rows" if table.cut else "no rows"
    return f"a heading and {rows}: the run ended before its first result, or the log was cut"


def _interleaved(table: Table) -> bool:
    """Whether sizes rise and fall, or stand twice, as where two processes print into one log.

    A test that is repeated begins again with its first size, and that is none.
    """
    groups: dict[object, list[int]] = {}
    for entry in table.entries():
        if entry.row.size > 0:
            groups.setdefault(entry.run, []).append(entry.row.size)
    return any(_mixed(sizes) for sizes in groups.values())


def _mixed(sizes: list[int]) -> bool:
    pairs = list(itertools.pairwise(sizes))
    risen = any(after > before for before, after in pairs)
    fallen = any(after < before and after != sizes[0] for before, after in pairs)
    twice = {after for before, after in pairs if after == before}
    return (risen and fallen) or len(twice) > 1
