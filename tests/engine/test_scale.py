"""Plans of 10^6 cells and 10^12 samples are planned, listed and resumed in little room."""

import itertools
import os
import subprocess
import sys
import time
import tracemalloc

import numpy as np
import pytest

import fabricarlo
from fabricarlo.compaction import GROUP, windows
from fabricarlo.index import Index
from fabricarlo.interrupt import Interrupted
from fabricarlo.intervals import Intervals
from fabricarlo.layout import Layout
from fabricarlo.ledger import MANY, PREFIX, Ledger
from fabricarlo.objects import Objects, open_store
from fabricarlo.plan import Plan
from fabricarlo.results import slabs
from fabricarlo.segment import Entry, Written, checks_of
from fabricarlo.status import status
from fabricarlo.store import SweepStore
from tests.engine import ledgers, small, victim
from tests.engine.promises import kept

BASE = [*small.SPEC["base"], "fabric/roce-800g"]
HUGE = small.text(
    samples=10**12, axes={"gpus": [8192]}, base=BASE, keep={"samples": False}, draws={}
)
"""One cell of 10^12 samples."""
MANY_CELLS = small.text(
    samples=10**6,
    axes={
        "gpus": [64 * k for k in range(1, 1001)],
        "nvlink_latency": [1e-9 * k for k in range(1, 1001)],
    },
    base=BASE,
    keep={"samples": False},
    draws={},
)
"""10^6 cells of 10^6 samples: 10^12 samples as well."""


# ---- sets of blocks


def test_intervals_are_the_set_that_they_stand_for():
    rng = np.random.default_rng(3)
    for _ in range(200):
        starts = rng.integers(0, 60, rng.integers(0, 8))
        ranges = [(int(a), int(a + rng.integers(1, 10))) for a in starts]
        found, truth = Intervals(ranges), {n for a, b in ranges for n in range(a, b)}
        assert len(found) == len(truth)
        assert [n for n in range(-2, 80) if n in found] == sorted(truth)
        low, high = sorted(int(n) for n in rng.integers(0, 80, 2))
        gaps = [n for a, b in found.missing(low, high) for n in range(a, b)]
        assert gaps == [n for n in range(low, high) if n not in truth]
        ends = list(found)
        assert all(b < c for (_, b), (c, _) in itertools.pairwise(ends))


@pytest.mark.parametrize("shape", [(), (7,), (3, 5), (4, 1, 6)])
@pytest.mark.parametrize("room", [1, 4, 8, 1000])
def test_slabs_cover_every_cell_once(shape, room):
    extents, boxes = slabs(shape, room)
    cells = [(region, c) for region, found in boxes for c in found]
    assert sorted(int(c) for _, c in cells) == list(range(int(np.prod(shape))))
    assert np.prod(extents) <= room
    for region, cell in cells:
        where = np.unravel_index(cell, shape) if shape else ()
        assert all(s.start <= k < s.stop for s, k in zip(region, where, strict=True))


# ---- the ledger of a long run


def layout(blocks, cells=1):
    return Layout((cells,), (False,), blocks * 2**15, 8, 2**15, 2**15)


def entry(start, stop, *, chunk=0, short=0, parts=()):
    return Entry(chunk, start, stop, short, parts)


def written(start, stop):
    blocks = [Written(0, k, (k + 1) * 2**15, {}, {}, k) for k in range(start, stop)]
    return checks_of(blocks, ())


def test_blocks_that_two_processes_recorded_count_once():
    ledger = Ledger(Objects(open_store(None)))
    for who, start, stop in (("a", 0, 64), ("b", 32, 64), ("c", 60, 70), ("d", 70, 80)):
        ledger.append(who, [entry(start, stop)], written(start, stop))
    index = Index(ledger.segments(), layout(100))
    assert list(index.done) == [(0, 64), (70, 80)]  # 64 to 69 are computed again
    found = np.concatenate([c.blocks[:, 1] for _, c in index.checks()])
    assert sorted(found) == [*range(64), *range(70, 80)]


def test_the_short_end_of_a_shorter_run_does_not_count():
    ledger = Ledger(Objects(open_store(None)))
    ledger.append("a", [entry(0, 3), entry(3, 4, short=3 * 2**15 + 7)], written(0, 4))
    assert list(Index(ledger.segments(), layout(10)).done) == [(0, 3)]
    shorter = Layout((1,), (False,), 3 * 2**15 + 7, 8, 2**15, 2**15)
    assert list(Index(ledger.segments(), shorter).done) == [(0, 4)]


def test_many_small_segments_become_few():
    """A run of 4,096 blocks leaves a handful of objects, and of summaries."""
    from fabricarlo.summaries.wire import to_bytes

    part = to_bytes(_part(0))
    ledger = Ledger(Objects(open_store(None)))
    for start in range(0, 4096, 32):
        data = part if start == 0 else to_bytes(_part(start))
        ledger.append(
            "a", [entry(start, start + 32, parts=[(0, data)])], written(start, start + 32)
        )
        ledger.tidy("a")
    keys = ledger.objects.keys(PREFIX)
    assert len(keys) <= MANY + 1
    index = Index(ledger.segments(), layout(4096))
    assert list(index.done) == [(0, 4096)]
    summaries = sum(len(s.summaries) for s in index.segments)
    assert summaries <= 16 + 16 + 2
    whole = index.part(0)
    assert whole.count.sum() == 4096 // 32
    assert whole.blocks == [(k, k + 1) for k in range(0, 4096, 32)]


def _part(block):
    """The summary of one sample, as that of block `block`."""
    from fabricarlo.summaries.packed import packed_parts

    values = np.full((1, 1), float(block + 1), np.float32)
    parts = packed_parts({"q": values}, {}, np.zeros(1, np.int64), np.zeros(1, np.int64), 1, 1)
    import dataclasses

    moments = next(iter(parts[0].nodes.values()))
    return dataclasses.replace(parts[0], nodes={(0, block): moments})


def test_windows_are_nested_or_apart():
    """What is merged fills aligned windows, so that two processes never half overlap."""
    ledger = Ledger(Objects(open_store(None)))
    spans = [
        (0, 64),
        (64, 100),
        (100, 128),
        (128, 192),
        *((k, k + 64) for k in range(192, 1024, 64)),
    ]
    ledger.append("a", [entry(a, b) for a, b in spans], written(0, 1024))
    (segment,) = ledger.segments()
    rows = [(segment, row) for row in segment.entries]
    found = [(int(g[0][1][1]), int(g[-1][1][2])) for g in windows(rows)]
    assert found == [(0, 1024)]
    without = [r for r in rows if r[1][1] != 100]
    found = [(int(g[0][1][1]), int(g[-1][1][2])) for g in windows(without)]
    assert len(found) == len(without)
    assert all(a // GROUP == (b - 1) // GROUP for a, b in found)


# ---- plans


@pytest.mark.parametrize("text", [HUGE, MANY_CELLS])
def test_a_huge_plan_is_made_in_little_room(text):
    sweep = fabricarlo.load_spec(text)
    tracemalloc.start()
    plan = Plan(sweep, block=2**20)
    assert plan.layout.cell_count * plan.layout.samples == 10**12
    assert plan.layout.block_count >= 950_000
    last = plan.layout.at(plan.layout.block_count - 1)
    assert last.stop == plan.layout.samples
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6


@pytest.mark.parametrize("text", [HUGE, MANY_CELLS])
def test_a_store_of_a_million_blocks_goes_on_at_once(text, tmp_path, monkeypatch):
    """Promise: resuming reads which blocks are done, not their summaries."""
    sweep = fabricarlo.load_spec(text)
    plan = Plan(sweep, block=2**20)
    path = tmp_path / "s.zarr"
    store, done = SweepStore(path), 900_000
    facts = {"device": "cpu", "versions": "v", "probe": "p", "overrides": []}
    store.create(plan, facts)
    ledgers.pretend(store.ledger, plan, done)
    monkeypatch.setattr("fabricarlo.engine.Engine.probe", lambda _: "p")
    computed = []

    def stop(self, block, buffers, names):
        computed.append((time.monotonic() - begin, plan.layout.number(block.chunk, block.part)))
        raise Interrupted(15)

    monkeypatch.setattr("fabricarlo.blocks.Worker.compute", stop)
    tracemalloc.start()
    begin = time.monotonic()
    with pytest.raises(Interrupted):
        fabricarlo.run(sweep, path, elastic=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(computed) == 1
    assert computed[0][1] >= done
    assert peak < 300e6
    found = status(path)
    assert (found.blocks_done, found.blocks) == (done, plan.layout.block_count)
    print(f"first block after {computed[0][0]:.2f} s, at most {peak / 1e6:.0f} MB")


def test_finishing_many_cells_holds_few_of_them(tmp_path, cache):
    """The results of 2,000 cells are those of any smaller slab, bit for bit."""
    text = small.text(
        samples=64,
        axes={"gpus": [64 * k for k in range(1, 501)], "nvlink_latency": [1e-9, 2e-9, 3e-9, 4e-9]},
        base=BASE,
        outputs=small.SPEC["outputs"][:1],
        keep={"samples": False},
    )
    for name, slab in (("one", 10_000), ("few", 96)):
        patches = {"fabricarlo.results:SLAB": slab, "fabricarlo.results:CHUNK": slab * 2**9}
        victim.finish(text, tmp_path / name, cache=cache, block=2**15, patches=patches)
    assert small.everything(tmp_path / "few") == small.everything(tmp_path / "one")


def test_short_cells_grow_with_several_processes(tmp_path, cache):
    """Promise: a store is laid out anew by one process while the others wait for it."""
    few, more = (small.text(samples=n, axes={"gpus": [8192]}, base=BASE) for n in (3000, 70_000))
    victim.finish(few, tmp_path / "grown", cache=cache, block=2**15)
    both = [
        victim.start(more, tmp_path / "grown", cache=cache, block=2**15, process=(k, 2))
        for k in range(2)
    ]
    for process in both:
        process.join()
    assert [p.exitcode for p in both] == [0, 0]
    victim.finish(more, tmp_path / "fresh", cache=cache, block=2**15)
    assert small.everything(tmp_path / "grown") == small.everything(tmp_path / "fresh")


# ---- devices of several hosts


def test_two_processes_joined_by_jax_distributed(tmp_path):
    """They share the blocks by their numbers, on the devices that each has to itself."""
    from tests.engine.slurm import free_ports

    spec, store = tmp_path / "s.yaml", tmp_path / "s.zarr"
    spec.write_text(small.text(samples=70_000, axes={"gpus": [8192]}, base=BASE))
    command = [sys.executable, "-m", "fabricarlo", "run", str(spec), "--out", str(store)]
    command += ["--block", str(2**15), "--distributed"]
    (port,) = free_ports(1)
    shared = {"JAX_COORDINATOR_ADDRESS": f"127.0.0.1:{port}", "JAX_NUM_PROCESSES": "2"}
    both = [
        subprocess.Popen(
            command,
            env=os.environ | shared | {"JAX_PROCESS_ID": str(k)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for k in range(2)
    ]
    said = [process.communicate(timeout=180) for process in both]
    assert [p.returncode for p in both] == [0, 0], said
    fabricarlo.run(spec, tmp_path / "alone.zarr", block=2**15)
    assert small.everything(store) == small.everything(tmp_path / "alone.zarr")


@pytest.mark.skipif(not os.environ.get("FABRICARLO_LONG_TESTS"), reason="takes minutes")
def test_a_billion_samples_in_flat_memory():
    from bench.memory import peak

    assert peak(10**9) < 1.1 * peak(10**6)
    kept("10^9 samples in one run", "memory stays flat", 1, "test_scale")
