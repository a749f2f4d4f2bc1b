"""The exchange as a sum of its effects."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.answers import answer

CALM = {
    "data_parallel": 8,
    "concurrent_groups": 1,
    "payload": 1e9,
    "tokens_per_step": 1,
    "full_clock_compute_time": 1,
    "bubble_share": 0,
    "nvlink_transfer_time": 0.010,
    "fabric_transfer_time": 0.080,
    "exchange_latency": 0.010,
    "fabric_hops": 14,
    "fabric_steps": 14,
    "fabric_messages": 8,
    "message_payload": 1e9 / 8,
    "congestion_efficiency": 1,
    "queueing_delay": 0,
    "jitter_stall": 0,
    "loss_stall": 0,
}


def exchange(**changes: object) -> dict[str, np.ndarray]:
    return answer("exchange", "additive", CALM | changes)


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
        "jitter_stall": jitter,
        "loss_stall": loss,
    }
    time = exchange()["allreduce_time"]
    given_: dict[str, float] = {}
    for name, value in effects.items():
        given_[name] = value
        later = exchange(**given_)["allreduce_time"]
        assert later >= time
        time = later
