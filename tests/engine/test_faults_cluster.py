"""Faults of devices, models, and of people who start the same sweep twice."""

import os
import signal
import time

import jax
import numpy as np
import pytest

import fabricarlo
from fabricarlo.blocks import Worker
from fabricarlo.errors import BlocksFailed, StoreError
from fabricarlo.failed import Failed
from fabricarlo.objects import Objects, open_store
from fabricarlo.status import status
from tests.engine import small, victim
from tests.engine.promises import kept

ONE = small.text(
    samples=130_000,
    axes={"gpus": [8192, 16384]},
    base=[*small.SPEC["base"], "fabric/roce-800g"],
    outputs=small.SPEC["outputs"][:1],
)
"""Eight blocks of 2^15, four a cell."""
OUTPUT = small.SPEC["outputs"][0]
FULL = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 9 bytes."
KILLS = int(os.environ.get("FABRICARLO_KILLS", "5"))


@pytest.fixture(scope="module")
def sound(tmp_path_factory, cache):
    path = tmp_path_factory.mktemp("sound") / "s.zarr"
    victim.finish(ONE, path, cache=cache, block=2**15)
    return small.everything(path)


def failing(monkeypatch, wrong, times):
    """Let some blocks fail so often as devices without memory do."""
    compute, left = Worker.compute, dict.fromkeys(wrong, times)

    def broken(self, block, buffers, names):
        number = self.plan.layout.number(block.chunk, block.part)
        if left.get(number, 0):
            left[number] -= 1
            raise jax.errors.JaxRuntimeError(FULL)
        return compute(self, block, buffers, names)

    monkeypatch.setattr(Worker, "compute", broken)


def test_a_device_out_of_memory_for_a_moment(tmp_path, sound, monkeypatch):
    """Promise: a block that fails once is tried again."""
    failing(monkeypatch, [2, 5], 1)
    fabricarlo.run(ONE, tmp_path / "s.zarr", block=2**15)
    assert small.everything(tmp_path / "s.zarr") == sound
    kept(
        "device out of memory for a moment", "tried again; the same bits", 2, "test_faults_cluster"
    )


def test_a_block_that_does_not_fit_leaves_the_others(tmp_path, sound, monkeypatch):
    """Promise: exit code 3, all other cells have results, and the same command tries again."""
    path = tmp_path / "s.zarr"
    with monkeypatch.context() as broken:
        failing(broken, [5], 2)
        with pytest.raises(
            BlocksFailed, match="1 of 8 blocks failed, the first is block 5: RES"
        ) as info:
            fabricarlo.run(ONE, path, block=2**15)
    assert info.value.exit_code == 3
    assert status(path).failed == {5: FULL}
    tree = fabricarlo.open(path)
    assert tree.attrs["state"] == "finished with failed blocks"
    mean = tree["/"].to_dataset()[f"{OUTPUT}_mean"].values
    assert np.isfinite(mean[0])
    assert np.isnan(mean[1])
    assert np.isfinite(tree["/samples"].to_dataset()[OUTPUT].values[0]).all()
    fabricarlo.run(ONE, path, block=2**15)
    assert small.everything(path) == sound
    assert not Failed(Objects(open_store(path))).all()
    kept(
        "device out of memory, again and again",
        "exit code 3, other cells have results, resumable",
        1,
        "test_faults_cluster",
    )


def test_a_device_that_always_fails_stops_the_run(tmp_path, monkeypatch):
    failing(monkeypatch, range(8), 99)
    with pytest.raises(StoreError, match="3 blocks in a row failed on cpu") as info:
        fabricarlo.run(ONE, tmp_path / "s.zarr", block=2**15)
    assert info.value.exit_code == 1


def test_a_model_that_gives_nan(tmp_path, monkeypatch):
    """Promise: what is not finite is counted, shown, and left out of everything else."""
    split = {"tensor_parallel": {"discrete": {"values": [8, 7], "weights": [1, 1]}}}
    spec = small.text(
        samples=4000,
        axes={"gpus": [8192]},
        base=[*small.SPEC["base"], "fabric/roce-800g"],
        outputs=small.SPEC["outputs"][:1],
        draws=small.SPEC["draws"] | split,
    )
    tree = fabricarlo.run(spec, tmp_path / "s.zarr", block=2**15)
    root, samples = tree["/"].to_dataset(), tree["/samples"].to_dataset()[OUTPUT].values
    bad = int(np.isnan(samples).sum())
    assert 1500 < bad < 2500
    assert int(root[f"{OUTPUT}_nonfinite"].sum()) == bad
    assert int(root[f"{OUTPUT}_count"].sum()) == samples.size - bad
    np.testing.assert_allclose(
        root[f"{OUTPUT}_mean"][0], np.nanmean(samples, dtype=float), rtol=1e-6
    )
    kept("NaN produced by a model", "counted and left out", bad, "test_faults_cluster")


def test_two_launches_of_the_same_spec_at_once(tmp_path, sound, cache):
    """Promise: one has the store, the other is refused in words; the store is whole."""
    for k in range(3):
        path, logs = tmp_path / f"s{k}.zarr", [tmp_path / f"log{k}{n}" for n in range(2)]
        both = [
            victim.start(ONE, path, cache=cache, block=2**15, log=str(log), slow=0.1)
            for log in logs
        ]
        for process in both:
            process.join()
        assert sorted(p.exitcode for p in both) in ([0, 2], [0, 0])  # or one after the other
        for process, log in zip(both, logs, strict=True):
            refused = "held by a live process" in log.read_text() or "just now" in log.read_text()
            assert refused == (process.exitcode == 2)
        assert small.everything(path) == sound
    promise = "one runs, the other is refused in words"
    kept("two launches of the same spec at once", promise, 3, "test_faults_cluster")


def test_killed_again_and_again_beside_others(many, expected, tmp_path, cache):
    """Promise: one process of three is killed at any moment, again and again: nothing is lost."""
    path, rng = tmp_path / "s.zarr", np.random.default_rng(7)
    quick = {"fabricarlo.presence:LEASE": 2.0, "fabricarlo.presence:BEAT": 0.2}

    def begin():
        return victim.start(
            many,
            path,
            cache=cache,
            block=2**15,
            elastic=True,
            slow=0.2,
            checkpoint=2,
            patches=quick,
        )

    workers, killed = [begin() for _ in range(3)], 0
    while killed < KILLS and any(w.is_alive() for w in workers):
        time.sleep(rng.uniform(0.0, 1.0))
        k = int(rng.integers(3))
        killed += workers[k].is_alive()
        workers[k].kill()
        workers[k].join()
        workers[k] = begin()
    for worker in workers:
        worker.join()
    assert small.everything(path) == expected
    kept(
        "kill -9 of 1 of 3 processes, again and again",
        "0 lost, 0 differing",
        killed,
        "test_faults_cluster",
    )


def test_a_run_may_go_on_with_other_devices(tmp_path, sound, monkeypatch):
    """Promise: begun on two devices, ended on one: the same bits."""
    compute, count = Worker.compute, []

    def stopping(self, block, buffers, names):
        count.append(len(self.engine.devices))
        if len(count) == 3:
            self.interrupt.ask(signal.SIGTERM)
        return compute(self, block, buffers, names)

    monkeypatch.setattr(Worker, "compute", stopping)
    devices = jax.local_devices()
    with pytest.raises(fabricarlo.interrupt.Interrupted):
        fabricarlo.run(ONE, tmp_path / "s.zarr", block=2**15, devices=devices[:2])
    fabricarlo.run(ONE, tmp_path / "s.zarr", block=2**15, devices=devices[:1])
    assert set(count) == {1, 2}
    assert small.everything(tmp_path / "s.zarr") == sound
    kept("another number of devices after a stop", "the same bits", 1, "test_faults_cluster")
