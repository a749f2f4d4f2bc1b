"""Lines -> tables: which rows stand under which heading, and what belongs to no row."""

import dataclasses
import re
from collections.abc import Iterable

from fabricarlo.nccl_tests.lines import Line
from fabricarlo.nccl_tests.rows import (
    INTEGER,
    MEASURES,
    NUMBER,
    Entry,
    Heading,
    bad_value,
    entry,
    heading,
    type_at,
)

PROGRAM = re.compile(
    r"\b(all_reduce|all_gather|reduce_scatter|alltoallv?|broadcast|reduce|sendrecv|gather|scatter"
    r"|hypercube)_perf(?:_mpi)?\b"
)
NOT_ALL = "not all columns are there"
FOOTER = re.compile(r"Out of bounds values|Avg bus bandwidth|Collective test concluded")


@dataclasses.dataclass
class Table:
    """Rows under one heading, as words.

    `cut` has the lines left out and why; `program` is the test that the log names for it;
    `unfinished_before` says that the table above had not ended when this one began.
    """

    heading: Heading | None
    program: str | None = None
    words: list[tuple[int, str, list[str]]] = dataclasses.field(default_factory=list)
    cut: list[tuple[int, str]] = dataclasses.field(default_factory=list)
    ended: bool = False
    unfinished_before: bool = False

    def entries(self) -> list[Entry]:
        """The rows, with a column of integers before the size where every row has one."""
        may = self.heading is None or bool(self.heading.before)
        column = may and all(
            type_at(words) == 3 and INTEGER.fullmatch(words[0]) for _, _, words in self.words
        )
        found = (
            entry(words, (number, label), self.heading, row_label=column)
            for number, label, words in self.words
        )
        return [row for row in found if row is not None]


class Reader:
    """Sorts the lines of one process into tables."""

    def __init__(self) -> None:
        self.tables: list[Table] = []
        self.program: str | None = None
        self.open: tuple[int, list[str]] | None = None  # a row that the library's messages cut

    def take(self, line: Line) -> None:
        """The next line of the log."""
        words = line.text.split()
        if not words:
            return
        if self._goes_on(line, words):
            return
        if (shape := heading(line.text)) is not None:
            self.close()
            self._begin(shape)
        elif type_at(words) is not None:
            self.close()
            self._row(line, words)
        elif named := PROGRAM.search(line.text):
            self._named(line.text, named.group(1))
        elif FOOTER.search(line.text):
            self._end()
        elif self.tables and all(NUMBER.fullmatch(word) for word in words):
            self.tables[-1].cut.append((line.number, NOT_ALL))

    def close(self) -> None:
        """No more parts come: a row that is still open was cut."""
        if self.open is not None:
            self._current().cut.append((self.open[0], NOT_ALL))
            self.open = None

    def _goes_on(self, line: Line, words: list[str]) -> bool:
        """Whether the line is one more part of the open row, between messages of the library."""
        if self.open is None or not all(NUMBER.fullmatch(w) or w == "N/A" for w in words):
            return False
        number, before = self.open
        whole, table = before + words, self._current()
        if entry(whole, (number, line.label), table.heading, row_label=False) is not None:
            table.words.append((number, line.label, whole))
            self.open = None
            return True
        if len(whole) < len(before) + len(MEASURES) + 1:
            self.open = (number, whole)
            return True
        return False

    def _row(self, line: Line, words: list[str]) -> None:
        table = self._current()
        if table.ended:
            table = self._begin(table.heading)
        if entry(words, (line.number, line.label), table.heading, row_label=False) is not None:
            table.words.append((line.number, line.label, words))
        elif (bad := bad_value(words, table.heading)) is not None:
            table.cut.append((line.number, bad))
        else:
            self.open = (line.number, words)

    def _current(self) -> Table:
        return self.tables[-1] if self.tables else self._begin(None)

    def _begin(self, shape: Heading | None) -> Table:
        above = self.tables[-1] if self.tables else None
        unfinished = above is not None and bool(above.words) and not above.ended
        if above is not None and not above.words and not above.cut and not above.ended:
            self.tables.pop()  # a heading of two lines, or printed twice
        self.tables.append(Table(shape, self.program, unfinished_before=unfinished))
        return self.tables[-1]

    def _named(self, text: str, program: str) -> None:
        """A log names the test before its table, and newer ones once more behind it."""
        if "concluded" in text and self.tables:
            self.tables[-1].program = program
            self._end()
        else:
            self.program = program

    def _end(self) -> None:
        self.close()
        if self.tables:
            self.tables[-1].ended = True
        self.program = None


def tables_of(lines: Iterable[Line]) -> list[Table]:
    """The tables of a log; each labelled process has its own."""
    readers: dict[str, Reader] = {}
    for line in lines:
        readers.setdefault(line.label, Reader()).take(line)
    for reader in readers.values():
        reader.close()
    return [table for reader in readers.values() for table in reader.tables]
