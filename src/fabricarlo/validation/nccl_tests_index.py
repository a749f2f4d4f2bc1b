"""Published nccl-tests logs, by an index of what each ran on, against the answer `calibrated`.

Every log is read as it is, and every time predicted from the columns of the index and the catalog
alone. Where the logs are those that the catalog was fitted to, a fit without each file in turn says
what the model knows of a machine that it has not seen; where they are not, the whole table does.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fabricarlo.errors import FabricarloError
from fabricarlo.nccl_tests import Run, read_log
from fabricarlo.validation import calibration
from fabricarlo.validation.calibration_tables import DAMAGED, Measurement, measurement, usable
from fabricarlo.validation.report import Criterion, Report, Row, Table, Verdict
from fabricarlo.validation.table import where

KIND = "published nccl-tests logs"
COLUMNS = frozenset(
    {
        "file",
        "source",
        "gpu",
        "gpus",
        "nodes",
        "nics_per_node_gbps",
        "fabric",
        "nccl_version",
        "healthy",
        "note",
        "collective",
        "data_rows",
        "ranks_implied_by_busbw_over_algbw",
        "max_out_of_place_busbw_GBps",
        "median_time_us_size_le_1KiB",
        "provenance",
        "domains",
        "gpu_generation",
        "nic_GBps_per_domain",
        "inferred",
    }
)
NUMBERS = frozenset({"nic_GBps_per_domain"})

LARGE, SMALL = 2**26, 2**16
"""Bytes: rates are judged from 64 MiB up, latency up to 64 KiB."""
COLLECTIVES = ("all_reduce", "all_gather")
MEDIAN, WORST = 0.05, 0.30
FACTOR, SHARE = 2.0, 0.90
LEFT_OUT = 0.10
UNSEEN, UNSEEN_SHARE = 0.12, 0.80
NO_ROWS = "no rows"
SAME_RANKS = 0.01
SAME_FIT = 0.02
"""Relative difference of every parameter within which a fit found what the catalog holds."""


@dataclasses.dataclass(frozen=True)
class Predicted:
    """A run beside its prediction; `why_not` says why it is no criterion."""

    measured: Measurement
    times: NDArray[np.float64]
    why_not: str

    @property
    def off(self) -> NDArray[np.float64]:
        """Predicted over measured, less 1."""
        return self.times / self.measured.times - 1


def validate(table: Table) -> Report:
    """Every size of every log beside its prediction."""
    pairs = list(_runs(table))
    found = [(cells, run, measurement(cells, run)) for cells, run in pairs]
    known = [what for _, _, what in found if isinstance(what, Measurement) and what.sizes.size]
    times = calibration.predict(calibration.shipped(), known)
    predicted = [Predicted(what, t, _why_not(what)) for what, t in zip(known, times, strict=True)]
    left = [_unpredicted(cells, run, what) for cells, run, what in found if isinstance(what, str)]
    rows = [row for each in predicted for row in _rows(each)]
    judged = [each for each in predicted if not each.why_not]
    ranks = [_read(cells, run) for cells, run in pairs if run.accepted]
    criteria, more = _judged(judged, known)
    every = [*rows, *more, *ranks, *left]
    return Report(table.path.name, KIND, every, [_ranks(ranks), *criteria])


def _runs(table: Table) -> Iterator[tuple[Mapping[str, str], Run]]:
    """Every run of every log; the logs lie beside the index."""
    for cells in table.rows:
        path: Path = table.path.parent / cells["file"]
        if not path.is_file():
            raise FabricarloError(
                f"{where(cells)}: there is no log {path}; logs lie in the folder of their index."
            )
        for run in read_log(path):
            named = cells["collective"]  # decides between collectives that print the same numbers
            same = named in run.alternatives
            yield cells, dataclasses.replace(run, operation=named) if same else run


def _why_not(what: Measurement) -> str:
    """Why a run is no criterion; empty where it is one."""
    if (number := what.name[:2]) in DAMAGED:
        return DAMAGED[number]
    if not what.healthy:
        return "the index does not call it healthy"
    if what.domains < 2:
        return "inside one domain"
    if what.operation not in COLLECTIVES:
        return f"criteria are for {' and '.join(COLLECTIVES)}"
    return ""


def _rows(each: Predicted) -> list[Row]:
    what, rows = each.measured, []
    for size, time, found in zip(what.sizes, what.times, each.times, strict=True):
        ratio = float(found / time)
        verdict, reason = _verdict(each.why_not, float(size), ratio)
        rows.append(
            Row(
                f"{what.name} {what.operation} {what.ranks} ranks {binary(float(size))}",
                1e6 * float(time),
                1e6 * float(found),
                "us",
                f"{ratio - 1:+.3f} relative, ratio {ratio:.3f}",
                verdict,
                reason,
            )
        )
    return rows


def _verdict(why_not: str, size: float, ratio: float) -> tuple[Verdict, str]:
    if why_not:
        return "not applicable", why_not
    if size >= LARGE:
        good = abs(ratio - 1) <= WORST
        return ("pass", "") if good else ("fail", f"more than {WORST:.0%} off")
    if size <= SMALL:
        good = 1 / FACTOR <= ratio <= FACTOR
        return ("pass", "") if good else ("fail", f"more than a factor {FACTOR:g} off")
    return "not applicable", "between 64 KiB and 64 MiB libraries change protocols: no criterion"


def _unpredicted(cells: Mapping[str, str], run: Run, why: str) -> Row:
    size = f", {len(run.rows)} rows" if run.rows else ""
    name = f"{cells['file']} {run.operation or cells['collective']}{size}"
    return Row(name, None, None, "us", "", "not applicable", why)


def _read(cells: Mapping[str, str], run: Run) -> Row:
    """What the numbers of a run tell of its ranks, beside what the index has; and its notes."""
    implied = _number(cells["ranks_implied_by_busbw_over_algbw"])
    name = f"{cells['file']} {run.operation}: ranks by busbw/algbw or by count"
    notes = "; ".join(run.notes)
    if implied is None or run.ranks is None:
        none = "the numbers do not tell" if run.ranks is None else "the index has none"
        reason = "; ".join((none, *run.notes))
        return Row(name, implied, run.ranks, "1", "", "not applicable", reason)
    off = run.ranks / implied - 1
    low, high = run.ranks_range or (run.ranks, run.ranks)
    good = abs(off) <= SAME_RANKS or low <= implied <= high
    deviation = f"{off:+.4f} relative"
    return Row(name, implied, run.ranks, "1", deviation, "pass" if good else "fail", notes)


def _number(text: str) -> float | None:
    """The number in a cell that may hold words ("mixed") or nothing."""
    try:
        return float(text)
    except ValueError:
        return None


def _ranks(rows: list[Row]) -> Criterion:
    """Whether the numbers of each run tell the ranks that the index recovered from them."""
    judged = [row for row in rows if row.verdict != "not applicable"]
    right = sum(row.verdict == "pass" for row in judged)
    demand = (
        f"ranks by the numbers of a log as the index has them, within {SAME_RANKS:.0%} or what "
        "the printed digits allow"
    )
    if not judged:
        return Criterion(demand, NO_ROWS, None)
    return Criterion(demand, f"{right} of {len(judged)}", right == len(judged))


def _judged(judged: list[Predicted], known: list[Measurement]) -> tuple[list[Criterion], list[Row]]:
    """Criteria, and rows of the fits that left a file out."""
    wide = sum(bool(_within(each.measured, LARGE, np.inf).any()) for each in judged)
    some = Criterion(
        "healthy logs of several domains with 64 MiB and more: at least one", str(wide), wide > 0
    )
    large, small = _off(judged, least=LARGE), _off(judged, most=SMALL)
    fitted = [what for what in known if usable(what)]
    if not judged or not _is_the_fit(fitted):
        return [some, *_unseen(large)], []
    near = (small >= 1 / FACTOR - 1) & (small <= FACTOR - 1)
    rows, others = _left_out(judged, fitted)
    criteria = [
        some,
        _median("logs of the fit, 64 MiB and more", large, MEDIAN),
        Criterion(
            f"the same: no error above {WORST:.0%}",
            f"{np.max(np.abs(large)):.1%} of {large.size}" if large.size else NO_ROWS,
            bool((np.abs(large) <= WORST).all()) if large.size else None,
        ),
        Criterion(
            f"logs of the fit, up to 64 KiB: {SHARE:.0%} of rows within a factor {FACTOR:g}",
            f"{np.mean(near):.1%} of {small.size}" if small.size else NO_ROWS,
            bool(np.mean(near) >= SHARE) if small.size else None,
        ),
        _median("each log by a fit to all others, 64 MiB and more", others, LEFT_OUT),
    ]
    return criteria, rows


def _off(
    judged: list[Predicted], *, least: float = 0.0, most: float = np.inf
) -> NDArray[np.float64]:
    """Predicted over measured less 1, of all rows of these sizes."""
    parts = [each.off[_within(each.measured, least, most)] for each in judged]
    return np.concatenate([np.zeros(0), *parts])


def _within(what: Measurement, least: float, most: float) -> NDArray[np.bool]:
    return (what.sizes >= least) & (what.sizes <= most)


def _median(of: str, off: NDArray[np.float64], most: float) -> Criterion:
    median = float(np.median(np.abs(off))) if off.size else np.nan
    demand = f"{of}: median error at most {most:.0%}"
    found = f"{median:.1%} of {off.size}" if off.size else NO_ROWS
    return Criterion(demand, found, median <= most if off.size else None)


def _unseen(large: NDArray[np.float64]) -> list[Criterion]:
    """Criteria for logs that the catalog was not fitted to."""
    near = float(np.mean(np.abs(large) <= WORST)) if large.size else np.nan
    demand = f"the same: {UNSEEN_SHARE:.0%} of rows within {WORST:.0%}"
    found = f"{near:.1%} of {large.size}" if large.size else NO_ROWS
    return [
        _median("logs that are not those of the fit, 64 MiB and more", large, UNSEEN),
        Criterion(demand, found, near >= UNSEEN_SHARE if large.size else None),
    ]


def _is_the_fit(fitted: list[Measurement]) -> bool:
    """Whether a fit to these tables gives the parameters of the catalog."""
    if not fitted:
        return False
    shipped, again = calibration.shipped(), calibration.fit(fitted)
    return all(abs(again[name] / value - 1) <= SAME_FIT for name, value in shipped.items())


def _left_out(
    judged: list[Predicted], fitted: list[Measurement]
) -> tuple[list[Row], NDArray[np.float64]]:
    """For every log the error of a fit to all others; the errors of all large messages."""
    errors = calibration.leave_one_out(fitted)
    rows, large = [], [np.zeros(0)]
    for name in dict.fromkeys(each.measured.name for each in judged):
        own = [what for what in fitted if what.key == name]
        parts = [
            off[_within(what, LARGE, np.inf)]
            for what, off in zip(own, errors.get(name, []), strict=True)
        ]
        off = np.abs(np.concatenate([np.zeros(0), *parts]))
        if off.size:
            large.append(off)
            rows.append(_left_out_row(name, off))
    return rows, np.concatenate(large)


def _left_out_row(name: str, off: NDArray[np.float64]) -> Row:
    median = float(np.median(off))
    return Row(
        f"{name} by a fit to all other logs, 64 MiB and more",
        0.0,
        median,
        "1",
        f"{median:.3f} median relative error, worst {off.max():.3f}",
        "pass" if median <= LEFT_OUT else "not applicable",
        ""
        if median <= LEFT_OUT
        else f"above {LEFT_OUT:.0%}, but the criterion is on all logs together",
    )


def binary(size: float) -> str:
    """A number of bytes in the powers of 1024 that sizes of messages are written in."""
    power = min(int(np.log2(max(size, 1.0)) / 10), 3)
    return f"{size / 1024**power:.4g} {('B', 'KiB', 'MiB', 'GiB')[power]}"
