"""Read a reference table: CSV with a line of column names; lines that start with # are comments."""

import csv
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fabricarlo.errors import FabricarloError
from fabricarlo.validation.report import Table


class Cells(dict[str, str]):
    """One row of a table: column -> text, and where it stands."""

    def __init__(self, cells: Mapping[str, str], path: Path, line: int) -> None:
        super().__init__(cells)
        self.path, self.line = path, line


def read_table(path: Path) -> Table:
    """Read a table as text. Raises FabricarloError where the file is none."""
    lines = list(_lines(path))
    if not lines:
        raise FabricarloError(f"{path}: the file is empty; a table has a line of column names.")
    heading, body = lines[0][1], lines[1:]
    if len(set(heading)) != len(heading) or not all(heading):
        raise FabricarloError(
            f"{path}, line {lines[0][0]}: column names are empty or doubled: {', '.join(heading)}; "
            "give every column a name of its own."
        )
    if not body:
        raise FabricarloError(
            f"{path}: the table has columns ({', '.join(heading)}) but no rows; nothing to check."
        )
    for line, cells in body:
        if len(cells) != len(heading):
            raise FabricarloError(
                f"{path}, line {line}: {len(cells)} cells, but the table has {len(heading)} "
                'columns; a cell that holds a comma is written between ".'
            )
    rows = (Cells(dict(zip(heading, cells, strict=True)), path, line) for line, cells in body)
    return Table(path=path, columns=tuple(heading), rows=tuple(rows))


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Rows of the file as cells, each with the number of its last line."""
    if not path.is_file():
        why = "is a folder" if path.is_dir() else "does not exist"
        raise FabricarloError(f"{path} {why}; give the path of a reference table (CSV).")
    try:
        text = path.read_text(encoding="utf-8-sig")
        reader = csv.reader(text.splitlines(), strict=True)
        yield from (
            (reader.line_num, [cell.strip() for cell in cells])
            for cells in reader
            if any(cells) and not cells[0].startswith("#")
        )
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise FabricarloError(f"{path} is no table of text: {error}.") from error


def where(row: Mapping[str, str]) -> str:
    """File and line of a row, for messages."""
    return f"{row.path}, line {row.line}" if isinstance(row, Cells) else "table"


def number(row: Mapping[str, str], column: str) -> float:
    """The number in a cell. Raises FabricarloError for anything else, and for nan."""
    text = row[column]
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise FabricarloError(
            f"{where(row)}: column {column} holds '{text}', which is no number; "
            "write one such as 0.125 or 1.5e-9."
        )
    return value


def optional(row: Mapping[str, str], column: str) -> float | None:
    """The number in a cell, or None where the cell is empty."""
    return number(row, column) if row[column] else None


def named(row: Mapping[str, str], column: str) -> dict[str, Any]:
    """The JSON object in a cell: its named values."""
    try:
        found = json.loads(row[column])
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise FabricarloError(
            f"{where(row)}: column {column} holds '{row[column]}', which is no JSON object; "
            'write one such as {"ranks": 8, "bytes": 1048576}.'
        )
    return found


def assigned(row: Mapping[str, str], column: str) -> dict[str, str]:
    """The values of a cell written `a=1;b=2`, as text."""
    parts = [part.partition("=") for part in row[column].split(";") if part]
    if bad := [name for name, equals, _ in parts if not equals]:
        raise FabricarloError(
            f"{where(row)}: column {column} holds '{bad[0]}'; write name=value;name=value."
        )
    return {name.strip(): value.strip() for name, _, value in parts}
