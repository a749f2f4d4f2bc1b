"""Shapes and names at the edge of what a sweep may be."""

import threading

import numpy as np
import pytest

import fabricarlo
from fabricarlo.engine import Engine
from fabricarlo.errors import SpecError, StoreError
from fabricarlo.plan import Plan
from fabricarlo.presence import LOCKS, Presence, holder_of
from fabricarlo.store import SweepStore
from fabricarlo.units import UnitError, to_si
from tests.engine import small

ROCE = [*small.SPEC["base"], "fabric/roce-800g"]


def test_a_sweep_of_one_cell():
    tree = small.run(axes={}, base=ROCE, set=small.SPEC["set"] | {"gpus": 8192})
    assert tree["/"].allreduce_time.dims == ("quantile",)
    assert tree["/samples"].allreduce_time.dims == ("sample",)
    assert float(tree["/"].allreduce_time_count) == 3000


def test_a_relative_draw_on_an_axis_of_numbers():
    """The axis keeps its coordinate; what is drawn on it has a name of its own."""
    draws = small.SPEC["draws"] | {"link_rate": {"times": {"uniform": {"low": 0.5, "high": 1}}}}
    axes = {"link_rate": ["400 Gbit/s", "800 Gbit/s"], "gpus": [8192]}
    samples = small.run(axes=axes, draws=draws, base=ROCE)["/samples"]
    assert samples.link_rate.values.tolist() == [5e10, 1e11]
    assert samples.link_rate_drawn.dims == ("link_rate", "sample")
    ratio = samples.link_rate_drawn / samples.link_rate
    np.testing.assert_allclose(ratio[0], ratio[1], rtol=1e-6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"keep": {"samples": {"every": 3}}}, "3 is not a power of two"),
        ({"outputs": ["gpus", "allreduce_time"]}, "gpus is an axis"),
        ({"axes": {"bound": ["gpu/b200"], "gpus": [8192]}}, "axes.bound: a store has a"),
        ({"axes": {"allreduce_time_bin": ["gpu/b200"], "gpus": [8192]}}, "begins with the name"),
    ],
)
def test_what_a_store_could_not_hold_is_refused(changes, message):
    with pytest.raises(SpecError, match=message):
        Plan(small.sweep(**{"base": ROCE, "set": {"data_jitter_stall": "0 s"}} | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"axes": {"fabric": ["fabric/roce-800g", [1]], "gpus": [8192]}}, "axes.fabric"),
        ({"copula": [{"draws": ["payload_fraction", [1]], "correlation": 0.5}]}, "copula"),
        (
            {"copula": [{"draws": ["payload_fraction", "adapter_latency"], "correlation": 10**40}]},
            "copula",
        ),
    ],
)
def test_lists_and_giants_where_names_and_numbers_belong(changes, message):
    with pytest.raises(SpecError, match=message):
        small.sweep(**changes)


def test_a_block_below_the_tile_is_refused():
    """A narrower tile would have other last bits."""
    with pytest.raises(SpecError, match="a block of 4096 is less than a tile of 32768"):
        fabricarlo.run(small.sweep(), block=4096)


def test_the_order_of_independent_axes_is_no_other_plan():
    one, other = (small.sweep(independent=i) for i in (["fabric", "gpus"], ["gpus", "fabric"]))
    assert Plan(one).hash == Plan(other).hash
    plans = [Plan(s, block=2**15) for s in (one, other)]
    small.assert_same_bits(*(small.evaluate(p) for p in plans))


@pytest.mark.parametrize("text", ["1e-99999999 s", "1e999999 s"])
def test_exponents_that_no_number_has_are_refused_at_once(text):
    with pytest.raises(UnitError, match="too large or too small"):
        to_si(text, "s")
    assert to_si("0e-99999999 s", "s") == 0


def test_results_of_a_shorter_run_do_not_outlive_its_attributes(tmp_path):
    path, text = tmp_path / "s.zarr", small.text(samples=40_000)
    fabricarlo.run(text, path, block=2**15)
    longer = SweepStore(path)
    plan = Plan(small.sweep(samples=90_000), block=2**15)
    longer.grow(plan, longer.meta() or {})
    assert "allreduce_time_mean" not in fabricarlo.open(path)["/"].data_vars


def test_many_processes_may_create_a_store_at_once(tmp_path):
    plan, failed = Plan(small.sweep(), block=2**15), []
    facts = {"device": "cpu", "versions": "1", "probe": Engine(plan).probe()}
    gate = threading.Barrier(4)

    def create() -> None:
        gate.wait()
        try:
            SweepStore(tmp_path / "s.zarr").create(plan, facts)
        except Exception as error:  # reported by the main thread
            failed.append(error)

    threads = [threading.Thread(target=create) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    meta = SweepStore(tmp_path / "s.zarr").meta()
    assert meta is not None
    assert meta["created"]


def test_one_at_a_time_takes_over_from_the_dead(tmp_path):
    objects = SweepStore(tmp_path / "s.zarr").objects
    objects.put(f"{LOCKS}finish.1.json", b'{"token": "of a dead process"}')
    presence = Presence(objects, (0, 1))
    presence.join("store")
    waited = []
    with presence.alone("finish", lambda: waited.append(1)):
        assert holder_of(objects.get(f"{LOCKS}finish.2.json")) == presence.token
    assert not waited
    assert holder_of(objects.get(f"{LOCKS}finish.2.json")) == ""
    presence.leave()


@pytest.mark.parametrize("damage", [b"", b"{}", b"[]", b'{"hash": 1'])
def test_a_damaged_plan_is_said(tmp_path, damage):
    path = tmp_path / "s.zarr"
    small.run(path, samples=100)
    (path / "_run" / "plan.json").write_bytes(damage)
    with pytest.raises(StoreError, match="damaged"):
        small.run(path, samples=100)


def test_lost_sample_arrays_are_made_again(tmp_path):
    import shutil

    path = tmp_path / "s.zarr"
    whole = small.samples(small.run(path))
    shutil.rmtree(path / "samples")
    small.assert_same_bits(small.samples(small.run(path)), whole)
