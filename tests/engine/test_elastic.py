"""Several processes on one store, joined late, killed, frozen, with wrong clocks: the same bits."""

import json
import os
import signal
import time

import pytest

from fabricarlo.claims import GROUPS, Claims, group_size
from fabricarlo.compaction import GROUP
from fabricarlo.errors import SpecError, StoreError
from fabricarlo.intervals import Intervals
from fabricarlo.layout import Layout
from fabricarlo.objects import Objects, open_store
from fabricarlo.presence import Presence
from tests.engine import small, victim
from tests.engine.promises import kept

QUICK = {"fabricarlo.presence:LEASE": 2.0, "fabricarlo.presence:BEAT": 0.2}
"""A lease of two seconds instead of a minute."""


def events(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def finishes(path):
    """How often a process wrote the final arrays."""
    return sum(e.get("phase") == "finishing" for e in events(path))


def start(many, tmp_path, cache, *, say, slow=0.1, **more):
    options = {"cache": cache, "block": 2**15, "elastic": True, "slow": slow, "patches": QUICK}
    options |= {"said": str(tmp_path / say), "log": str(tmp_path / f"{say}.log")}
    return victim.start(many, tmp_path / "s.zarr", **(options | more))


def segments(path):
    return list((path / "_run" / "ledger").glob("*"))


def until(condition, process, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        assert process.is_alive()
        time.sleep(0.02)


def test_three_processes_one_of_them_killed_one_late(many, expected, tmp_path, cache):
    """Promise: whoever dies, the others finish the store, once, with the bits of one process."""
    first = start(many, tmp_path, cache, say="a", checkpoint=1)
    second = start(many, tmp_path, cache, say="b", checkpoint=1)
    until(lambda: len(segments(tmp_path / "s.zarr")) >= 2, first)
    second.kill()
    third = start(many, tmp_path, cache, say="c", checkpoint=1)
    for process in (first, second, third):
        process.join()
    assert (first.exitcode, third.exitcode) == (0, 0)
    assert small.everything(tmp_path / "s.zarr") == expected
    assert sum(finishes(tmp_path / name) for name in "ac") == 1
    assert not list((tmp_path / "s.zarr" / "_run" / "claims").rglob("*.json"))
    kept(
        "kill -9 of 1 of 3 processes, and one that joins late",
        "the others finish the store, exactly once",
        1,
        "test_elastic",
    )


def test_a_frozen_process_loses_its_lease_and_may_wake_up(many, expected, tmp_path, cache):
    """Promise: what a frozen process holds is taken over; its late writes are the same bits."""
    frozen = start(many, tmp_path, cache, say="a", checkpoint=2, slow=0.2)
    until(lambda: len(segments(tmp_path / "s.zarr")) >= 1, frozen)
    os.kill(frozen.pid, signal.SIGSTOP)
    try:
        other = start(many, tmp_path, cache, say="b", slow=0.0)
        other.join(90)
        assert other.exitcode == 0
        assert small.everything(tmp_path / "s.zarr") == expected
    finally:
        os.kill(frozen.pid, signal.SIGCONT)
    frozen.join(90)
    assert frozen.exitcode == 0
    assert small.everything(tmp_path / "s.zarr") == expected
    kept(
        "a process frozen beyond its lease, then woken",
        "its blocks are taken over, and its late writes change nothing",
        1,
        "test_elastic",
    )


def test_clocks_that_are_hours_apart(many, expected, tmp_path, cache):
    """Promise: clocks are never compared, so that skew changes neither bits nor liveness."""
    processes = [
        start(many, tmp_path, cache, say=name, skew=skew, slow=0.05)
        for name, skew in (("a", 0.0), ("b", 7200.0), ("c", -86400.0))
    ]
    for process in processes:
        process.join()
    assert [p.exitcode for p in processes] == [0, 0, 0]
    assert small.everything(tmp_path / "s.zarr") == expected
    assert sum(finishes(tmp_path / name) for name in "abc") == 1
    kept("clocks of workers hours apart", "the same bits, finished once", 2, "test_elastic")


def test_fixed_shares_do_not_join_claims(many, tmp_path, cache):
    import fabricarlo

    process = start(many, tmp_path, cache, say="a", slow=0.5)
    until(lambda: list((tmp_path / "s.zarr").glob("_run/processes/*")), process)
    try:
        with pytest.raises(StoreError, match=r"is held by a live process \(share elastic"):
            fabricarlo.run(many, tmp_path / "s.zarr", block=2**15, process=(0, 2))
        more = many.replace("400000", "500000")
        with pytest.raises(StoreError, match=r"for 400,000 samples a cell"):
            fabricarlo.run(more, tmp_path / "s.zarr", block=2**15, elastic=True)
    finally:
        process.kill()
        process.join()
    with pytest.raises(SpecError, match="give one of them"):
        fabricarlo.run(many, tmp_path / "s.zarr", process=(0, 2), elastic=True)


# ---- claims alone


def layout(blocks: int) -> Layout:
    return Layout((1,), (False,), blocks * 2**15, 8, 2**15, 2**15)


def test_groups_are_small_where_blocks_are_few():
    assert group_size(26) == 1
    assert group_size(2 * GROUPS) == 2
    assert group_size(10**6) == GROUP


def claims_of(store, blocks: int) -> Claims:
    objects = Objects(store)
    mine = Presence(objects, None)
    mine.join("test")
    return Claims(objects, layout(blocks), mine)


def test_every_block_is_claimed_once():
    store = open_store(None)
    both = [claims_of(store, 600) for _ in range(2)]
    assert both[0].size == 2
    done = Intervals([(0, 3), (100, 200)])
    found: list[int] = []
    todo = [c.unclaimed(done, ()) for c in both]
    while todo:
        for each in list(todo):
            number = next(each, None)
            found += [] if number is None else [number]
            if number is None:
                todo.remove(each)
    assert sorted(found) == [n for n in range(600) if n not in done]
    for claims in both:
        claims.mine.leave()


def test_what_a_process_left_is_taken_by_the_next_epoch():
    store = open_store(None)
    gone, other = claims_of(store, 4), claims_of(store, 4)
    taken = gone.unclaimed(Intervals(), ())
    number = next(taken)
    assert list(other.abandoned(Intervals([(0, 4)]), ())) == []
    free = set(other.unclaimed(Intervals(), ()))
    assert free == {0, 1, 2, 3} - {number}
    done = Intervals([(n, n + 1) for n in free])
    assert list(other.abandoned(done, ())) == []  # the other one lives
    gone.mine.leave()
    assert list(other.abandoned(done, ())) == [number]
    assert list(claims_of(store, 4).abandoned(done, ())) == []
