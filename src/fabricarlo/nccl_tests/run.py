"""What an nccl-tests log says: runs of one collective, and rows of one message size."""

import dataclasses

ELEMENT_SIZES = {
    "int8": 1, "char": 1, "uint8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1, "f8e4m3": 1, "f8e5m2": 1,
    "half": 2, "float16": 2, "bfloat16": 2, "bf16": 2,
    "int32": 4, "int": 4, "uint32": 4, "float": 4, "float32": 4,
    "int64": 8, "uint64": 8, "double": 8, "float64": 8,
}  # fmt: skip
"""Bytes of an element, by the names that nccl-tests and rccl-tests print."""


@dataclasses.dataclass(frozen=True)
class Measured:
    """One of the two halves of a row: the buffers apart (out of place), or one buffer (in place).

    time in s, algbw and busbw in B/s; a half unit of the last printed digit of algbw and of busbw
    is `rounding`. `wrong` is the number of wrong elements (or the error of old versions), None
    where it was not checked.
    """

    time: float
    algbw: float
    busbw: float
    rounding: float
    wrong: float | None


@dataclasses.dataclass(frozen=True)
class Row:
    """One message size: bytes, elements as printed, and what was measured."""

    size: int
    count: int
    out_of_place: Measured | None
    in_place: Measured | None
    line: int

    @property
    def halves(self) -> tuple[Measured, ...]:
        """What was measured, out of place first."""
        return tuple(half for half in (self.out_of_place, self.in_place) if half is not None)

    @property
    def least_time(self) -> float:
        """The shorter of the two times, in s: outliers are always too long."""
        return min(half.time for half in self.halves)


@dataclasses.dataclass(frozen=True)
class Run:
    """One collective of one element type over one set of ranks, for several sizes.

    `ranks` follows from the numbers alone (None where they do not tell), `ranks_range` is what
    the printed digits allow; `refusals` says why the run is no measurement of a collective, and
    `notes` what was put right or left out. `alternatives` are collectives that print the same
    numbers as `operation`, where the log does not name one.
    """

    operation: str | None
    element: str
    element_size: int
    reduction: str | None
    rows: tuple[Row, ...]
    ranks: int | None
    ranks_range: tuple[int, int] | None
    column: str | None
    refusals: tuple[str, ...]
    notes: tuple[str, ...]
    alternatives: tuple[str, ...] = ()

    @property
    def accepted(self) -> bool:
        """Whether the run may be used as a measurement."""
        return not self.refusals
