"""Reference tables are read where they are, and their absence is a skip that says so."""

from pathlib import Path

import pytest

from tests.tables import reference_table


def test_a_table_is_read_as_text_without_comments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "law.csv").write_text('# made by hand\nlaw,value\n"normal, unit",1.50\n')
    monkeypatch.setenv("FABRICARLO_REFERENCE", str(tmp_path))
    assert reference_table("law.csv") == [{"law": "normal, unit", "value": "1.50"}]


def test_a_missing_table_skips_and_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FABRICARLO_REFERENCE", str(tmp_path))
    with pytest.raises(pytest.skip.Exception, match="set FABRICARLO_REFERENCE"):
        reference_table("absent.csv")
