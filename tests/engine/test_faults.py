"""Crashes, full disks, signals, damage, and other people's stores: nothing finished is lost."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

import fabricarlo
from fabricarlo.errors import StoreError
from fabricarlo.interrupt import Interrupt, Interrupted
from tests.engine import small, victim
from tests.engine.conftest import MANY
from tests.engine.promises import kept

KILLS = int(os.environ.get("FABRICARLO_KILLS", "20"))


def test_kill_at_random_moments(whole, tmp_path, cache):
    """Killed at any moment, again and again: bitwise the store of a run left alone."""
    path, rng = tmp_path / "killed.zarr", np.random.default_rng(20261130)
    for moment in rng.uniform(0.1, whole[1] + 0.3, KILLS):
        process = victim.start(MANY, path, cache=cache, block=2**15)
        process.join(moment)
        process.kill()
        process.join()
    victim.finish(MANY, path, cache=cache, block=2**15)
    assert small.everything(path) == small.everything(whole[0])
    kept("kill -9 at a random moment of a run", "0 lost, 0 differing", KILLS, "test_faults")


def test_finished_blocks_are_not_computed_again(whole, tmp_path, monkeypatch):
    """Stopped halfway, a run goes on where it stopped."""
    from fabricarlo.blocks import Worker

    path, computed, compute = tmp_path / "s.zarr", [], Worker.compute

    def stopping(self, block, buffers, names):
        computed.append(13 * block.chunk + block.part)
        if len(computed) == 10:
            self.interrupt.ask(signal.SIGTERM)
        return compute(self, block, buffers, names)

    monkeypatch.setattr(Worker, "compute", stopping)
    with pytest.raises(Interrupted):
        fabricarlo.run(MANY, path, block=2**15)
    fabricarlo.run(MANY, path, block=2**15)
    assert sorted(computed) == list(range(26))
    assert small.everything(path) == small.everything(whole[0])


def test_sigterm_writes_the_ledger_and_says_so(whole, tmp_path, cache):
    path = tmp_path / "s.zarr"
    process = victim.start(MANY, path, cache=cache, block=2**15, checkpoint=1)
    while process.is_alive() and not list(path.glob("_run/ledger/*")):
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGTERM)
    process.join()
    assert process.exitcode in (0, 128 + signal.SIGTERM)  # 0: it was done within the grace
    fabricarlo.run(MANY, path, block=2**15)
    assert small.everything(path) == small.everything(whole[0])
    kept("SIGTERM in the middle of a run", "recorded, resumable", 1, "test_faults")


def test_a_second_signal_leaves_at_once():
    code = (
        "import signal; from fabricarlo.interrupt import Interrupt\n"
        "with Interrupt().listening():\n"
        "  signal.raise_signal(signal.SIGINT); signal.raise_signal(signal.SIGINT)\n"
        "  raise SystemExit(0)"
    )
    import sys

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 130


def test_grace_runs_out(monkeypatch):
    interrupt = Interrupt()
    assert not interrupt.overdue
    interrupt.ask(signal.SIGINT)
    assert interrupt.asked
    assert not interrupt.overdue
    monkeypatch.setattr("fabricarlo.interrupt.GRACE", -1.0)
    assert interrupt.overdue


# ---- the disk


def test_full_disk(whole, tmp_path, cache):
    """A small file system fills up: exit code 1, and with more room the same command goes on."""
    mount = tmp_path / "small"
    mount.mkdir()
    asked = ["mount", "-t", "tmpfs", "-o", "size=25m", "tmpfs", str(mount)]
    if subprocess.run(asked, check=False, capture_output=True).returncode:
        pytest.skip("this user may not mount a file system")
    try:
        path, log = mount / "s.zarr", tmp_path / "log"
        process = victim.start(MANY, path, cache=cache, block=2**15, log=str(log))
        while process.is_alive() and not list(path.glob("samples/*/c")):
            time.sleep(0.001)
        # the room was there when the run asked; now somebody else takes it
        (mount / "other").write_bytes(b"0" * 20_000_000)
        process.join()
        assert process.exitcode == 1
        assert "No space left on device" in log.read_text()
        assert "run the same command again" in log.read_text()
        subprocess.run(["mount", "-o", "remount,size=200m", str(mount)], check=True)
        fabricarlo.run(MANY, path, block=2**15)
        assert small.everything(path) == small.everything(whole[0])
        kept("disk full", "exit code 1, resumable", 1, "test_faults")
    finally:
        subprocess.run(["umount", str(mount)], check=True)


def test_a_file_that_may_not_grow(tmp_path, cache):
    """Any refusal of the operating system is explained, and resumable."""
    log = tmp_path / "log"
    process = victim.start(
        MANY, tmp_path / "s.zarr", cache=cache, block=2**15, file_size=100_000, log=str(log)
    )
    process.join()
    assert process.exitcode == 1
    assert "File too large" in log.read_text()
    kept("a write that the system refuses", "exit code 1, resumable", 1, "test_faults")


def test_no_permission_to_write(whole, tmp_path):
    """A disk that became read-only: nothing is lost, and the same command goes on later."""
    mount = tmp_path / "closed"
    mount.mkdir()
    asked = ["mount", "-t", "tmpfs", "-o", "size=200m", "tmpfs", str(mount)]
    if subprocess.run(asked, check=False, capture_output=True).returncode:
        pytest.skip("this user may not mount a file system")
    try:
        path = mount / "s.zarr"
        shutil.copytree(whole[0], path)
        next(p for p in _chunks(path)).unlink()
        subprocess.run(["mount", "-o", "remount,ro", str(mount)], check=True)
        with pytest.raises(StoreError, match="could not be written: Read-only file system") as info:
            fabricarlo.run(MANY, path, block=2**15)
        assert info.value.resumable
        subprocess.run(["mount", "-o", "remount,rw", str(mount)], check=True)
        fabricarlo.run(MANY, path, block=2**15)
        assert small.everything(path) == small.everything(whole[0])
        promise = "a clear error, resumable"
        kept("file system remounted read-only", promise, 1, "test_faults")
    finally:
        subprocess.run(["umount", str(mount)], check=True)


# ---- damage


def _chunks(path: Path) -> list[Path]:
    return sorted(p for p in (path / "samples").rglob("c/*/*") if p.is_file())


@pytest.mark.parametrize("harm", ["delete", "truncate"])
def test_a_damaged_chunk_is_computed_again(copy, whole, harm):
    for victim_file in _chunks(copy)[3:9:2]:
        if harm == "delete":
            victim_file.unlink()
        else:
            victim_file.write_bytes(victim_file.read_bytes()[:1000])
    fabricarlo.run(MANY, copy, block=2**15)
    assert small.everything(copy) == small.everything(whole[0])
    kept("chunks deleted or truncated", "computed again by the next run", 3, "test_faults")


def test_damaged_final_arrays_are_written_again(copy, whole):
    next((copy / "allreduce_time_mean" / "c").rglob("*")).unlink()
    fabricarlo.run(MANY, copy, block=2**15)
    assert small.everything(copy) == small.everything(whole[0])


def test_a_damaged_ledger_costs_only_time(copy, whole):
    for segment in (copy / "_run" / "ledger").iterdir():
        segment.write_bytes(segment.read_bytes()[:-100])
    fabricarlo.run(MANY, copy, block=2**15)
    assert small.everything(copy) == small.everything(whole[0])
    kept("ledger truncated", "its blocks are computed again", 1, "test_faults")


# ---- whose store it is


def test_the_same_spec_is_a_no_op(copy):
    before = {p: p.stat().st_mtime_ns for p in copy.rglob("*") if p.is_file()}
    fabricarlo.run(MANY, copy, block=2**15)
    assert {p: p.stat().st_mtime_ns for p in copy.rglob("*") if p.is_file()} == before


def test_more_samples_extend_a_finished_store(copy, tmp_path):
    more = MANY.replace("400000", "500000")
    fabricarlo.run(more, copy, block=2**15)
    fabricarlo.run(more, tmp_path / "fresh.zarr", block=2**15)
    assert small.everything(copy) == small.everything(tmp_path / "fresh.zarr")


def test_cells_shorter_than_a_block_grow_too(tmp_path):
    for name, counts in (("grown", (3000, 50_000)), ("fresh", (50_000,))):
        for samples in counts:
            fabricarlo.run(small.text(samples=samples), tmp_path / name, block=2**15)
    assert small.everything(tmp_path / "grown") == small.everything(tmp_path / "fresh")


def test_fewer_samples_are_refused(copy):
    with pytest.raises(StoreError, match="holds 400,000 samples per cell, this run asks for 1,000"):
        fabricarlo.run(MANY.replace("400000", "1000"), copy)


def test_another_plan_is_refused_and_overwrite_is_explicit(copy):
    other = small.text(seed=8, samples=1000)
    with pytest.raises(
        StoreError, match=r"was written by plan .* Choose another --out, or give --overwrite"
    ):
        fabricarlo.run(other, copy)
    tree = fabricarlo.run(other, copy, overwrite=True)
    assert tree["/samples"].sizes["sample"] == 1000


def test_description_and_comments_are_not_the_plan(copy):
    fabricarlo.run(MANY.replace("{", "{\n # a comment\n", 1), copy, block=2**15)


def test_another_kind_of_device_is_refused(copy, monkeypatch):
    monkeypatch.setattr("fabricarlo.engine.Engine.probe", lambda _: "other bits")
    with pytest.raises(StoreError, match="the same inputs give other last bits"):
        fabricarlo.run(MANY.replace("400000", "500000"), copy)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_live_process_keeps_its_store(tmp_path, cache, overwrite):
    path = tmp_path / "s.zarr"
    long = MANY.replace("400000", "40000000").replace('"samples": true', '"samples": false')
    process = victim.start(long, path, cache=cache, block=2**15)
    try:
        while not list(path.glob("_run/processes/*")):
            time.sleep(0.01)
        with pytest.raises(StoreError, match=r"is held by (a live )?process"):
            fabricarlo.run(long, path, overwrite=overwrite)
        assert process.is_alive()
    finally:
        process.kill()
        process.join()


def test_a_process_of_another_machine_is_watched_until_it_stands_still(tmp_path, monkeypatch):
    import json

    path = tmp_path / "s.zarr"
    record = path / "_run" / "processes" / "0of1.1.json"
    record.parent.mkdir(parents=True)
    far = {
        "share": [0, 1],
        "token": "x",
        "beat": 1,
        "pid": 1,
        "host": "far",
        "machine": "far",
        "started": "1",
    }
    record.write_text(json.dumps(far))
    monkeypatch.setattr("fabricarlo.presence.PATIENCE", 0.5)
    fabricarlo.run(small.text(samples=1000), path)  # it stands still: taken over


def test_a_path_that_is_a_file_or_foreign(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StoreError, match="is a file; a store is a directory"):
        fabricarlo.run(small.text(), tmp_path / "file")
    with pytest.raises(StoreError, match="is not empty and holds no fabricarlo store"):
        fabricarlo.run(small.text(), tmp_path)
    assert (tmp_path / "file").read_text() == "mine"
