"""The fat tree and the empty fabric."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric_kernels.catalogue import REFUSALS
from fabric_kernels.inputs import Job, ScaleOut
from fabric_kernels.path.fat_tree import fat_tree, fat_tree_refusal
from tests.answers import answer, record_of
from tests.reference import step

PORT = {
    "gpus": 98304,
    "parameters": 1e12,
    "link_rate": 1e11,
    "payload_fraction": 0.95,
    "oversubscription": 2.0,
    "routing_efficiency": 0.9,
    "switch_latency": 600e-9,
    "adapter_latency": 1.5e-6,
    "error_correction_latency": 120e-9,
    "cable_length": 30.0,
    "switch_radix": 64,
}


def refusal(gpus: float, radix: float) -> str | None:
    changed = PORT | {"gpus": gpus, "switch_radix": radix}
    job, scale_out = (record_of(kind, changed, np.float32) for kind in (Job, ScaleOut))
    return fat_tree_refusal(job, scale_out)


def test_agrees_with_the_plain_reference():
    found = answer("path", "fat_tree", PORT)
    assert found["fabric_tiers"] == step.tiers(PORT) == 4
    assert found["hop_latency"] == pytest.approx(step.hop_latency(PORT), rel=1e-12)
    assert found["gpu_rate"] == pytest.approx(step.gpu_rate(PORT), rel=1e-12)


@pytest.mark.parametrize(
    ("gpus", "tiers"),
    [(1, 1), (64, 1), (65, 2), (2048, 2), (2049, 3), (65536, 3), (65537, 4), (2**20, 4)],
)
def test_tiers_change_where_the_ports_run_out(gpus: int, tiers: int):
    found = answer("path", "fat_tree", PORT | {"gpus": gpus}, dtype=np.float32)
    assert found["fabric_tiers"] == tiers


def test_one_hop_by_hand():
    """One tier: 1.5 us + 2 (30 m x 4.9 ns/m + 120 ns) + 1 x 600 ns = 2.634 us."""
    found = answer("path", "fat_tree", PORT | {"gpus": 64})
    assert found["hop_latency"] == pytest.approx(2.634e-6, rel=1e-12)
    # 1e11 x 0.95 x 0.9 / 2
    assert found["gpu_rate"] == pytest.approx(4.275e10, rel=1e-12)


def test_more_than_four_tiers_hold_is_undefined_and_refused():
    assert np.isnan(answer("path", "fat_tree", PORT | {"switch_radix": 4})["fabric_tiers"])
    message = refusal(98304, 4)
    assert message is not None
    assert "at most 32 are allowed" in message
    assert refusal(98304, 64) is None
    assert REFUSALS[fat_tree] is fat_tree_refusal


@given(st.integers(1, 2**20), st.sampled_from([2, 4, 16, 32, 64, 128, 512]))
def test_refused_exactly_where_undefined(gpus: int, radix: int):
    changed = PORT | {"gpus": gpus, "switch_radix": radix}
    undefined = np.isnan(answer("path", "fat_tree", changed, dtype=np.float32)["hop_latency"])
    assert undefined == (refusal(gpus, radix) is not None)


@given(st.integers(1, 2**19), st.integers(0, 2**19))
def test_more_gpus_never_come_nearer(gpus: int, more: int):
    found = answer("path", "fat_tree", PORT | {"gpus": [gpus, gpus + more]}, dtype=np.float32)
    assert found["hop_latency"][0] <= found["hop_latency"][1]


def test_an_empty_fabric_adds_nothing():
    path = {"fabric_tiers": 2, "hop_latency": 1e-6, "gpu_rate": [[1e10, 2e10]]}
    found = answer("congestion", "none", path, dtype=np.float32)
    assert found["congestion_efficiency"].tolist() == [[1, 1]]
    assert found["queueing_delay"].tolist() == [[0, 0]]
    assert found["queueing_delay"].dtype == np.float32
