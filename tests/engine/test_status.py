"""`status`: progress, rates, who works on what, failed blocks; read without JAX."""

import json
import subprocess
import sys
import time

import pytest
from rich.console import Console

from fabricarlo.errors import StoreError
from fabricarlo.failed import Failed
from fabricarlo.layout import Block
from fabricarlo.objects import Objects, open_store
from fabricarlo.status import print_status, status
from tests.engine import victim


def test_a_finished_store(whole, capsys):
    found = status(whole[0])
    assert (found.sweep, found.state) == ("small", "finished")
    assert (found.blocks, found.blocks_done) == (26, 26)
    assert found.samples == found.samples_done == 800_000
    assert (found.workers, found.failed, found.seconds_left) == ((), {}, None)
    print_status(whole[0], as_json=False)
    out = capsys.readouterr().out
    assert "100.0% of 800,000 samples, 26 of 26 blocks" in out
    print_status(whole[0], as_json=True)
    assert json.loads(capsys.readouterr().out)["state"] == "finished"


@pytest.mark.parametrize("elastic", [True, False])
def test_who_works_on_what(many, tmp_path, cache, elastic, capsys):
    path = tmp_path / "s.zarr"
    share = {"elastic": True} if elastic else {"process": (1, 2)}
    patches = {"fabricarlo.presence:BEAT": 0.1}
    process = victim.start(
        many, path, cache=cache, block=2**15, slow=0.5, checkpoint=1, patches=patches, **share
    )
    try:
        end = time.monotonic() + 60
        while time.monotonic() < end and not list(path.glob("_run/ledger/*")):
            time.sleep(0.05)
        time.sleep(0.3)
        found = status(path)
        (worker,) = found.workers
        assert worker.share == ("elastic" if elastic else "1/2")
        assert worker.state == "at work"
        assert worker.pid == process.pid
        assert worker.samples > 0
        assert 0 < found.rate == worker.rate
        assert found.seconds_left > 0
        assert 0 < found.blocks_done < 26
        if not elastic:
            assert worker.blocks.endswith("-25")
        print_status(path, as_json=False)
        assert "at work" in capsys.readouterr().out
    finally:
        process.kill()
        process.join()
    (worker,) = status(path).workers
    assert worker.state == "dead"
    assert status(path).rate == 0


def test_a_silent_process_of_another_machine(copy):
    record = {"share": None, "token": "t", "beat": 5, "pid": 1, "host": "far", "machine": "far"}
    there = copy / "_run" / "processes" / "elastic-t.1.json"
    there.parent.mkdir(exist_ok=True)
    there.write_text(json.dumps(record | {"started": "1", "done": 10, "seconds": 2}))
    (worker,) = status(copy, watch=0.01).workers
    assert (worker.host, worker.state, worker.rate) == ("far", "silent", 5.0)


def test_failed_blocks_and_damage(copy, capsys, monkeypatch):
    for segment in (copy / "_run" / "ledger").iterdir():
        segment.write_bytes(segment.read_bytes()[:100])
    block = Block(0, 3, (), None, 0, 1)
    Failed(Objects(open_store(copy))).record(block, "RESOURCE_EXHAUSTED: no memory")
    monkeypatch.setattr("fabricarlo.status.Console", lambda **_: Console(width=200))
    print_status(copy, as_json=False)
    out = capsys.readouterr().out
    assert "block 3 failed: RESOURCE_EXHAUSTED: no memory" in out
    assert "1 segments of the ledger are damaged" in out


def test_what_is_no_store(tmp_path):
    with pytest.raises(StoreError, match="there is no such directory"):
        status(tmp_path / "no")
    with pytest.raises(StoreError, match="is no fabricarlo store, or is only just begun"):
        status(tmp_path)


def test_it_needs_no_jax():
    code = "import sys, fabricarlo.status; print(*{'jax', 'fabric_kernels'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
