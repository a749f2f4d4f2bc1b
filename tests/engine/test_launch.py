"""`launch`: the script is what Slurm and bash take, the manifests what Kubernetes takes."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from fabricarlo import cli
from fabricarlo.errors import FabricarloError, SpecError
from fabricarlo.launch import Job, job_name, sbatch_script, submit, text_for
from fabricarlo.manifests import Place
from tests.engine import small


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "small sweep.yaml"
    path.write_text(small.text())
    return path


def job(spec, store="/shared/s.zarr", *, gpus=0, per_node=False, array=False, sets=(), options=()):
    return Job.of(
        spec, store, 4, gpus, per_node, array=array, overrides=tuple(sets), options=tuple(options)
    )


def settings(script):
    """The options of #SBATCH lines."""
    found = {}
    for line in script.splitlines():
        if line.startswith("#SBATCH --"):
            key, _, value = line.removeprefix("#SBATCH --").partition("=")
            found[key] = value
    return found


def checked(script):
    """bash finds no mistake in it."""
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return script


def command(script):
    """The words after srun's options."""
    text = re.search(r"srun (.*?)\ncode=", script.replace("\\\n", " "), re.DOTALL).group(1)
    return [w for w in shlex.split(text)]


def test_a_job_of_four_nodes(spec):
    script = checked(sbatch_script(job(spec, sets=["samples=500", "description=a b"])))
    found = settings(script)
    assert (found["nodes"], found["ntasks-per-node"]) == ("4", "1")
    assert {"requeue", "exclusive", "signal"} <= found.keys()
    assert "gpus-per-node" not in found
    assert found["output"].startswith("/shared/fabricarlo-small")
    words = command(script)
    assert words[2:5] == [sys.executable, "-m", "fabricarlo"]
    assert words[5:] == [
        "run", str(spec), "--out", "/shared/s.zarr",
        "--set", "samples=500", "--set", "description=a b", "--elastic",
    ]  # fmt: skip


def test_one_process_a_gpu_or_one_a_node(spec):
    each = settings(sbatch_script(job(spec, gpus=8)))
    assert (each["ntasks-per-node"], each["gpus-per-node"], each["gpus-per-task"]) == (
        "8",
        "8",
        "1",
    )
    one = settings(sbatch_script(job(spec, gpus=8, per_node=True)))
    assert (one["ntasks-per-node"], one["gpus-per-node"]) == ("1", "8")
    assert "gpus-per-task" not in one


def test_an_array_is_a_job_for_every_node(spec):
    found = settings(checked(sbatch_script(job(spec, array=True, options=["time=4:00:00"]))))
    assert (found["array"], found["nodes"], found["time"]) == ("0-3", "1", "4:00:00")
    assert found["output"].endswith("%A_%a.log")


def test_when_the_time_runs_out_the_job_goes_back_to_the_queue(spec, tmp_path):
    """And not when it was cancelled, or its input is wrong."""
    script = sbatch_script(job(spec))
    for code, restarts, expected in (("143", "0", True), ("2", "0", False), ("143", "100", False)):
        for name, text in (("srun", f"exit {code}"), ("scontrol", f"echo $@ > {tmp_path}/again")):
            (tmp_path / name).write_text(f"#!/bin/bash\n{text}\n")
            (tmp_path / name).chmod(0o755)
        (tmp_path / "again").unlink(missing_ok=True)
        path = f"{tmp_path}:{os.environ['PATH']}"
        given = {"PATH": path, "SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": restarts}
        done = subprocess.run(
            ["bash"], input=script, text=True, env=os.environ | given, check=False
        )
        assert (tmp_path / "again").exists() == expected
        assert done.returncode == (0 if expected else int(code))


KUBERNETES = pytest.importorskip("kubernetes_validate", reason="pip install fabricarlo[dev]")


def documents(text):
    """Every document, checked against the schemas of Kubernetes itself."""
    found = list(YAML(typ="safe").load_all(text))
    for document in found:
        KUBERNETES.validate(document, "1.30", strict=True)
    return {d["kind"]: d for d in found}


def test_a_job_on_kubernetes(spec):
    text = text_for("kubernetes", job(spec, "s3://bucket/s", gpus=2), Place(image="me/fab:1"))
    found = documents(text)
    assert found["Job"]["spec"]["completions"] == 8
    assert found["Job"]["spec"]["completionMode"] == "Indexed"
    pod = found["Job"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["image"] == "me/fab:1"
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 1}
    command = ["fabricarlo", "run", "/sweep/small sweep.yaml", "--out", "s3://bucket/s"]
    assert container["command"] == [*command, "--elastic"]
    assert found["ConfigMap"]["data"] == {"small sweep.yaml": small.text() + "\n"}


def test_a_tpu_slice(spec):
    place = Place(tpu_accelerator="tpu-v5-lite-podslice", tpu_topology="4x4")
    found = documents(text_for("tpu", job(spec, "s3://bucket/s"), place))
    pod = found["Job"]["spec"]["template"]["spec"]
    assert pod["nodeSelector"]["cloud.google.com/gke-tpu-topology"] == "4x4"
    assert pod["subdomain"] == found["Service"]["metadata"]["name"]
    (container,) = pod["containers"]
    assert container["command"][-2:] == ["--elastic", "--distributed"]
    assert container["resources"]["limits"] == {"google.com/tpu": 4}


def test_a_wrong_manifest_would_be_seen(spec):
    text = text_for("kubernetes", job(spec, "s3://bucket/s"), Place())
    with pytest.raises(KUBERNETES.ValidationError):
        documents(text.replace("completions: 4", "completions: many"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": 0}, "--nodes is 0; it must be at least 1"),
        ({"gpus_per_node": -1}, "--gpus-per-node is -1"),
        ({"options": ("time=1\n#SBATCH --uid=0",)}, "is no option of sbatch"),
    ],
)
def test_what_no_scheduler_takes_is_refused(spec, change, message):
    import dataclasses

    wrong = dataclasses.replace(job(spec), **change)
    with pytest.raises(FabricarloError, match=message):
        text_for("slurm", wrong, Place())


def test_pods_need_an_object_store(spec):
    with pytest.raises(FabricarloError, match="pods share an object store"):
        text_for("kubernetes", job(spec), Place())
    with pytest.raises(FabricarloError, match="there are slurm, kubernetes, tpu"):
        text_for("nomad", job(spec), Place())


def test_a_wrong_spec_is_not_queued(tmp_path):
    (tmp_path / "wrong.yaml").write_text(small.text(samples=0))
    with pytest.raises(SpecError, match="samples"):
        job(tmp_path / "wrong.yaml")


def test_without_slurm_it_says_so(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(FabricarloError, match="there is no sbatch on this machine"):
        submit("#!/bin/bash\n")


GUIDE = Path(__file__).resolve().parents[2] / "docs" / "run_on_a_cluster.md"


def test_the_guide_can_be_followed(tmp_path, monkeypatch, capsys):
    """Its sweep is right, and every `launch` in it is accepted."""
    text = GUIDE.read_text(encoding="utf-8").replace("\\\n", " ")
    sweep = text.partition("<<'END'\n")[2].partition("END\n")[0]
    (tmp_path / "first_look.yaml").write_text(sweep)
    monkeypatch.chdir(tmp_path)
    lines = [line.partition(" | ")[0] for line in text.splitlines()]
    commands = [shlex.split(line) for line in lines if line.startswith("fabricarlo launch")]
    assert len(commands) == 3
    for words in commands:
        monkeypatch.setattr("sys.argv", [*words, "--print"])
        cli.main()
    assert capsys.readouterr().out.count("#SBATCH --partition=gpu") == 1


def test_names_are_what_kubernetes_takes(spec):
    sweep = small.with_(small.sweep(), name="RoCE vs._InfiniBand " + "x" * 80)
    assert re.fullmatch(r"fabricarlo-roce-vs-infiniband-x+", job_name(sweep))
    assert len(job_name(sweep)) <= 52


def test_the_command_prints(spec, capsys, monkeypatch):
    words = ["launch", str(spec), "--out", "s.zarr", "--nodes", "2", "--print"]
    monkeypatch.setattr("sys.argv", ["fabricarlo", *words, "--samples", "64", "--array"])
    cli.main()
    found = settings(checked(capsys.readouterr().out))
    assert found["array"] == "0-1"
