"""The same bits, whatever the blocks, devices, processes, interruptions and neighbours."""

import jax
import numpy as np
import pytest

from fabricarlo.plan import Plan
from tests.engine import small


@pytest.fixture(scope="module")
def whole():
    return small.samples(small.run(samples=100_000))


def test_block_size_changes_no_bit(whole):
    small.assert_same_bits(whole, small.samples(small.run(samples=100_000, block=2**20)))


def test_small_cells_that_share_tiles_have_the_bits_of_large_ones(whole):
    first = small.samples(small.run(samples=3000, block=2**20))
    small.assert_same_bits(first, {n: v[..., :3000] for n, v in whole.items()})


def test_one_or_two_devices(whole):
    plan = Plan(small.sweep(samples=100_000), block=2**17)
    assert len(jax.local_devices()) == 2
    one = small.evaluate(plan, jax.local_devices()[:1])
    two = small.evaluate(plan, jax.local_devices()[:2])
    small.assert_same_bits(one, two)
    assert one["data_loss_stall"].reshape(2, 3, -1).tobytes() == whole["data_loss_stall"].tobytes()


def test_two_processes_share_a_store(whole, tmp_path):
    import fabricarlo

    sweep = small.sweep(samples=100_000)
    store = tmp_path / "shared.zarr"
    fabricarlo.run(sweep, store, block=2**15, process=(1, 2))
    tree = fabricarlo.run(sweep, store, block=2**15, process=(0, 2))
    small.assert_same_bits(small.samples(tree), whole)
    alone = tmp_path / "alone.zarr"
    fabricarlo.run(sweep, alone, block=2**15)
    assert small.everything(store) == small.everything(alone)


def test_more_samples_begin_with_the_fewer():
    spec = {"axes": {"gpus": [8192]}, "base": [*small.SPEC["base"], "fabric/roce-800g"]}
    few = small.samples(small.run(samples=1_000_000, block=2**20, **spec))
    many = small.samples(small.run(samples=2_000_000, block=2**20, **spec))
    small.assert_same_bits(few, {n: v[..., :1_000_000] for n, v in many.items()})


def test_one_more_value_on_an_axis():
    axes = small.SPEC["axes"]
    more = small.samples(small.run(axes=axes | {"gpus": [8192, 16384, 32768, 65536]}))
    less = small.samples(small.run())
    picked = {n: v[:, [0, 1, 3]] if v.ndim == 3 else v for n, v in more.items()}
    small.assert_same_bits(picked, less)


def test_other_outputs_leave_the_draws_and_hardly_move_a_number():
    less, more = (
        small.samples(small.run()),
        small.samples(small.run(outputs=["bus_bandwidth", "allreduce_time", "exchange_latency"])),
    )
    draws = [d for d in small.SPEC["draws"]]
    small.assert_same_bits({d: less[d] for d in draws}, {d: more[d] for d in draws})
    np.testing.assert_allclose(more["allreduce_time"], less["allreduce_time"], rtol=1e-6)


@pytest.mark.parametrize("sampler", ["sobol", "random"])
def test_appending_moves_nothing(sampler):
    """A draw, an axis and a stage more: the old draws and numbers keep their bits."""
    before = small.samples(small.run(sampler=sampler))
    draws = small.SPEC["draws"] | {
        "interleave": {"discrete": {"values": [1, 2], "weights": [1, 1]}}
    }
    axes = small.SPEC["axes"] | {"oversubscription": [1, 2]}
    after = small.samples(small.run(sampler=sampler, draws=draws, axes=axes))
    small.assert_same_bits(
        {d: before[d] for d in small.SPEC["draws"]}, {d: after[d] for d in small.SPEC["draws"]}
    )
    assert before["data_loss_stall"].tobytes() == after["data_loss_stall"][:, :, 0].tobytes()
    # the stage `cooling` joins the program, with a uniform of its own
    outputs = [*small.SPEC["outputs"], "slowest_clock_fraction"]
    cooled = [*small.SPEC["base"], "cooling/single-phase-45c"]
    staged = small.samples(small.run(sampler=sampler, outputs=outputs, base=cooled))
    small.assert_same_bits(
        {d: before[d] for d in small.SPEC["draws"]}, {d: staged[d] for d in small.SPEC["draws"]}
    )
    np.testing.assert_allclose(staged["allreduce_time"], before["allreduce_time"], rtol=1e-6)


def test_inserting_a_draw_moves_sobol_points_but_not_random_ones():
    draws = {"interleave": {"uniform": {"low": 1, "high": 4}}} | small.SPEC["draws"]
    for sampler, moves in (("sobol", True), ("random", False)):
        before = small.samples(small.run(sampler=sampler))["adapter_latency"]
        after = small.samples(small.run(sampler=sampler, draws=draws))["adapter_latency"]
        assert (before.tobytes() != after.tobytes()) == moves


def test_an_independent_axis_has_draws_of_its_own():
    shared = small.samples(small.run(sampler="random"))
    apart = small.samples(small.run(sampler="random", independent=["fabric"]))
    assert shared["adapter_latency"].shape == (3000,)
    assert apart["adapter_latency"].shape == (2, 3000)
    assert np.corrcoef(apart["adapter_latency"])[0, 1] < 0.1


def test_paired_differences_are_quieter_than_unpaired_ones():
    """Cells share their draws: the variance of a difference is far below the sum of variances."""
    shared = small.samples(small.run(sampler="random", samples=20_000))["allreduce_time"]
    apart = small.samples(small.run(sampler="random", samples=20_000, independent=["gpus"]))[
        "allreduce_time"
    ]
    paired = np.var(shared[1, 1] - shared[1, 0], dtype=np.float64)
    unpaired = np.var(apart[1, 1] - apart[1, 0], dtype=np.float64)
    assert paired < unpaired / 100
