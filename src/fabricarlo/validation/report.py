"""What a validation says of one reference table."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

Verdict = Literal["pass", "fail", "not applicable"]


@dataclasses.dataclass(frozen=True)
class Table:
    """A reference table as it was read: its path, its columns and its rows as text."""

    path: Path
    columns: tuple[str, ...]
    rows: tuple[Mapping[str, str], ...]


@dataclasses.dataclass(frozen=True)
class Row:
    """One value of the table beside the product's own."""

    name: str
    reference: float | None
    found: float | None
    unit: str
    deviation: str  # how far apart, in the measure of its criterion: "1.2e-07 relative"
    verdict: Verdict
    reason: str = ""  # why it failed or does not apply


@dataclasses.dataclass(frozen=True)
class Criterion:
    """What a kind of table demands, and what was found."""

    demand: str
    found: str
    passed: bool | None  # None: nothing to judge it by


@dataclasses.dataclass(frozen=True)
class Report:
    """All rows of one table and what they were held against."""

    table: str
    kind: str
    rows: Sequence[Row]
    criteria: Sequence[Criterion]

    @property
    def passed(self) -> bool:
        """Whether every criterion holds that applies, and one does."""
        verdicts = [criterion.passed for criterion in self.criteria]
        return any(verdicts) and all(verdict is None or verdict for verdict in verdicts)
