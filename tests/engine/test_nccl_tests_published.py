"""Published logs: what their index says of them, and what it says must not be believed."""

import re
from pathlib import Path

import pytest

from fabricarlo.nccl_tests import Run, read_log
from tests.tables import reference_path, reference_table

REFUSED = {
    "39": "interleaved",
    "46": "impossible",
    "62": "one rank",
    "65": "other columns",
    "72": "ended before",
}
CUT = ("48", "51", "54", "58", "60")


def index() -> list[dict[str, str]]:
    return reference_table("nccl/index.csv")


def log(number: str) -> Path:
    [name] = [row["file"] for row in index() if row["file"].startswith(f"{number}-")]
    return reference_path(f"nccl/{name}")


def numbers(run: Run) -> list[tuple[object, ...]]:
    return [(row.size, row.count, row.out_of_place, row.in_place) for row in run.rows]


def test_every_log_is_read_as_its_index_says():
    wrong = []
    for row in index():
        runs = [r for r in read_log(log(row["file"][:2])) if r.accepted]
        if row["file"][:2] in REFUSED:
            assert not runs, row["file"]
            continue
        expected = re.split(r" \+ ", row["collective"].replace(" (inferred)", ""))
        found = list(dict.fromkeys(run.operation for run in runs))
        cut = row["file"][:2] in CUT
        rows = sum(len(run.rows) for run in runs)
        if found != expected or not int(row["data_rows"]) - cut <= rows <= int(row["data_rows"]):
            wrong.append((row["file"], found, rows))
    assert not wrong


def test_ranks_are_recovered_from_the_numbers():
    wrong = []
    for row in index():
        ranks = [int(n) for n in row["gpus"].split(",")]
        for run in read_log(log(row["file"][:2])):
            if run.accepted and run.ranks_range is not None:
                low, high = run.ranks_range
                if not any(low <= n <= high for n in ranks):
                    wrong.append((row["file"], ranks, run.ranks_range))
            if run.accepted and re.fullmatch(r"[\d.]+", row["ranks_implied_by_busbw_over_algbw"]):
                implied = float(row["ranks_implied_by_busbw_over_algbw"])
                assert run.ranks == pytest.approx(implied, rel=0.01), row["file"]
    assert not wrong


@pytest.mark.parametrize(
    ("number", "ranks"), [("02", {128}), ("04", {96}), ("19", {8}), ("56", {8, 16, 24, 32})]
)
def test_ranks_that_the_published_text_gets_wrong(number: str, ranks: set[int]):
    assert {run.ranks for run in read_log(log(number))} == ranks


@pytest.mark.parametrize("number", REFUSED)
def test_what_is_no_measurement_is_refused(number: str):
    runs = read_log(log(number))
    assert runs
    for run in runs:
        assert any(REFUSED[number] in why for why in run.refusals), run.refusals


@pytest.mark.parametrize("number", CUT)
def test_a_cut_last_row_is_left_out(number: str):
    [run] = read_log(log(number))
    lines = log(number).read_text().splitlines()
    last = max(k for k, line in enumerate(lines, start=1) if re.search(r"\d", line))
    assert run.accepted
    assert f"line {last} left out: not all columns are there" in run.notes
    assert max(row.line for row in run.rows) < last


@pytest.mark.parametrize(("number", "twin"), [("19", "74"), ("27", "73")])
def test_formatting_changes_no_number(number: str, twin: str):
    [run], [other] = read_log(log(number)), read_log(log(twin))
    assert numbers(run) == numbers(other)
    assert (run.operation, run.ranks) == (other.operation, other.ranks)
