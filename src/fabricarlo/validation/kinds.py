"""Kinds of reference tables, one module each, chosen by the columns of a table.

A kind is a module of this package that gives

* `KIND: str`, what it is called in the output;
* `COLUMNS: frozenset[str]`, the exact columns of its tables;
* `validate(table: Table) -> Report`, the product's own kernels beside every row;
* `NUMBERS: frozenset[str]` (may be left out), columns whose cells are a number or empty, which is
  checked before anything is computed;
* `suits(table: Table) -> bool` (only where two kinds share their columns), whether a table is one
  of its own.
"""

import importlib
import traceback
from pathlib import Path
from typing import Protocol, cast

from fabricarlo.errors import FabricarloError
from fabricarlo.validation.report import Report, Table
from fabricarlo.validation.table import Cells, optional, read_table, where

NAMES = (
    "peer_cases",
    "nccl_tests_index",
    "maxn_quantiles",
    "ring_maxplus",
    "tree_maxplus",
    "loss_stall",
    "collective_stall",
    "congestion_cases",
    "thermal_cases",
    "thermal_slowest",
)
"""Modules of this package that are kinds."""


class Kind(Protocol):
    """What a module of this package gives."""

    KIND: str
    COLUMNS: frozenset[str]

    def validate(self, table: Table) -> Report:
        """Every row beside the product's own number."""
        ...


def loaded() -> tuple[dict[str, Kind], dict[str, str]]:
    """Kinds by name, and why those that could not be loaded could not."""
    kinds, broken = {}, {}
    for name in NAMES:
        try:
            kinds[name] = cast("Kind", importlib.import_module(f"fabricarlo.validation.{name}"))
        except Exception as error:  # one kind that does not load must not take the others along
            broken[name] = f"{type(error).__name__}: {error}"
    return kinds, broken


def kind_of(table: Table) -> Kind:
    """The kind of a table. Raises FabricarloError where there is none, or more than one."""
    kinds, broken = loaded()
    same = [kind for kind in kinds.values() if set(table.columns) == kind.COLUMNS]
    if len(same) > 1:
        same = [kind for kind in same if getattr(kind, "suits", lambda _: True)(table)]
    if len(same) == 1:
        _check_numbers(table, getattr(same[0], "NUMBERS", frozenset()))
        return same[0]
    if same:
        names = ", ".join(kind.KIND for kind in same)
        raise FabricarloError(f"{table.path}: the table may be any of {names}; split it by kind.")
    known = [f"  {kind.KIND}: {', '.join(sorted(kind.COLUMNS))}" for kind in kinds.values()]
    known += [f"  {name}: could not be loaded ({why})" for name, why in broken.items()]
    raise FabricarloError(
        f"{table.path}: no kind of table has the columns {', '.join(table.columns)}; "
        "the kinds and their columns, in any order, are\n" + "\n".join(known)
    )


def validated(table: Table, kind: Kind) -> Report:
    """The report of a kind. Raises FabricarloError with file and line for a cell it cannot read."""
    try:
        return kind.validate(table)
    except (KeyError, ValueError) as error:
        missing = isinstance(error, KeyError)
        place = _place(error)
        if place is None or not (missing or str(error).startswith(NO_NUMBER)):
            raise
        why = f"{error} is missing among the values of a cell" if missing else str(error)
        raise FabricarloError(
            f"{place}: {why}; write the row as the others of its kind, or take it out."
        ) from error


NO_NUMBER = ("could not convert string to float", "invalid literal for int()")
"""What Python says of text that is no number."""


def _place(error: Exception) -> str | None:
    """File and line of the row that was being read when the error was met."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    rows = [v for frame in frames for v in frame.f_locals.values() if isinstance(v, Cells)]
    return where(rows[-1]) if rows else None


def _check_numbers(table: Table, columns: frozenset[str]) -> None:
    for row in table.rows:
        for column in sorted(columns):
            optional(row, column)


def chosen(paths: list[Path]) -> list[tuple[Table, Kind]]:
    """Tables with their kinds: all are read and checked before the first is computed."""
    tables = [read_table(path) for path in paths]
    return [(table, kind_of(table)) for table in tables]
