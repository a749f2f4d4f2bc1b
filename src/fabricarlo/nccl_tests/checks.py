"""What the numbers of a run say by themselves: which collective, how many ranks, whether at all.

With S = size in bytes, t = time, n = ranks (the rules of nccl-tests, doc/PERFORMANCE.md):

    algbw = S / t
    busbw = algbw f,  f = 2 (n-1)/n   all_reduce
                      f = (n-1)/n     all_gather, reduce_scatter, alltoall, gather, scatter
                      f = 1           broadcast, reduce, sendrecv
    count x element size = S          all_reduce, broadcast, reduce, sendrecv
                         = S/n        all_gather, reduce_scatter, alltoall, gather, scatter

What a log is called, or which devices it lists, is not used: published logs are often put together
from two runs. Only a program's name decides between collectives that print the same numbers.
"""

import collections
import dataclasses
import math

from fabricarlo.errors import FabricarloError
from fabricarlo.nccl_tests.run import ELEMENT_SIZES, Measured, Row

FAST = 1e9
"""B/s; slower rows have too few digits to check the bandwidth against size / time."""
ALLOWED = 0.02
"""Relative difference between algbw and size / time, both of which are printed rounded."""
ENOUGH = 1000
"""Elements of a rank from which the count tells the number of ranks, though it is rounded."""
ALIGNED = 16
"""Bytes to which a rank's part may be rounded down."""
SHARES = ("all_gather", "alltoall", "gather", "scatter")
"""Collectives of which every rank has one n-th of the size."""
WHOLE = ("broadcast", "reduce", "sendrecv")
"""Collectives that move the size once."""


def bus_factor(operation: str, ranks: float) -> float:
    """busbw / algbw of a collective over so many ranks. Raises FabricarloError for an unknown one.

    nccl-tests, doc/PERFORMANCE.md.
    """
    if operation == "all_reduce":
        return 2 * (ranks - 1) / ranks
    if operation in ("reduce_scatter", *SHARES):
        return (ranks - 1) / ranks
    if operation in WHOLE:
        return 1.0
    known = ", ".join(("all_reduce", "reduce_scatter", *SHARES, *WHOLE))
    raise FabricarloError(f"'{operation}' is no collective of nccl-tests; write one of {known}.")


@dataclasses.dataclass(frozen=True)
class Factor:
    """busbw/algbw: the range that the rounding of all rows leaves, and the most exact row's own.

    `most` is the largest that the most exact row allows.
    """

    low: float
    high: float
    best: float
    most: float

    @property
    def known(self) -> bool:
        """Whether it tells anything: rows of small sizes print 0.00."""
        return math.isfinite(self.high)


@dataclasses.dataclass(frozen=True)
class Finding:
    """What follows from the numbers of a run; `rows` are those that agree with each other.

    `parts` is size / time over algbw: 1, or the ranks in versions that counted one rank's part.
    """

    rows: tuple[Row, ...] = ()
    operation: str | None = None
    ranks: int | None = None
    ranks_range: tuple[int, int] | None = None
    refusals: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    alternatives: tuple[str, ...] = ()
    parts: int = 1


def examine(
    rows: list[Row], element: str, reduction: str | None, root: int | None, program: str | None
) -> Finding:
    """Collective, ranks and refusals of the rows of one run."""
    filled = [row for row in rows if row.size > 0 and row.count > 0]
    if not filled:
        return Finding(tuple(rows), refusals=("no row has a size above zero",))
    share, rows, notes = _share(rows, filled, ELEMENT_SIZES[element])
    if share is None:
        why = "size is no whole multiple of count x element size: not a table of nccl-tests"
        return Finding(tuple(rows), refusals=(why,))
    factor = _factor(rows)
    if _silent(rows):
        why = "busbw is 0 in every row: one rank, no communication (a build without MPI does that)"
        return Finding(tuple(rows), program, 1, (1, 1), (why,), tuple(notes))
    if factor.low > factor.high and not (share == 1 and factor.most < 1):
        why = "busbw/algbw differs from row to row: rows of different sets of ranks are mixed"
        return Finding(tuple(rows), refusals=(why,), notes=tuple(notes))
    found = (
        _whole(factor, reduction, root, program)
        if share == 1
        else _shared(share, factor, rows, reduction, root, program)
    )
    kept, wrong = _timed(rows, found.parts)
    return dataclasses.replace(
        found,
        rows=tuple(kept),
        refusals=(*found.refusals, *_untrue(kept, rows)),
        notes=(*notes, *found.notes, *wrong),
    )


def _share(
    rows: list[Row], filled: list[Row], size: int
) -> tuple[int | None, list[Row], list[str]]:
    """Size over count x element size of most rows, the rows that have it, and what was left out.

    Some versions print the size that was asked for, above the largest multiple below it.
    """
    exact = [row for row in filled if row.count >= ENOUGH] or filled
    shares = collections.Counter(round(row.size / (size * row.count)) for row in exact)
    share = shares.most_common(1)[0][0]
    fits = [row for row in rows if 0 <= row.size - share * size * row.count < share * ALIGNED]
    fits += [row for row in rows if row.size == row.count == 0]
    if share < 1 or 2 * sum(row in filled for row in fits) <= len(filled):
        return None, rows, []
    left = [row.line for row in rows if row not in fits]
    notes = [f"line {line} left out: its count does not fit its size" for line in left]
    return share, [row for row in rows if row in fits], notes


def _halves(rows: list[Row]) -> list[tuple[Row, Measured]]:
    return [(row, half) for row in rows for half in row.halves if row.size > 0]


def _factor(rows: list[Row]) -> Factor:
    """The factor that all rows allow."""
    low, high, best, most, fastest = 0.0, math.inf, 0.0, math.inf, 0.0
    for _, half in _halves(rows):
        if half.algbw <= half.rounding or half.busbw <= half.rounding:
            continue
        upper = (half.busbw + half.rounding) / (half.algbw - half.rounding)
        low = max(low, (half.busbw - half.rounding) / (half.algbw + half.rounding))
        high = min(high, upper)
        if half.algbw > fastest:
            best, most, fastest = half.busbw / half.algbw, upper, half.algbw
    return Factor(low, high, best, most)


def _silent(rows: list[Row]) -> bool:
    """One rank: rows that moved data at a visible rate, and no bus bandwidth at all."""
    halves = [half for _, half in _halves(rows)]
    return all(half.busbw == 0 for half in halves) and any(
        half.algbw > 20 * half.rounding for half in halves
    )


def _whole(factor: Factor, reduction: str | None, root: int | None, program: str | None) -> Finding:
    """Every rank has the whole size."""
    if factor.known and factor.most < 1:
        why = (
            f"busbw/algbw = {factor.best:.4g} with count x element size = size is impossible: "
            "2(n-1)/n is never below 1 (made up, or another collective's bandwidth)"
        )
        return Finding(refusals=(why,))
    if factor.known and factor.low > 1:
        return _all_reduce(factor, program)
    if reduction is not None and root is None:
        return _all_reduce(factor, program)
    if reduction is not None:
        return _called(program, "reduce")
    if root is not None:
        return _called(program, "broadcast")
    return _called(program, "sendrecv")


def _all_reduce(factor: Factor, program: str | None) -> Finding:
    """n = 2/(2 - f), and all whole numbers that rounding allows."""
    found = _called(program, "all_reduce")
    if not factor.known or (factor.high >= 2 and factor.low < 1):
        return found
    low = max(2, math.ceil(2 / (2 - factor.low) - 1e-9)) if factor.low < 2 else None
    if low is None or (factor.high < 2 and math.floor(2 / (2 - factor.high) + 1e-9) < low):
        why = f"busbw/algbw = {factor.best:.4g} fits no number of ranks: 2(n-1)/n is 1, 1.333, ..."
        return dataclasses.replace(found, refusals=(why,))
    if factor.high >= 2:
        return found
    high = math.floor(2 / (2 - factor.high) + 1e-9)
    best = min(max(round(2 / (2 - factor.best)), low), high)
    exact = high <= 1.5 * low
    return dataclasses.replace(found, ranks=best if exact else None, ranks_range=(low, high))


def _shared(
    ranks: int,
    factor: Factor,
    rows: list[Row],
    reduction: str | None,
    root: int | None,
    program: str | None,
) -> Finding:
    """Every rank has one n-th of the size: the count tells n."""
    ways = SHARES if root is None else SHARES[2:]
    called = _called(program, *(("reduce_scatter",) if reduction is not None else ways))
    found = dataclasses.replace(called, ranks=ranks, ranks_range=(ranks, ranks))
    expected = (ranks - 1) / ranks
    if not factor.known or factor.low <= expected <= factor.high:
        return found
    halves = [(row, half) for row, half in _halves(rows) if half.algbw > FAST]
    old = all(abs(row.size / half.time / half.algbw / ranks - 1) < ALLOWED for row, half in halves)
    if old and factor.low <= ranks - 1 <= factor.high:
        note = f"old bandwidth convention: algbw is that of one of {ranks} parts of the size"
        return dataclasses.replace(found, notes=(*found.notes, note), parts=ranks)
    why = (
        f"busbw/algbw = {factor.best:.4g}, but {ranks} ranks by count and size would give "
        f"{expected:.4g}"
    )
    return dataclasses.replace(found, refusals=(why,))


def _called(program: str | None, usual: str, *others: str) -> Finding:
    """The program named in the log where the numbers may be its own, else the usual one."""
    if program in (usual, *others):
        return Finding(operation=program)
    notes: tuple[str, ...] = ()
    if program is not None:
        notes = (f"the log names {program}, but the numbers are those of {usual}",)
    elif others:
        notes = (f"{usual} by the numbers; {', '.join(others)} would print the same",)
        return Finding(operation=usual, notes=notes, alternatives=others)
    return Finding(operation=usual, notes=notes)


def _timed(rows: list[Row], parts: int) -> tuple[list[Row], list[str]]:
    """Rows whose algbw is size / time, and what was left out."""
    kept, left = [], []
    for row in rows:
        fast = [half for half in row.halves if half.algbw > FAST and half.time > 0]
        off = [abs(row.size / half.time / half.algbw / parts - 1) for half in fast]
        allowed = [ALLOWED + 5e-9 / half.time for half in fast]
        good = all(a <= b for a, b in zip(off, allowed, strict=True))
        (kept if good else left).append(row)
    return kept, [f"line {row.line} left out: algbw is not size / time" for row in left]


def _untrue(kept: list[Row], rows: list[Row]) -> tuple[str, ...]:
    """Refusal of a run of which most rows do not hold."""
    if 2 * len(kept) > len(rows):
        return ()
    return (f"algbw is not size / time in {len(rows) - len(kept)} of {len(rows)} rows",)
