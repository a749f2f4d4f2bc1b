"""The command `validate`: which kind a table is of, what it prints, and how it ends."""

import json
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest

from fabricarlo.cli import main
from fabricarlo.validation import kinds, shown
from fabricarlo.validation.report import Criterion, Report, Row, Table
from fabricarlo.validation.table import number

Run = Callable[..., tuple[int, str, str]]


def doubled(table: Table) -> Report:
    """A kind of table for these tests: y is twice x."""
    rows = []
    for cells in table.rows:
        x, y = number(cells, "x"), number(cells, "y")
        off = abs(2 * x - y)
        verdict = "pass" if off == 0 else "fail"
        rows.append(Row(f"x={x:g}", y, 2 * x, "m", f"{off:g} m", verdict, "off" * (off > 0)))
    unknown = Row("z", None, None, "m", "", "not applicable", "no z [here]")
    right = all(row.verdict == "pass" for row in rows)
    return Report(
        table.path.name, "doubles", [*rows, unknown], [Criterion("y = 2 x", f"{right}", right)]
    )


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Call the command with one kind, `doubles`; gives exit code, output and errors."""
    module = types.ModuleType("fabricarlo.validation.doubles")
    fields = {"KIND": "doubles", "COLUMNS": frozenset("xy"), "NUMBERS": frozenset("x")}
    for name, value in (fields | {"validate": doubled}).items():
        setattr(module, name, value)
    monkeypatch.setitem(sys.modules, "fabricarlo.validation.doubles", module)
    monkeypatch.setattr(kinds, "NAMES", ("doubles", "never_written"))

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["fabricarlo", "validate", *map(str, arguments)])
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def written(folder: Path, text: str, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_table_that_holds(run: Run, tmp_path: Path):
    code, said, _ = run(written(tmp_path, "# a comment\ny,x\n2,1\n\n4,2\n"))
    assert code == 0
    assert "doubles: pass" in said
    assert "y = 2 x" in said
    assert "2 pass, 1 not applicable" in said
    assert "no z [here]" in said


def test_a_table_that_does_not_hold(run: Run, tmp_path: Path):
    code, said, _ = run(written(tmp_path, "x,y\n1,2\n2,5\n"))
    assert code == 1
    assert "doubles: fail" in said
    assert "1 pass, 1 fail, 1 not applicable" in said


def test_one_bad_table_among_good_ones(run: Run, tmp_path: Path):
    bad, good = written(tmp_path, "x,y\n1,3\n", "bad.csv"), written(tmp_path, "x,y\n1,2\n")
    assert run(bad, good)[0] == run(good, bad)[0] == 1
    assert run(good, good)[0] == 0


def test_the_machine_form_has_every_row(run: Run, tmp_path: Path):
    lines = "".join(f"{k},{2 * k}\n" for k in range(100))
    code, said, _ = run(written(tmp_path, f"x,y\n{lines}"), "--json")
    [found] = map(json.loads, said.splitlines())
    assert code == 0
    assert (found["kind"], found["passed"], len(found["rows"])) == ("doubles", True, 101)
    assert found["rows"][7] == {
        "name": "x=7",
        "reference": 14.0,
        "found": 14.0,
        "unit": "m",
        "deviation": "0 m",
        "verdict": "pass",
        "reason": "",
    }
    assert found["criteria"] == [{"demand": "y = 2 x", "found": "True", "passed": True}]


def test_a_number_that_is_not_finite_is_still_json():
    report = Report("t", "k", [Row("r", 1.0, float("inf"), "m", "", "fail")], [])
    assert json.loads(shown.machine_form(report))["rows"][0]["found"] == "inf"


def test_a_long_table_shows_what_says_most(run: Run, tmp_path: Path):
    lines = "".join(f"{k},{2 * k + (k == 50)}\n" for k in range(100))
    path = written(tmp_path, f"x,y\n{lines}")
    code, said, _ = run(path)
    assert code == 1
    assert "x=50 " in said
    assert "x=98 " not in said
    assert "--all" in said
    assert "no z [here]" in said
    assert "x=98 " in run(path, "--all")[1]


def test_the_worst_rows_are_shown():
    rows = [Row(f"r{k}", 1.0, 1.0, "m", f"{k / 100} relative", "pass") for k in range(100)]
    assert [row.name for row in shown.telling(rows)] == [f"r{k}" for k in range(99, 89, -1)]
    unread = [Row(f"r{k}", 1.0, 1.0 + k, "m", "", "pass") for k in range(100)]
    assert [row.name for row in shown.telling(unread)][:2] == ["r99", "r98"]


REFUSED = {
    "empty": ("", "is empty"),
    "only comments": ("# x,y\n", "is empty"),
    "no rows": ("x,y\n", "no rows"),
    "unknown columns": ("x,w\n1,2\n", "no kind of table has the columns x, w"),
    "doubled columns": ("x,x\n1,2\n", "line 1: column names are empty or doubled"),
    "too few cells": ("x,y\n1,2\n3\n", "line 3: 1 cells, but the table has 2 columns"),
    "an open quote": ('x,y\n1,"2\n', "is no table of text"),
    "a wrong number": ("x,y\n\n1,2\none,2\n", "line 4: column x holds 'one', which is no number"),
    "a wrong number met late": ("x,y\n1,two\n", "line 2: column y holds 'two'"),
    "not a number": ("x,y\nnan,2\n", "line 2: column x holds 'nan', which is no number"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_table_is_refused_with_its_place(run: Run, tmp_path: Path, case: str):
    text, why = REFUSED[case]
    path = written(tmp_path, text)
    code, said, error = run(path)
    assert (code, said) == (2, "")
    assert why in error
    assert str(path) in error


def test_a_cell_that_a_kind_cannot_read_is_refused_with_its_place(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def strict(table: Table) -> Report:
        rows = [
            Row("r", float(cells["y"]), {"2": 1.0}[cells["y"]], "m", "", "pass")
            for cells in (table.rows)
        ]
        return Report(table.path.name, "doubles", rows, [])

    monkeypatch.setattr(sys.modules["fabricarlo.validation.doubles"], "validate", strict)
    path = written(tmp_path, "x,y\n1,2\n2,two\n")
    code, _, error = run(path)
    assert code == 2
    assert f"{path}, line 3: could not convert string to float: 'two'" in error
    code, _, error = run(written(tmp_path, "x,y\n1,2\n2,3\n"))
    assert code == 2
    assert "line 3: '3' is missing" in error


def test_an_error_of_the_program_is_no_error_of_the_table(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def broken(table: Table) -> Report:
        raise ValueError("shapes (3,) and (4,) do not fit")

    monkeypatch.setattr(sys.modules["fabricarlo.validation.doubles"], "validate", broken)
    with pytest.raises(ValueError, match="shapes"):
        run(written(tmp_path, "x,y\n1,2\n"))


def test_unknown_columns_name_the_kinds(run: Run, tmp_path: Path):
    error = run(written(tmp_path, "a,b\n1,2\n"))[2]
    assert "doubles: x, y" in error
    assert "never_written: could not be loaded" in error


def test_files_that_are_none(run: Run, tmp_path: Path):
    assert "does not exist" in run(tmp_path / "none.csv")[2]
    code, _, error = run(tmp_path)
    assert code == 2
    assert "is a folder" in error
    (tmp_path / "bytes.csv").write_bytes(b"x,y\n\xff\xfe,2\n")
    assert "no table of text" in run(tmp_path / "bytes.csv")[2]


def test_nothing_is_computed_where_one_table_is_wrong(run: Run, tmp_path: Path):
    code, said, _ = run(written(tmp_path, "x,y\n1,2\n"), tmp_path / "none.csv")
    assert (code, said) == (2, "")


def test_kinds_that_share_columns_choose_by_what_suits(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    first = sys.modules["fabricarlo.validation.doubles"]
    other = types.ModuleType("fabricarlo.validation.others")
    vars(other).update({k: v for k, v in vars(first).items() if k.isupper() or k == "validate"})
    monkeypatch.setattr(other, "KIND", "others")
    monkeypatch.setitem(sys.modules, "fabricarlo.validation.others", other)
    monkeypatch.setattr(kinds, "NAMES", ("doubles", "others"))
    path = written(tmp_path, "x,y\n1,2\n")
    assert "may be any of doubles, others" in run(path)[2]
    monkeypatch.setattr(first, "suits", lambda table: len(table.rows) > 1, raising=False)
    monkeypatch.setattr(other, "suits", lambda table: len(table.rows) == 1, raising=False)
    assert kinds.chosen([path])[0][1].KIND == "others"


def test_every_kind_has_its_own_columns():
    found, _ = kinds.loaded()
    columns = [kind.COLUMNS for kind in found.values() if not hasattr(kind, "suits")]
    assert len(set(columns)) == len(columns)
    assert all(kind.KIND for kind in found.values())
