"""The exchange as a sum of its effects."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric_kernels.congestion import Congestion
from fabric_kernels.jitter import Jitter
from fabric_kernels.loss import Loss
from fabric_kernels.operation import gradients, single
from fabric_kernels.quantity import quantities
from tests.answers import answer

CALM = {
    "data_parallel": 8,
    "concurrent_groups": 1,
    "payload": 1e9,
    "tokens_per_step": 1,
    "full_clock_compute_time": 1,
    "bubble_share": 0,
    "active_parameters": 1,
    "collective_algorithm": 0,
    "collective_protocol": 0,
    "tensor_transfer_time": 0,
    "tensor_latency": 0,
    "expert_nvlink_transfer_time": 0,
    "expert_fabric_transfer_time": 0,
    "expert_latency": 0,
    "expert_fabric_hops": 0,
    "pipeline_nvlink_transfer_time": 0,
    "pipeline_fabric_transfer_time": 0,
    "pipeline_latency": 0,
    "pipeline_hops": 0,
    "nvlink_transfer_time": 0.010,
    "fabric_transfer_time": 0.080,
    "exchange_latency": 0.010,
    "fabric_hops": 14,
    "congestion_efficiency": 1,
    "queueing_delay": 0,
    **{name: 0 for name in quantities(Jitter)},
    **{name: 0 for name in quantities(Loss)},
}


def exchange(**changes: object) -> dict[str, np.ndarray]:
    calm = {name: 0 for name in quantities(Congestion)} | CALM
    return answer("exchange", "additive", calm | changes)


def test_a_calm_exchange_is_transfer_and_latency():
    found = exchange()
    assert found["allreduce_time"] == pytest.approx(0.1, rel=1e-12)
    assert found["congestion_delay"] == 0
    # 1e9 B in 0.1 s; on the bus 2 x 7 / 8 of it
    assert found["algorithm_bandwidth"] == pytest.approx(1e10, rel=1e-12)
    assert found["bus_bandwidth"] == pytest.approx(1.75e10, rel=1e-12)


def test_congestion_slows_the_fabric_only():
    found = exchange(congestion_efficiency=0.8, queueing_delay=1e-4)
    # 0.08 s / 0.8 - 0.08 s and 14 hops of 0.1 ms
    assert found["congestion_delay"] == pytest.approx(0.02 + 0.0014, rel=1e-12)
    assert found["allreduce_time"] == pytest.approx(0.1214, rel=1e-12)
    assert found["algorithm_bandwidth"] == exchange()["algorithm_bandwidth"]


def test_nothing_to_exchange_has_no_bandwidth():
    nothing = {"nvlink_transfer_time": 0, "fabric_transfer_time": 0, "exchange_latency": 0}
    found = exchange(data_parallel=1, fabric_hops=0, **nothing)
    assert all(value == 0 for value in found.values()), found


def test_what_is_not_a_number_stays_so():
    assert np.isnan(exchange(exchange_latency=np.nan)["algorithm_bandwidth"])


@settings(max_examples=30)
@given(st.floats(1e-3, 1), st.floats(0, 1), st.floats(0, 1e3), st.floats(0, 1e3))
def test_every_effect_only_adds(efficiency: float, queue: float, jitter: float, loss: float):
    effects = {
        "congestion_efficiency": efficiency,
        "queueing_delay": queue,
        "data_jitter_stall": jitter,
        "data_loss_stall": loss,
    }
    time = exchange()["allreduce_time"]
    given_: dict[str, float] = {}
    for name, value in effects.items():
        given_[name] = value
        later = exchange(**given_)["allreduce_time"]
        assert later >= time
        time = later


EXCHANGES = ("data", "expert", "pipeline")


def test_each_exchange_pays_its_own_effects():
    """1 ms of clean time, 2 of congestion, 4 of jitter and 8 of loss for one after the other."""
    clean = {
        "data": {"nvlink_transfer_time": 0, "fabric_transfer_time": 0, "exchange_latency": 1e-3},
        "expert": {"expert_latency": 1e-3, "expert_fabric_hops": 20},
        "pipeline": {"pipeline_latency": 1e-3, "pipeline_hops": 20},
    }
    quiet = {"nvlink_transfer_time": 0, "fabric_transfer_time": 0, "exchange_latency": 0}
    times = {"data": "allreduce_time", **{e: f"{e}_exchange_time" for e in EXCHANGES[1:]}}
    for name in EXCHANGES:
        stalls = {f"{name}_jitter_stall": 4e-3, f"{name}_loss_stall": 8e-3}
        hops = {"fabric_hops": 20 if name == "data" else 0, "pipeline_fabric_transfer_time": 1e-9}
        queue = {"queueing_delay": 1e-4}
        found = exchange(**(quiet | hops | clean[name] | stalls | queue))
        assert found[times[name]] == pytest.approx(15e-3, rel=1e-6)
        for other in EXCHANGES:
            if other != name:
                assert found[times[other]] < 1e-8


@pytest.mark.parametrize(
    ("operation", "calls", "share"),
    [
        (gradients.replicated, 1, 2 * 7 / 8),
        (gradients.zero_1, 2, 7 / 8),
        (gradients.zero_3, 3, 7 / 8),
        (single.reduce_scatter, 1, 7 / 8),
        (single.all_gather, 1, 7 / 8),
        (single.all_to_all, 1, 7 / 8),
        (single.point_to_point, 1, 1),
    ],
)
def test_bandwidths_count_as_nccl_tests_does(operation: Any, calls: int, share: float):
    """Of 8 ranks: all calls carry the payload, a share of it crosses each bus."""
    calm = {name: 0 for name in quantities(Congestion)} | CALM
    found = answer("exchange", "additive", calm, records={"operation": operation()})
    assert found["algorithm_bandwidth"] == pytest.approx(calls * 1e10, rel=1e-12)
    assert found["bus_bandwidth"] == pytest.approx(calls * share * 1e10, rel=1e-12)
