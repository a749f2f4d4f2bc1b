"""One synchronous step against the plain reference, and the sum of its parts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric_kernels.congestion import Congestion
from fabric_kernels.cooling import Cooling
from fabric_kernels.exchange import Exchange
from fabric_kernels.expert import Expert
from fabric_kernels.jitter import Jitter
from fabric_kernels.loss import Loss
from fabric_kernels.pipeline import Pipeline
from fabric_kernels.quantity import quantities
from fabric_kernels.tensor import Tensor
from tests.answers import answer
from tests.reference import step as reference

PLAN = {
    "gpus": 36864,
    "parameters": 2e12,
    "gradient_element_size": 2,
    "sequence_length": 8192,
    "microbatch_size": 1,
    "microbatches": 16,
    "tensor_parallel": 8,
    "pipeline_parallel": 16,
    "interleave": 2,
    "compute_efficiency": 0.5,
    "compute_bound_share": 0.85,
    "peak_flops": 2.5e15,
    "thermal_design_power": 1200,
    "power_cap": 1200,
    "nvlink_domain": 72,
    "nvlink_rate": 9e11,
    "nvlink_latency": 1e-6,
    "link_rate": 1e11,
    "payload_fraction": 0.95,
    "oversubscription": 1,
    "routing_efficiency": 0.95,
    "switch_latency": 600e-9,
    "adapter_latency": 1.5e-6,
    "error_correction_latency": 120e-9,
    "cable_length": 30,
    "switch_radix": 64,
}
PARTS = tuple(
    f"step_time_{name}"
    for name in (
        "compute", "pipeline", "bandwidth", "latency", "thermal", "congestion", "jitter", "loss",
    )
)  # fmt: skip

Found = dict[str, np.ndarray]


def cooled(slowest: object) -> dict[str, object]:
    return dict.fromkeys(quantities(Cooling), 1) | {"slowest_clock_fraction": slowest}


QUIET: dict[str, float] = dict.fromkeys(
    (n for kind in (Tensor, Expert, Pipeline, Jitter, Loss, Congestion) for n in quantities(kind)),
    0,
)
"""Every exchange but that of the gradients, and every effect on it: none."""


def whole(plan: dict[str, float], effects: reference.Effects) -> Found:
    """All answers from the workload to the step, one after another."""
    known: dict[str, object] = dict(plan) | cooled(effects.slowest_clock_fraction)
    known |= answer("workload", "dense", known)
    known |= answer("placement", "worst", known) | answer("routing", "adaptive", known)
    known |= answer("path", "fat_tree", known)
    known |= answer("collective", "hierarchical", known)
    known |= QUIET | {
        "congestion_efficiency": effects.congestion_efficiency,
        "queueing_delay": effects.queueing_delay,
        "jitter_stall": effects.jitter_stall,
        "data_jitter_stall": effects.jitter_stall,
        "loss_stall": effects.loss_stall,
        "data_loss_stall": effects.loss_stall,
    }
    exchanged = answer("exchange", "additive", known)
    return exchanged | answer("step", "synchronous", known | exchanged)


@pytest.mark.parametrize(
    "effects",
    [
        reference.Effects(),
        reference.Effects(0.83, 0.7, 16e-6, 0.2, 0.05),
        reference.Effects(0.2, 1.0, 0.0, 0.0, 4.29),
    ],
)
@pytest.mark.parametrize(
    "changes", [{}, {"gpus": 4096, "nvlink_domain": 8}, {"pipeline_parallel": 1}]
)
def test_agrees_with_the_plain_reference(effects: reference.Effects, changes: dict[str, float]):
    plan = PLAN | changes
    found, truth = (
        whole(plan, effects),
        reference.step(plan, effects, reference.Overlap()),
    )
    for name, value in truth.items():
        # a part of the reference is a difference of totals
        assert found[name] == pytest.approx(value, rel=1e-9, abs=1e-11 * truth["step_time"]), name


def test_the_reference_sees_a_part_on_the_wrong_account():
    effects = reference.Effects(0.83, 0.7, 16e-6, 0.2, 0.05)
    found = whole(PLAN, effects)
    truth = reference.step(PLAN, effects, reference.Overlap())
    bubble_left_out = found["step_time_thermal"] / (1 + 15 / 32)
    assert bubble_left_out != pytest.approx(truth["step_time_thermal"], rel=1e-9)


LANES = {
    "data_parallel": 256,
    "concurrent_groups": 128,
    "payload": 1e10,
    "congestion_delay": st.floats(0, 1e3),
    "allreduce_time": 0,
    "algorithm_bandwidth": 1e9,
    "bus_bandwidth": 1e9,
    "full_clock_compute_time": st.floats(1e-3, 1e4),
    "bubble_share": st.floats(0, 2),
    "slowest_clock_fraction": st.floats(0.05, 1),
    "compute_bound_share": st.floats(0, 1),
    "nvlink_transfer_time": st.floats(0, 100),
    "fabric_transfer_time": st.floats(0, 100),
    "exchange_latency": st.floats(0, 10),
    "fabric_hops": 100,
    "collective_algorithm": 0,
    "collective_protocol": 0,
    "active_parameters": 1e9,
    "tokens_per_step": 1e6,
    "jitter_stall": st.floats(0, 100),
    "loss_stall": st.floats(0, 100),
}
drawn = st.fixed_dictionaries({k: v for k, v in LANES.items() if not isinstance(v, int | float)})
fixed = {k: v for k, v in LANES.items() if isinstance(v, int | float)}


@given(drawn)
def test_parts_are_positive_and_sum_to_the_step(values: dict[str, float]):
    """Within 8 units in the last place of float32, and none below 0."""
    known = PLAN | cooled(1) | QUIET | dict.fromkeys(quantities(Exchange), 0) | fixed | values
    clean = sum(
        np.float32(values[name])
        for name in ("nvlink_transfer_time", "fabric_transfer_time", "exchange_latency")
    )
    stalls = sum(
        np.float32(values[name]) for name in ("congestion_delay", "jitter_stall", "loss_stall")
    )
    known["allreduce_time"] = clean + stalls
    found = answer("step", "synchronous", known, dtype=np.float32)
    total = found["step_time"]
    parts = [float(found[name]) for name in PARTS]
    assert min(parts) >= 0
    assert abs(sum(parts) - float(total)) <= 8 * np.spacing(total)
    assert total == pytest.approx(
        float(found["compute_time"] + found["bubble"] + found["exposed_communication_time"]),
        rel=1e-6,
    )
    assert found["compute_time"] >= np.float32(values["full_clock_compute_time"])
    assert 0 <= found["scaling_efficiency"] <= 1


def test_a_stopped_clock_never_ends_the_step():
    known = (
        PLAN
        | cooled([0.0, 1.0])
        | QUIET
        | dict.fromkeys(quantities(Exchange), 0)
        | fixed
        | dict.fromkeys(LANES.keys() - fixed.keys(), 1.0)
    )
    known["slowest_clock_fraction"] = [0.0, 1.0]
    found = answer("step", "synchronous", known | {"compute_bound_share": 0.0}, dtype=np.float32)
    assert np.isposinf(found["step_time"][0])
    assert found["scaling_efficiency"][0] == 0
    assert np.isfinite(found["step_time"][1])
