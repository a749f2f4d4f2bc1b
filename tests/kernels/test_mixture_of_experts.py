"""A mixture of experts: its parameters, its two kinds of groups, its tokens, its refusals."""

from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric_kernels.catalogue import ANSWERS, REFUSALS
from fabric_kernels.inputs import Experts, Job, ScaleUp
from fabric_kernels.model import ModelError
from fabric_kernels.quantity import quantities
from fabric_kernels.workload import groups_of
from fabric_kernels.workload.mixture_of_experts import mixture_of_experts
from tests.answers import PATH, answer, answered, record_of
from tests.reference import exchanges as reference
from tests.reference import step as plain

DEEPSEEK = {
    "gpus": 2048.0, "parameters": 671e9, "tensor_parallel": 1.0, "pipeline_parallel": 16.0,
    "microbatches": 32.0, "microbatch_size": 1.0, "sequence_length": 4096.0, "interleave": 1.0,
    "gradient_element_size": 2.0, "compute_efficiency": 0.4, "peak_flops": 989e12,
    "expert_parameter_share": 0.97, "experts": 256.0, "active_experts": 8.0,
    "expert_layers": 58.0, "expert_parallel": 64.0, "thermal_design_power": 700.0,
    "power_cap": 700.0, "layers": 61.0, "width": 7168.0, "activation_element_size": 1.0,
}  # fmt: skip


def workload(**changes: Any) -> Any:
    return answered("workload", "mixture_of_experts", DEEPSEEK | changes)


def test_agrees_with_the_plain_reference() -> None:
    made = workload()
    assert made.data_parallel == plain.data_parallel(DEEPSEEK) == 128
    assert made.tokens_per_step == plain.tokens(DEEPSEEK) == 128 * 32 * 4096
    assert made.full_clock_compute_time == pytest.approx(
        reference.compute(DEEPSEEK, experts=True), rel=1e-12
    )
    assert made.bubble_share == pytest.approx(15 / 32, rel=1e-12)
    groups = reference.groups(DEEPSEEK, experts=True)
    assert made.payload == pytest.approx(sum(size for size, _, _ in groups), rel=1e-12)


def test_active_parameters_are_those_of_a_token() -> None:
    """The dense 3 % and 8 of 256 experts: 671e9 (0.03 + 0.97 / 32)."""
    assert workload().active_parameters == pytest.approx(671e9 * (0.03 + 0.97 / 32), rel=1e-12)


def test_dense_part_and_experts_go_over_groups_of_their_own() -> None:
    """Dense over dp ranks; an expert over the dp / ep that hold it, as many groups more."""
    found = groups_of(workload())
    expected = reference.groups(DEEPSEEK, experts=True)
    for group, (size, ranks, spacing) in zip(found, expected, strict=True):
        assert group.payload == pytest.approx(size, rel=1e-12)
        assert (group.ranks, group.spacing) == (ranks, spacing)
        assert group.ranks * group.number == DEEPSEEK["gpus"]
    assert [float(group.ranks) for group in found] == [128, 2]


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_no_gradient_is_lost_and_none_is_sent_twice(seed: int) -> None:
    """Over all GPUs, payloads over their replicas are the parameters of the model."""
    generator = np.random.default_rng(seed)
    power = [np.exp2(generator.integers(0, 7, 64)) for _ in range(4)]
    tensor, pipeline, expert, replicas = power
    share = generator.random(64)
    gpus = tensor * pipeline * expert * replicas
    split = {"tensor_parallel": tensor, "pipeline_parallel": pipeline, "gpus": gpus}
    made = workload(expert_parallel=expert, expert_parameter_share=share, **split)
    held = sum(gpus * group.payload / group.ranks for group in groups_of(made))
    np.testing.assert_allclose(held, 671e9 * 2.0, rtol=1e-12)
    np.testing.assert_allclose(sum(m.share for m in made.messages), 1.0, rtol=1e-12)


def test_without_experts_it_is_dense() -> None:
    made = answer("workload", "mixture_of_experts", DEEPSEEK | {"expert_parameter_share": 0.0})
    for name, value in answer("workload", "dense", DEEPSEEK).items():
        assert made[name] == pytest.approx(value, rel=1e-12), name


def test_all_experts_at_work_compute_as_a_dense_model() -> None:
    made = workload(active_experts=256.0)
    dense = answer("workload", "dense", DEEPSEEK)["full_clock_compute_time"]
    assert made.full_clock_compute_time == pytest.approx(dense, rel=1e-12)


def tokens(name: str, **changes: float) -> dict[str, np.ndarray]:
    network = {"nvlink_domain": 8.0, "nvlink_rate": 4e11, "nvlink_latency": 1e-6}
    network |= {"fabric_tiers": 2.0, "gpu_rate": 5e10, "hop_latency": 4e-6}
    longest = {"longest_hop_latency": 6e-6}
    return answer("expert", name, {**PATH, **network, **longest, **DEEPSEEK, **changes})


def test_tokens_go_to_their_experts_and_back_forward_and_backward() -> None:
    """58 / 16 layers, 4 times 32 + 15 microbatches; 56 of 64 ranks are across the fabric."""
    calls = 4 * 58 / 16 * (32 + 15)
    found = tokens("direct")
    size = 4096 * 8 * 7168
    assert found["expert_fabric_hops"] == pytest.approx(calls, rel=1e-12)
    assert found["expert_latency"] == pytest.approx(calls * 6e-6, rel=1e-12)
    time = calls * size * 56 / 64 / 5e10
    assert found["expert_fabric_transfer_time"] == pytest.approx(time, rel=1e-12)


def test_relayed_tokens_cross_both_networks() -> None:
    calls, size = 4 * 58 / 16 * (32 + 15), 4096 * 8 * 7168
    found = tokens("relayed")
    assert found["expert_nvlink_transfer_time"] == pytest.approx(calls * size * 7 / 8 / 4e11)
    assert found["expert_fabric_transfer_time"] == pytest.approx(calls * size * 7 / 8 / 5e10)
    assert found["expert_latency"] == pytest.approx(calls * 7e-6, rel=1e-12)


@pytest.mark.parametrize("name", ["direct", "relayed"])
def test_interleave_leaves_fewer_microbatches_to_the_slowest_way(name: str) -> None:
    one, two = (tokens(name, interleave=v)["expert_latency"] for v in (1.0, 3.0))
    assert two == pytest.approx(one * (32 + 5) / (32 + 15), rel=1e-12)


@pytest.mark.parametrize("name", ["direct", "relayed"])
def test_experts_on_one_gpu_send_nothing(name: str) -> None:
    assert not any(value.any() for value in tokens(name, expert_parallel=1.0).values())


@pytest.mark.parametrize("name", ["direct", "relayed"])
def test_experts_in_one_domain_leave_the_fabric_alone(name: str) -> None:
    found = tokens(name, expert_parallel=8.0)
    assert found["expert_fabric_transfer_time"] == found["expert_fabric_hops"] == 0
    assert found["expert_nvlink_transfer_time"] > 0


def test_no_experts_is_refused_for_a_workload_with_experts() -> None:
    stage = ANSWERS["expert"]["none"]
    with pytest.raises(ModelError, match="choose expert direct or relayed"):
        jax.eval_shape(stage, workload())
    made = jax.eval_shape(stage, answered("workload", "dense", DEEPSEEK))
    assert set(quantities(type(made))) >= {"expert_latency"}


def refusal(**changes: float) -> str | None:
    numbers = {"nvlink_domain": 8.0, "nvlink_rate": 4e11} | DEEPSEEK | changes
    records = (record_of(kind, numbers, np.float32) for kind in (Job, ScaleUp, Experts))
    return REFUSALS[mixture_of_experts](*records)


def test_a_split_that_fits_is_not_refused() -> None:
    assert refusal() is None


def test_expert_parallel_must_divide_the_ranks() -> None:
    """128 data-parallel ranks: 48 does not divide them; 32 and 64 do, or 96 and 144 ranks."""
    why = refusal(expert_parallel=48.0)
    assert why is not None
    for words in ("expert_parallel is 48", "128", "32 or 64", "96 or 144"):
        assert words in why
    assert np.isnan(groups_of(workload(expert_parallel=48.0))[1].ranks)


def test_more_active_experts_than_experts_are_refused() -> None:
    why = refusal(active_experts=300.0)
    assert why is not None
    assert "set it to 256 or less" in why


def test_gpus_that_do_not_divide_come_first() -> None:
    why = refusal(gpus=2050.0)
    assert why is not None
    assert why.endswith("set gpus to 2048 or 2064.")
