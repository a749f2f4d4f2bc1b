"""`verify` names what is damaged, however it was damaged, and the next run repairs exactly that."""

import json

import numpy as np
import pytest

import fabricarlo
from fabricarlo.blocks import Worker
from fabricarlo.errors import SpecError, StoreError
from fabricarlo.verify import Findings, verify
from tests.engine import small, victim
from tests.engine.promises import kept

STALL = small.SPEC["outputs"][1]
SPEC = small.text(
    samples=70_000,
    axes={"gpus": [8192, 16384]},
    base=[*small.SPEC["base"], "fabric/roce-800g"],
    outputs=small.SPEC["outputs"][:2],
)
"""Six blocks of 2^15, two of them short."""


@pytest.fixture(scope="module")
def sound(tmp_path_factory, cache):
    path = tmp_path_factory.mktemp("sound") / "s.zarr"
    victim.finish(SPEC, path, cache=cache, block=2**15)
    return path


@pytest.fixture
def store(sound, tmp_path):
    import shutil

    path = tmp_path / "s.zarr"
    shutil.copytree(sound, path)
    return path


def flip(file, place=-1):
    """Change one bit in the middle of a file: its size stays."""
    data = bytearray(file.read_bytes())
    data[len(data) // 2 if place < 0 else place] ^= 0x10
    file.write_bytes(bytes(data))


def repaired(store, sound, cache) -> Findings:
    victim.finish(SPEC, store, cache=cache, block=2**15)
    assert small.everything(store) == small.everything(sound)
    return verify(store, blocks=0)


def chunks(store):
    return sorted(p for p in (store / "samples").rglob("c/*/*") if p.is_file())


def test_a_sound_store_passes_and_is_computed_again_to_the_bit(store):
    before = {p: p.stat().st_mtime_ns for p in store.rglob("*")}
    found = verify(store, blocks=2, seed=1)
    assert found.passed, found.problems
    assert (found.blocks, found.chunks, found.segments) == (6, 6 * 2 + 3 * 4, 1)
    assert len(found.recomputed) == 2
    assert found.comparison == "bitwise"
    assert found.results > 50
    assert {p: p.stat().st_mtime_ns for p in store.rglob("*")} == before


def test_a_flipped_bit_in_a_chunk(store, sound, cache):
    """Promise: a chunk whose size is right and whose bits are not is named, and repaired."""
    for file in chunks(store)[2:8:3]:
        flip(file, 20)
    found = verify(store, blocks=0)
    assert not found.passed
    assert len(found.damaged_blocks) == 2
    assert all("has another checksum" in p for p in found.problems)
    assert found.problems[0].startswith("block 2 (gpus 8192, samples 65,536 to 69,999): ")
    assert repaired(store, sound, cache).passed
    kept("bits flipped in chunks", "verify names the block, run repairs it", 2, "test_verify")


def test_a_cut_and_a_missing_chunk(store, sound, cache):
    files = chunks(store)
    files[0].write_bytes(files[0].read_bytes()[:1000])
    files[-1].unlink()
    found = verify(store, blocks=0)
    assert len(found.problems) == 2
    assert repaired(store, sound, cache).passed
    kept("chunks truncated or deleted", "verify names the block, run repairs it", 2, "test_verify")


@pytest.mark.parametrize("place", [30, 400, -1])
def test_a_flipped_bit_in_the_ledger(store, sound, cache, place):
    """Promise: a damaged summary or checksum is seen before it is believed."""
    (segment,) = (store / "_run" / "ledger").iterdir()
    flip(segment, place)
    found = verify(store, blocks=0)
    assert not found.passed
    assert "its blocks must be computed again" in found.problems[0]
    assert repaired(store, sound, cache).passed
    kept("bits flipped in the ledger", "verify names it, run computes it again", 1, "test_verify")


def test_a_flipped_bit_in_a_result(store, sound, cache):
    flip(store / "allreduce_time_mean" / "c" / "0", 20)
    found = verify(store, blocks=0)
    assert found.problems == ["results: allreduce_time_mean/c/0 has another checksum"]
    assert repaired(store, sound, cache).passed
    kept("bits flipped in results", "verify names it, run writes it again", 1, "test_verify")


def test_numbers_that_the_model_would_not_give_are_seen(store, monkeypatch):
    """Checksums that are right prove nothing of the numbers: recomputing does."""
    compute = Worker.compute

    def wrong(self, block, buffers, names):
        found = compute(self, block, buffers, names)
        found.values[STALL][0, 5] += np.float32(1e-9)
        return found

    monkeypatch.setattr(Worker, "compute", wrong)
    found = verify(store, blocks=1)
    assert len(found.problems) == 1
    assert f"{STALL} differs from the store" in found.problems[0]


def test_summaries_alone_are_computed_again_too(tmp_path, cache, monkeypatch):
    spec = SPEC.replace('"samples": true', '"samples": false')
    victim.finish(spec, tmp_path / "s.zarr", cache=cache, block=2**15)
    assert verify(tmp_path / "s.zarr", blocks=2).passed
    monkeypatch.setattr("fabricarlo.recompute.fingerprint", lambda _: 1)
    found = verify(tmp_path / "s.zarr", blocks=1)
    assert "the summary differs from the store" in found.problems[0]


def test_on_another_device_numbers_need_only_be_close(store, monkeypatch):
    """There the last bits of outputs may differ, those of draws may not."""
    monkeypatch.setattr("fabricarlo.engine.Engine.probe", lambda _: "other bits")
    compute, shift = Worker.compute, {STALL: 1 + 1e-6}

    def near(self, block, buffers, names):
        found = compute(self, block, buffers, names)
        for name in shift.keys() & found.values.keys():
            found.values[name][...] *= np.float32(shift[name])
        return found

    monkeypatch.setattr(Worker, "compute", near)
    found = verify(store, blocks=1)
    assert found.passed
    assert found.comparison.startswith("draws bitwise, outputs to 1e-05")
    for name, factor in ((STALL, 1.001), ("payload_fraction", 1 + 1e-6)):
        shift.clear()
        shift[name] = factor
        assert f"{name} differs" in verify(store, blocks=6).problems[0]


def test_what_cannot_be_verified_is_said(tmp_path, store, monkeypatch):
    with pytest.raises(StoreError, match="is no fabricarlo store"):
        verify(tmp_path / "nothing")
    meta = store / "_run" / "plan.json"
    meta.write_text(json.dumps(json.loads(meta.read_text()) | {"hash": "0" * 64}))
    with pytest.raises(SpecError, match="use the version of fabricarlo that wrote it"):
        verify(store)


def test_overrides_of_the_command_line_are_kept(tmp_path):
    spec = small.text(axes={"gpus": [8192]}, base=[*small.SPEC["base"], "fabric/roce-800g"])
    fabricarlo.run(spec, tmp_path / "s.zarr", overrides=["seed=9", "samples=500"])
    assert verify(tmp_path / "s.zarr", blocks=1).passed
