"""The starter spec: it is right as it is, and writes over nothing."""

import json

import pytest

from fabricarlo.errors import SpecError
from fabricarlo.plan import Plan
from fabricarlo.schema import json_schema
from fabricarlo.spec import load_spec
from fabricarlo.starter import write_starter
from tests.engine.test_cli import call


def test_the_starter_can_be_run_as_it_is(tmp_path):
    path, schema = write_starter("my-sweep", tmp_path)
    sweep = load_spec(path)
    assert sweep.name == "my-sweep"
    assert "step_time" in sweep.outputs
    assert Plan(sweep).layout.cell_count == 4
    first = path.read_text().splitlines()[0]
    assert first == f"# yaml-language-server: $schema={schema.name}"
    assert json.loads(schema.read_text()) == json_schema()


def test_the_command_names_the_next_step(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code, out, _ = call("new", "first.yaml", capsys=capsys)
    assert code == 0
    assert "next: fabricarlo check first.yaml" in out.replace("\n", " ")
    code, _, err = call("new", "first", capsys=capsys)
    assert code == 2
    assert "first.yaml is there already" in err


@pytest.mark.parametrize("name", ["", "../up", "a b", "-x"])
def test_what_is_no_name_is_refused(name, tmp_path):
    with pytest.raises(SpecError, match="is no name for a sweep"):
        write_starter(name, tmp_path)
