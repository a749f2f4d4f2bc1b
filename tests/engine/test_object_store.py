"""Object stores keep the promises of a directory, also while they fail."""

import threading
from datetime import timedelta

import numpy as np
import pytest
import xarray as xr

import fabricarlo
from fabricarlo import objects as objects_module
from fabricarlo.errors import StoreError
from fabricarlo.objects import Objects, open_store
from fabricarlo.status import status
from fabricarlo.verify import verify
from tests.engine import small, victim
from tests.engine.promises import kept

pytest.importorskip("obstore", reason="pip install fabricarlo[s3]")
pytest.importorskip("moto.server", reason="pip install fabricarlo[dev]")
from tests.engine import s3

STALL = small.SPEC["outputs"][1]
SPEC = small.text(
    samples=130_000,
    axes={"gpus": [8192]},
    base=[*small.SPEC["base"], "fabric/roce-800g"],
    outputs=[STALL],
)
"""Four blocks of 2^15, and as few final arrays as there can be."""


@pytest.fixture(scope="module")
def proxy():
    with s3.serving() as serving:
        yield serving


@pytest.fixture(autouse=True)
def _sound(proxy):
    yield
    proxy.fault = lambda *_: None


@pytest.fixture(scope="module")
def local(tmp_path_factory, cache):
    path = tmp_path_factory.mktemp("local") / "s.zarr"
    victim.finish(SPEC, path, cache=cache, block=2**15)
    return small.everything(path)


@pytest.fixture
def url(request):
    return f"s3://{s3.BUCKET}/{request.node.name.replace('[', '-').replace(']', '')}"


def everything(url):
    """As small.everything, of an object store."""
    target, found = open_store(url), {}
    for group in ("", "samples", "histograms"):
        data = xr.open_zarr(target, group=group or None)
        found[group] = dict(data.attrs)
        for name, variable in data.variables.items():
            values = variable.values
            bits = values.tolist() if values.dtype.kind in "TUO" else values.tobytes()
            found[f"{group}/{name}"] = (variable.dims, values.shape, dict(variable.attrs), bits)
    return found


def run(url, proxy, cache, *, text=SPEC, **more):
    options = {"cache": cache, "block": 2**15, "environment": s3.environment(proxy.url)}
    return victim.start(text, url, **(options | more))


def test_objects_are_those_of_a_directory(proxy, url, tmp_path):
    """Every operation of ours gives the same in a directory, in memory and in S3."""
    answers = []
    for store in (open_store(url), open_store(tmp_path / "s"), open_store(None)):
        mine = Objects(store)
        found = [mine.get("_run/x"), mine.is_empty(), mine.keys("_run/"), mine.sizes(["a/b"])]
        found += [mine.put_if_absent("_run/x", b"one"), mine.put_if_absent("_run/x", b"two")]
        mine.put("_run/ledger/y", b"0123456789")
        found += [mine.get("_run/x"), mine.get_range("_run/ledger/y", 2, 5), mine.keys("_run/")]
        found += [mine.get_range("_run/x", 1, 99), mine.get_range("none", 0, 5)]
        found += [mine.get_all(["_run/x", "none"], 2), mine.sizes(["_run/ledger/y", "none"])]
        mine.clear("_run/ledger")
        mine.delete("none")
        found += [mine.keys(""), mine.is_empty()]
        mine.clear("")
        answers.append([*found, mine.keys("")])
    assert answers[0] == answers[1] == answers[2]
    assert answers[0][4:6] == [True, False]


def test_a_store_in_s3_is_the_store_in_a_directory(proxy, url, local, cache):
    """Promise: bits, resume, extension, verify and status are those of a directory."""
    process = run(url, proxy, cache, checkpoint=1, slow=0.3)
    while process.is_alive() and len(Objects(open_store(url)).keys("_run/ledger/")) < 1:
        process.join(0.05)
    process.kill()
    process.join()
    assert 0 < status(url).blocks_done < 4
    victim_after = run(url, proxy, cache)
    victim_after.join()
    assert victim_after.exitcode == 0
    assert everything(url) == local
    tree = fabricarlo.open(url)
    assert np.isfinite(tree["/samples"][STALL]).all()
    assert verify(url, blocks=0).passed
    key = f"samples/{STALL}/c/0/2"
    mine = Objects(open_store(url))
    data = bytearray(mine.get(key))
    data[100] ^= 1
    mine.put(key, bytes(data))
    assert len(verify(url, blocks=0).damaged_blocks) == 1
    again = run(url, proxy, cache)
    again.join()
    assert verify(url, blocks=0).passed
    assert everything(url) == local


def test_two_processes_claim_in_s3(proxy, url, local, cache):
    both = [run(url, proxy, cache, elastic=True, slow=0.1) for _ in range(2)]
    for process in both:
        process.join()
    assert [p.exitcode for p in both] == [0, 0]
    assert everything(url) == local


def test_one_of_many_gets_what_is_absent(proxy, url):
    """Create-if-absent is atomic in S3 too: of eight threads one wins."""
    won, start = [], threading.Barrier(8)

    def claim(k):
        mine = Objects(open_store(url))
        start.wait()
        if mine.put_if_absent("_run/claims/1/0.1.json", b"%d" % k):
            won.append(k)

    threads = [threading.Thread(target=claim, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1


FAULTS = {
    500: "answers 500",
    503: "answers 503",
    "drop": "connections dropped",
    "lose": "answers lost",
    ("sleep", 0.3): "slow answers",
}


def test_a_store_that_fails_now_and_then(proxy, url, local, cache):
    """Promise: errors that pass are asked again, lost answers included; nothing is lost."""
    proxy.done.clear()
    kinds = list(FAULTS)
    # one request of five fails, and its repetition is another request
    proxy.fault = lambda n, *_: kinds[n // 5 % len(kinds)] if n % 5 == 2 else None
    process = run(url, proxy, cache, elastic=True)
    process.join()
    proxy.fault = lambda *_: None
    assert process.exitcode == 0
    assert all(proxy.done[kind] > 3 for kind in kinds), proxy.done
    assert everything(url) == local
    for kind, name in FAULTS.items():
        promise = "asked again; the same bits"
        kept(f"object store: {name}", promise, proxy.done[kind], "test_object_store")


def test_a_store_that_hangs_is_given_up_and_goes_on_later(proxy, url, local, cache, tmp_path):
    """Promise: time-outs without end are a clear error, exit code 1, and resumable."""
    log = tmp_path / "log"
    proxy.fault = lambda _, method, path: (
        ("sleep", 5.0) if method == "PUT" and "/samples/" in path and "/c/" in path else None
    )
    quick = {
        "fabricarlo.objects:CLIENT": {"timeout": "1s", "connect_timeout": "1s"},
        "fabricarlo.objects:RETRY": {"max_retries": 1, "retry_timeout": timedelta(seconds=3)},
    }
    process = run(url, proxy, cache, patches=quick, log=str(log))
    process.join()
    proxy.fault = lambda *_: None
    assert process.exitcode == 1
    assert "could not be written: Generic S3 error" in log.read_text()
    assert "wait until the store answers, then run the same command again" in log.read_text()
    again = run(url, proxy, cache)
    again.join()
    assert again.exitcode == 0
    assert everything(url) == local
    kept("object store: time-outs without end", "exit code 1, resumable", 1, "test_object_store")


def test_a_url_that_cannot_be_used():
    with pytest.raises(StoreError, match=r"cannot be used: .* Write s3://BUCKET/NAME"):
        open_store("nonsense://bucket/x")


def test_without_obstore_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "obstore.store", None)
    with pytest.raises(StoreError, match=r"pip install 'fabricarlo\[s3\]'"):
        objects_module.open_store("s3://bucket/x")
