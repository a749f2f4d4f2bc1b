"""The command line: exit codes, messages, and what each command prints."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fabricarlo import cli
from tests.engine import small


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(small.text())
    return path


def call(*arguments: object, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command, in this process."""
    before = sys.argv
    sys.argv = ["fabricarlo", *map(str, arguments)]
    try:
        cli.main()
        code = 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    finally:
        sys.argv = before
    out = capsys.readouterr()
    return code, out.out, out.err


def test_help_names_the_commands():
    text = CliRunner().invoke(cli.app, ["--help"]).output
    for command in ("run", "check", "show", "list", "schema"):
        assert command in text


def test_run_then_show_then_run_again(spec, tmp_path, capsys):
    store = tmp_path / "s.zarr"
    code, out, _ = call("run", spec, "--out", store, capsys=capsys)
    assert code == 0
    assert "is finished" in out
    code, out, _ = call("show", store, "--output", "allreduce_time", capsys=capsys)
    assert code == 0
    assert "infiniband-xdr" in out
    assert "p99.9" in out
    assert "data_loss_stall" not in out
    code, out, _ = call("run", spec, "--out", store, capsys=capsys)
    assert code == 0
    assert "already finished" in out


def test_json_events(spec, tmp_path, capsys):
    code, out, _ = call("run", spec, "--out", tmp_path / "s.zarr", "--json", capsys=capsys)
    events = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert next(e["event"] for e in events if e["event"] != "phase") == "start"
    assert events[-1]["event"] == "finish"
    assert max(e["done"] for e in events if "done" in e) == 6 * 3000


def test_samples_and_set(spec, tmp_path, capsys):
    arguments = ["--samples", 500, "--set", "link_rate=400 Gbit/s", "--set", "seed=9"]
    lossy = {"loss": "link_retry", "switch_latency": "1 us", "packet_loss_rate": 1e-9}
    spec.write_text(small.text(axes={"gpus": [8192]}, set=small.SPEC["set"] | lossy, draws={}))
    code, _, err = call("run", spec, "--out", tmp_path / "s.zarr", *arguments, capsys=capsys)
    assert (code, err) == (0, "")
    import fabricarlo

    attrs = fabricarlo.open(tmp_path / "s.zarr").attrs
    assert (attrs["samples"], attrs["seed"]) == (500, 9)


def test_check_prints_the_plan(spec, capsys):
    code, out, _ = call("check", spec, capsys=capsys)
    assert code == 0
    for text in (
        "cells      6 (fabric 2 x gpus 3)",
        "samples    18,000",
        "programs   2 to compile",
        "replaced   data_jitter_stall",
        "payload_fraction",
        "loss.data.lost",
    ):
        assert text in out
    assert not list(spec.parent.glob("*.zarr"))


@pytest.mark.parametrize("what", ["quantities", "presets", "answers", "laws", None])
def test_list(what, capsys):
    code, out, _ = call("list", *([what] if what else []), capsys=capsys)
    assert code == 0
    expected = {
        "quantities": "lognormal_noise_sigma",
        "presets": "infiniband-xdr:",
        "answers": "seed_document_as_written",
        "laws": "truncated_normal",
    }
    for name, text in expected.items():
        assert (text in out) == (what in (name, None))


def test_schema_is_json(capsys):
    code, out, _ = call("schema", capsys=capsys)
    assert code == 0
    assert json.loads(out)["$schema"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "{spec}", "--out", "{file}"], "is a file; a store is a directory"),
        (["run", "{spec}", "--out", "/dev/null/x.zarr"], "cannot be written: Not a directory. Not"),
        (
            ["run", "{spec}", "--out", "/proc/x.zarr", "--set", "keep.samples=false"],
            "/proc/x.zarr cannot be written: ",
        ),
        (["run", "{spec}", "--out", "{new}", "--process", "2/2"], "write K/N with 0 <= K < N"),
        (["run", "{spec}", "--out", "{new}", "--samples", "0"], "samples"),
        (["run", "{spec}", "--out", "{new}", "--set", "link_rate=800 GB"], "--set link_rate"),
        (["run", "{spec}", "--out", "{new}", "--samples", "1000000000000"], "bytes (92.0 TB)"),
        (["run", "{spec}", "--out", "{new}", "--block", "1000"], "less than a tile of 32768"),
        (["run", "{spec}", "--out", "{new}", "--tile", "1000"], "it must be a power of two"),
        (["run", "{spec}", "--out", "{new}", "--tile", "0"], "it must be a power of two"),
        (["run", "{spec}", "--out", "{new}", "--block", "0"], "less than a tile of 32768"),
        (["run", "{missing}", "--out", "{new}"], "no such file"),
        (["show", "{missing}"], "there is no such directory"),
        (["list", "nonsense"], "there are quantities, presets, answers, laws"),
    ],
)
def test_bad_input_exits_with_2_and_creates_nothing(arguments, message, spec, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    places = {
        "spec": spec,
        "file": tmp_path / "file",
        "new": tmp_path / "new.zarr",
        "missing": tmp_path / "no",
    }
    filled = [a.format(**places) for a in arguments]
    code, _, err = call(*filled, capsys=capsys)
    assert code == 2
    assert message in err.replace("\n", " ")
    assert "Traceback" not in err
    assert not (tmp_path / "new.zarr").exists()


def test_usage_errors_exit_with_2(capsys):
    assert call("run", capsys=capsys)[0] == 2
    assert call("walk", capsys=capsys)[0] == 2


def test_show_of_an_unknown_output_names_what_there_is(spec, tmp_path, capsys):
    store = tmp_path / "s.zarr"
    call("run", spec, "--out", store, "--samples", 100, capsys=capsys)
    code, _, err = call("show", store, "--output", "step_time", capsys=capsys)
    assert code == 2
    assert "has no output step_time; it has allreduce_time, data_loss_stall" in err


def test_samples_that_are_not_finite_are_reported(spec, tmp_path, capsys):
    """Half of the drawn splits do not divide the GPUs."""
    split = {"tensor_parallel": {"discrete": {"values": [8, 7], "weights": [1, 1]}}}
    spec.write_text(small.text(draws=small.SPEC["draws"] | split))
    code, out, _ = call("run", spec, "--out", tmp_path / "s.zarr", capsys=capsys)
    assert code == 0
    import fabricarlo

    found = int(fabricarlo.open(tmp_path / "s.zarr")["/"].allreduce_time_nonfinite.sum())
    assert 8500 < found < 9500
    text = f"allreduce_time: {found:,} of 18,000 samples are not finite"
    assert f"{text}: see allreduce_time_nonfinite" in out


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_a_run_resumably(spec, tmp_path, number, code):
    store = tmp_path / "s.zarr"
    spec.write_text(small.text(samples=200_000_000, keep={"samples": False}))
    command = [sys.executable, "-m", "fabricarlo", "run", str(spec), "--out", str(store)]
    process = subprocess.Popen(
        [*command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line).get("phase") == "computing":
            break
    time.sleep(1)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert "the same command goes on" in err


def test_share_from_slurm(monkeypatch):
    monkeypatch.setitem(os.environ, "SLURM_PROCID", "3")
    monkeypatch.setitem(os.environ, "SLURM_NTASKS", "8")
    assert cli._share(None) == (3, 8)
    assert cli._share("0/2") == (0, 2)


def test_path_of_the_package_runs():
    done = subprocess.run(
        [sys.executable, "-m", "fabricarlo", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("fabricarlo ")
    assert Path(cli.__file__).is_file()
