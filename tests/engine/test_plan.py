"""Streams, dimensions, variants, and what a plan refuses."""

import numpy as np
import pytest

from fabricarlo.errors import SpecError
from fabricarlo.plan import Plan
from tests.engine import small

SENSITIVE = {
    "design": "sensitivity",
    "axes": {"gpus": [8192]},
    "base": [*small.SPEC["base"], "fabric/roce-800g"],
}


def test_draws_take_dimensions_in_file_order_and_slots_their_own():
    plan = Plan(small.sweep())
    dimensions = {n: s.dimension for n, s in plan.streams.items()}
    assert dimensions == {
        "payload_fraction": 0,
        "packet_loss_rate": 1,
        "adapter_latency": 2,
        "routing_efficiency": 3,
        "loss.data.lost": 62,
        "loss.data.timed_out": 61,
        "loss.chain": 50,
    }


def test_an_overridden_stage_draws_nothing():
    drawn = {"nvlink_domain": 8, "jitter": "barrier"}
    assert "jitter.data.slowest" in Plan(small.sweep(set=drawn)).streams
    replaced = drawn | {"data_jitter_stall": "0 s"}
    assert "jitter.data.slowest" not in Plan(small.sweep(set=replaced)).streams


def test_any_quantity_may_be_replaced_by_a_draw():
    draws = small.SPEC["draws"] | {"gpu_rate": {"uniform": {"low": "50 GB/s", "high": "51 GB/s"}}}
    tree = small.run(draws=draws, outputs=["fabric_transfer_time", "gpu_rate"])
    rate = tree["/samples"].gpu_rate
    assert rate.min() >= 50e9
    assert rate.max() <= 51e9
    product = tree["/samples"].fabric_transfer_time * rate
    assert float(product.std("sample").max() / product.mean()) < 1e-6


def test_a_replacing_value_needs_no_inputs_that_only_the_replaced_stage_reads():
    quantities = {"hop_latency": "2 us", "gpu_rate": "90 GB/s"}
    plan = Plan(small.sweep(set=small.SPEC["set"] | quantities, outputs=["allreduce_time"]))
    assert "hop_latency" in plan.variants[0].replaced


def test_cells_that_differ_in_numbers_only_share_a_program():
    plan = Plan(small.sweep())
    assert len(plan.variants) == 2  # two ways to recover a lost packet
    assert [dict(v.choices)["loss"] for v in plan.variants] == ["go_back_n", "link_retry"]


def test_a_part_of_a_sobol_sequence_is_not_kept():
    keep = {"samples": {"every": 16}}
    with pytest.raises(SpecError, match="16 with 8 replicates would keep a part"):
        Plan(small.sweep(keep=keep))
    Plan(small.sweep(keep=keep, replicates=16))
    Plan(small.sweep(keep=keep, sampler="random"))


def test_missing_values_are_all_named():
    with pytest.raises(SpecError) as info:
        Plan(small.sweep(base=["workload/dense-2t"]))
    text = str(info.value)
    assert "peak_flops" not in text  # no output reads it
    assert "nvlink_rate has no value: rate of one GPU into its NVLink domain" in text
    assert "give it in `set`, `draws`, an axis or a preset of `base`" in text


def test_gpus_that_do_not_fit_are_refused_with_what_fits():
    with pytest.raises(SpecError, match="8200"):
        Plan(small.sweep(axes={"gpus": [8200], "fabric": small.SPEC["axes"]["fabric"]}))


def test_a_draw_of_something_else_does_not_hide_a_split_that_does_not_fit():
    draws = small.SPEC["draws"] | {"compute_efficiency": {"uniform": {"low": 0.4, "high": 0.5}}}
    with pytest.raises(SpecError, match="10000"):
        Plan(small.sweep(axes=small.SPEC["axes"] | {"gpus": [10_000]}, draws=draws))
    split = {"tensor_parallel": {"discrete": {"values": [8, 7], "weights": [1, 1]}}}
    Plan(small.sweep(draws=small.SPEC["draws"] | split))  # a drawn split is counted, not refused


def test_the_hash_is_of_meaning_not_of_text():
    plan = Plan(small.sweep())
    assert plan.hash == Plan(small.sweep(description="other words", samples=5000)).hash
    assert plan.hash != Plan(small.sweep(seed=8)).hash
    assert plan.hash != Plan(small.sweep(outputs=["data_loss_stall"])).hash


def test_preset_laws_count_down_from_39_and_share_their_uniform():
    """A law inside `base`'s or an axis' preset."""
    import dataclasses

    sweep = small.sweep()
    (draw,) = (d for d in sweep.draws if d.quantity == "adapter_latency")
    others = tuple(d for d in sweep.draws if d.quantity != "adapter_latency")
    axis = sweep.axes[0]
    settings = tuple(dataclasses.replace(s, draws={"adapter_latency": draw}) for s in axis.settings)
    axes = (dataclasses.replace(axis, settings=settings), *sweep.axes[1:])
    plan = Plan(dataclasses.replace(sweep, draws=others, axes=axes), block=2**15)
    assert plan.streams["adapter_latency.preset"].dimension == 39
    assert plan.axes_of("adapter_latency") == ("fabric",)
    found = small.evaluate(plan)["adapter_latency"].reshape(2, 3, -1)
    assert found[0].tobytes() == found[1].tobytes()


# ---- sensitivity


def test_a_sensitivity_design_has_a_and_b_and_their_mixtures():
    plan = Plan(small.sweep(**SENSITIVE))
    assert plan.axes[-1].name == "design"
    assert plan.axes[-1].labels == ("A", "B", *(f"AB_{n}" for n in small.SPEC["draws"]))
    assert plan.streams["payload_fraction"].second == 20
    assert plan.streams["loss.data.lost"].second is not None


@pytest.mark.parametrize("sampler", ["sobol", "random"])
def test_columns_of_the_mixtures_come_from_a_or_b(sampler):
    tree = small.run(**SENSITIVE, sampler=sampler)
    found = tree["/samples"].to_dataset()
    for name in small.SPEC["draws"]:
        values = found[name]
        a, b = values.sel(design="A"), values.sel(design="B")
        assert not np.array_equal(a, b)
        assert abs(np.corrcoef(a, b)[0, 1]) < 0.1
        for other in small.SPEC["draws"]:
            expected = b if other == name else a
            np.testing.assert_array_equal(values.sel(design=f"AB_{other}"), expected)


def test_the_noise_of_stages_is_drawn_anew_in_b_only():
    """Jansen's indices need A and AB_x to share everything but x."""
    draws = {"payload_fraction": small.SPEC["draws"]["payload_fraction"]}
    lossy = small.SPEC["set"] | {"packet_loss_rate": 1e-6}
    tree = small.run(**SENSITIVE, draws=draws, set=lossy)
    stall = tree["/samples"].data_loss_stall.isel(gpus=0)
    mixed = stall.sel(design="AB_payload_fraction")
    assert np.corrcoef(stall.sel(design="A"), mixed)[0, 1] > 0.99
    assert np.corrcoef(stall.sel(design="A"), stall.sel(design="B"))[0, 1] < 0.5
