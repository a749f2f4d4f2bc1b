"""A real Slurm: launch submits, a node dies, the job is requeued, the store has the right bits."""

import os
import sys
import tempfile
import time
from pathlib import Path

import pytest

from fabricarlo import launch
from fabricarlo.manifests import Place
from fabricarlo.spec import load_spec
from fabricarlo.status import status
from tests.engine import slurm, small
from tests.engine.promises import kept

if why := slurm.missing():
    pytest.skip(f"NOT TESTED with a real Slurm: {why}", allow_module_level=True)

NODES = [2, 4] if os.environ.get("FABRICARLO_LONG_TESTS") else [2]


@pytest.fixture(params=NODES)
def cluster(request, monkeypatch):
    # a short path: sockets lie in it
    with tempfile.TemporaryDirectory(
        prefix="fabricarlo-slurm-", ignore_cleanup_errors=True
    ) as folder:
        Path(folder).chmod(0o711)
        with slurm.cluster(Path(folder), request.param) as made:
            for key in ("SLURM_CONF", "PATH"):
                monkeypatch.setenv(key, made.environment[key])
            yield made


@pytest.fixture
def spec(many, tmp_path, monkeypatch, cache):
    path = tmp_path / "many.yaml"
    path.write_text(many)
    # the launched program is fabricarlo, but with blocks small and slow enough to be killed
    program = tmp_path / "python"
    here = Path(__file__).parent / "slow.py"
    seconds = tmp_path / "seconds"
    seconds.write_text("0.1")
    program.write_text(f'#!/bin/bash\nexec {sys.executable} {here} {seconds} "${{@:3}}"\n')
    program.chmod(0o755)
    monkeypatch.setattr("fabricarlo.launch.sys.executable", str(program))
    monkeypatch.setenv("FABRICARLO_TEST_CACHE", cache)
    return path


def submitted(spec, store, nodes, *, array=False):
    job = launch.Job(
        sweep=load_spec(spec),
        spec=spec,
        store=str(store),
        nodes=nodes,
        array=array,
        options=("time=10",),
    )
    return launch.submit(launch.text_for("slurm", job, Place()))


def log_of(spec):
    return "\n".join(p.read_text() for p in spec.parent.glob("*.log"))


def test_a_node_dies_and_the_job_is_requeued(cluster, spec, expected, tmp_path):
    """Promise: bitwise the store of a local run, whatever nodes die."""
    store, seconds = tmp_path / "s.zarr", tmp_path / "seconds"
    # a block: those that survive are not done before the death is noticed
    seconds.write_text(f"{2 * cluster.nodes}")
    job = submitted(spec, store, cluster.nodes)
    cluster.wait_for(job, "RUNNING", seconds=30)
    end = time.monotonic() + 90
    while len(list(store.glob("_run/ledger/*"))) < 2:
        assert time.monotonic() < end, log_of(spec)
        assert cluster.state_of(job) == "RUNNING", log_of(spec)
        time.sleep(0.1)
    shown = status(store)
    assert shown.workers
    assert all(w.share == "elastic" for w in shown.workers)
    assert cluster.kill_node(cluster.nodes) >= 1
    cluster.wait_for(job, "PENDING", seconds=90)
    assert cluster.field_of(job, "Restarts") == "1"
    assert 0 < status(store).blocks_done < 26, log_of(spec)
    seconds.write_text("0.05")
    cluster.begin_node(cluster.nodes)
    time.sleep(1)
    cluster.hurry(job)
    cluster.wait_for(job, "COMPLETED", seconds=120)
    assert small.everything(store) == expected
    kept(
        f"a node of {cluster.nodes} killed under Slurm, the job requeued",
        "bitwise the store of a local run",
        1,
        "test_slurm",
    )


def test_an_array_of_jobs(cluster, spec, expected, tmp_path):
    """Two jobs of one node each claim blocks of one store."""
    store = tmp_path / "s.zarr"
    job = submitted(spec, store, 2, array=True)
    for task in range(2):
        cluster.wait_for(f"{job}_{task}", "COMPLETED", seconds=120)
    assert small.everything(store) == expected
    assert log_of(spec).count("is finished") == 1, log_of(spec)
