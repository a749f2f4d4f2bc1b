"""Published logs against the calibrated model: criteria, what is none, and wrong ones seen."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from fabricarlo.errors import FabricarloError
from fabricarlo.nccl_tests import bus_factor
from fabricarlo.validation import calibration, nccl_tests_index
from fabricarlo.validation.calibration_tables import Measurement
from fabricarlo.validation.report import Report, Row
from fabricarlo.validation.table import Cells, Table, read_table
from tests.tables import reference_path

SIZES = np.array([2.0**k for k in range(10, 34, 3)])
BLANK = dict.fromkeys(nccl_tests_index.COLUMNS, "")
HEALTHY = BLANK | {
    "gpus": "16",
    "fabric": "ib",
    "healthy": "yes",
    "collective": "all_reduce",
    "ranks_implied_by_busbw_over_algbw": "16.0",
    "domains": "2",
    "gpu_generation": "Hopper",
    "nic_GBps_per_domain": "400",
}


def predicted(operation: str = "all_reduce") -> np.ndarray:
    table = Measurement(
        "x", operation, "hopper", "rdma", 16, 2, 400e9, SIZES, np.ones_like(SIZES), healthy=True
    )
    return calibration.predict(calibration.shipped(), [table])[0]


def log(times: np.ndarray, operation: str = "all_reduce") -> str:
    share, word = (1, "sum") if operation == "all_reduce" else (16, "none")
    rows = []
    for size, time in zip(SIZES, times, strict=True):
        rate = size / time / 1e9
        half = f"{1e6 * time:.3f} {rate:.2f} {rate * bus_factor(operation, 16):.2f} 0"
        count = int(size) // 4 // share
        slow = f"{2e6 * time:.3f} {rate / 2:.2f} {rate / 2 * bus_factor(operation, 16):.2f} 0"
        rows.append(f"{size:.0f} {count} float {word} -1 {slow} {half}")
    return "\n".join(rows)


def report(folder: Path, *logs: tuple[str, str, Mapping[str, str]]) -> Report:
    """A report on logs (name, text, cells of the index)."""
    rows = []
    for line, (name, text, cells) in enumerate(logs, start=2):
        (folder / name).write_text(text, encoding="utf-8")
        rows.append(Cells({**cells, "file": name}, folder / "index.csv", line))
    columns = tuple(sorted(nccl_tests_index.COLUMNS))
    return nccl_tests_index.validate(Table(folder / "index.csv", columns, tuple(rows)))


def of_sizes(found: Report) -> list[Row]:
    return [row for row in found.rows if row.unit == "us"]


def criteria(found: Report) -> dict[str, tuple[str, bool]]:
    return {c.demand: (c.found, c.passed) for c in found.criteria}


@pytest.fixture(scope="module")
def published() -> Report:
    return nccl_tests_index.validate(read_table(reference_path("nccl/index.csv")))


def test_every_criterion_holds_on_the_published_logs(published: Report):
    assert published.passed, published.criteria
    assert len(published.criteria) == 6


def test_every_log_is_told_of(published: Report):
    told = {row.name.split()[0] for row in published.rows}
    assert told == {row["file"] for row in read_table(reference_path("nccl/index.csv")).rows}


@pytest.mark.parametrize("number", ["39", "46", "62", "65", "72"])
def test_a_refused_log_has_its_reason(published: Report, number: str):
    rows = [row for row in published.rows if row.name.startswith(f"{number}-")]
    assert rows
    assert all(row.verdict == "not applicable" and "refused: " in row.reason for row in rows)


@pytest.mark.parametrize("number", ["08", "60", "73", "07", "01", "31", "44"])
def test_what_is_no_criterion_says_why(published: Report, number: str):
    rows = [row for row in published.rows if row.name.startswith(f"{number}-")]
    rows = [row for row in rows if not row.name.endswith("count")]
    assert rows
    assert all(row.verdict == "not applicable" and row.reason for row in rows)


def test_logs_that_the_model_predicts(tmp_path: Path):
    gathered = {"collective": "all_gather"}
    found = report(
        tmp_path,
        ("90-reduce.txt", log(predicted()), HEALTHY),
        ("91-gather.txt", log(predicted("all_gather"), "all_gather"), HEALTHY | gathered),
    )
    assert found.passed, found.criteria
    assert len(of_sizes(found)) == 2 * SIZES.size
    for row in of_sizes(found):
        assert row.found == pytest.approx(row.reference, rel=1e-4), row  # digits of the log
        assert (row.verdict == "pass") == ("between" not in row.reason)
    unseen = [c for c in found.criteria if "not those of the fit" in c.demand]
    assert [c.found for c in unseen] == ["0.0% of 4"]


@pytest.mark.parametrize(("factor", "passes"), [(1.1, True), (1.2, False), (1.5, False)])
def test_logs_that_the_model_does_not_predict(tmp_path: Path, factor: float, *, passes: bool):
    found = report(tmp_path, ("90-x.txt", log(predicted() * factor), HEALTHY))
    assert found.passed is passes
    worst = [row for row in of_sizes(found) if row.verdict == "fail"]
    assert bool(worst) is (1 - 1 / factor > nccl_tests_index.WORST)


def test_the_shorter_time_counts(tmp_path: Path):
    """Out of place is twice as long in these logs."""
    [first, *_] = of_sizes(report(tmp_path, ("90-x.txt", log(predicted()), HEALTHY)))
    assert first.reference == pytest.approx(1e6 * predicted()[0], rel=1e-4)


@pytest.mark.parametrize("implied", ["8.0", "17.0"])
def test_ranks_that_the_numbers_do_not_bear_out(tmp_path: Path, implied: str):
    cells = HEALTHY | {"ranks_implied_by_busbw_over_algbw": implied}
    found = report(tmp_path, ("90-x.txt", log(predicted()), cells))
    assert not found.passed
    [row] = [row for row in found.rows if "ranks by" in row.name]
    assert (row.verdict, row.found) == ("fail", 16)


WITHOUT = {
    "generation": ({"gpu_generation": "Turing"}, "no parameters of GPU generation Turing"),
    "fabric": ({"fabric": "carrier pigeon"}, "no parameters of fabric carrier pigeon"),
    "rate": ({"nic_GBps_per_domain": ""}, "network ports is not known"),
    "health": ({"healthy": "unknown"}, "does not call it healthy"),
    "several domains": ({"domains": "1", "nic_GBps_per_domain": ""}, "inside one domain"),
}


@pytest.mark.parametrize("case", WITHOUT)
def test_a_log_without_what_the_model_needs(tmp_path: Path, case: str):
    change, why = WITHOUT[case]
    found = report(tmp_path, ("90-x.txt", log(predicted()), HEALTHY | change))
    rows = [row for row in found.rows if "ranks by" not in row.name]
    assert rows
    assert all(row.verdict == "not applicable" and why in row.reason for row in rows)
    assert not found.passed  # no log is left to hold the model against


NOTHING = {
    "no table": "Using devices",
    "only rows between": "\n".join(log(predicted()).splitlines()[3:5]),
    "only small rows": "\n".join(log(predicted()).splitlines()[:2]),
}


@pytest.mark.parametrize("case", NOTHING)
def test_nothing_to_compare_is_no_pass(tmp_path: Path, case: str):
    """With no rows a criterion says so, neither that it holds nor that it does not."""
    cells = HEALTHY | {"ranks_implied_by_busbw_over_algbw": ""}
    found = report(tmp_path, ("90-x.txt", NOTHING[case], cells))
    assert not found.passed
    [some, *others] = [c for c in found.criteria if not c.demand.startswith("ranks by")]
    assert (some.found, some.passed) == ("0", False)
    ranks = [c for c in found.criteria if c.demand.startswith("ranks by")]
    for criterion in (*ranks, *others):
        assert (criterion.found, criterion.passed) == ("no rows", None), criterion


def test_a_missing_log_is_refused_with_its_place(tmp_path: Path):
    cells = Cells({**HEALTHY, "file": "90-x.txt"}, tmp_path / "index.csv", 2)
    table = Table(tmp_path / "index.csv", tuple(cells), (cells,))
    with pytest.raises(FabricarloError, match=r"index.csv, line 2: there is no log .*90-x.txt"):
        nccl_tests_index.validate(table)


@pytest.mark.parametrize(
    ("size", "text"), [(8, "8 B"), (1024, "1 KiB"), (2**26, "64 MiB"), (2**34, "16 GiB")]
)
def test_sizes_are_written_as_they_are_named(size: int, text: str):
    assert nccl_tests_index.binary(size) == text
