"""Lossless links: credits, pauses and admission, and transports that trim."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric_kernels.congestion import REGIMES
from tests.answers import PATH, answer
from tests.reference import congestion as reference

LINK = {
    **PATH,
    "fabric_tiers": 2,
    "hop_latency": 3e-6,
    "gpu_rate": 1e11,
    "senders_per_receiver": 4,
    "flows_per_bottleneck": 4,
    "link_rate": 1e11,
    "packet_payload": 4096,
    "switch_latency": 5e-7,
    "cable_length": 50,
}
METRE = 4.9e-9


def regimes(found: dict[str, np.ndarray]) -> list[str]:
    return [REGIMES[int(code)] for code in np.atleast_1d(found["congestion_regime"])]


@pytest.mark.parametrize("packets", [5, 12, 20, 40, 80])
def test_credits_let_through_what_a_count_of_packets_says(packets: int):
    """A lane of whole packets; the link's own loop, packet by packet."""
    loop = 2 * 50 * METRE + 2 * 200e-9 + 2 * 4096 / 1e11
    truth = reference.credit_share(packets * 4096, 4096, loop, 1e11, 20_000)
    changes = {"flows_per_bottleneck": 1, "lane_buffer": packets * 4096}
    found = answer("congestion", "credits", LINK | changes)
    assert found["congestion_efficiency"] == pytest.approx(truth, rel=2e-3)
    assert found["needed_buffer"] == pytest.approx(1e11 * loop)
    if truth < 0.9:
        wrong = answer("congestion", "credits", LINK | changes | {"cable_length": 60})
        assert wrong["congestion_efficiency"] != pytest.approx(truth, rel=2e-3)


@settings(max_examples=60)
@given(
    buffer=st.floats(9e3, 1e8), packet=st.floats(64, 9000), cable=st.floats(0, 1e4),
    factor=st.floats(1, 50), flows=st.floats(1, 1e4), hot=st.floats(0, 1),
)  # fmt: skip
def test_more_buffer_shorter_cable_or_smaller_packets_never_cost_rate(
    buffer: float, packet: float, cable: float, factor: float, flows: float, hot: float
):
    lanes = {
        "lane_buffer": np.array([buffer, buffer * factor, buffer, buffer]),
        "cable_length": np.array([cable, cable, cable / factor, cable]),
        "packet_payload": np.array([packet, packet, packet, packet / min(factor, packet / 64)]),
        "flows_per_bottleneck": flows,
        "hot_share": hot,
    }
    found = answer("congestion", "credits", LINK | lanes, dtype=np.float32)
    used = found["congestion_efficiency"]
    assert (used[1:] >= used[0] * (1 - 1e-6)).all()
    assert (used <= 1).all()
    assert (found["congestion_loss_rate"] == 0).all()
    assert (found["standing_queue"] >= 0).all()


def test_a_tree_of_held_links_and_more_lanes():
    """A lane in which h of the packets take N times as long: its mean time, sampled."""
    random = np.random.default_rng(5)
    share, ports = 0.02, 16
    times = np.where(random.random(10**6) < share, ports, 1)
    lanes = {"flows_per_bottleneck": ports, "hot_share": share, "virtual_lanes": [1, 4]}
    used = answer("congestion", "credits", LINK | lanes)["congestion_efficiency"]
    error = times.std() / np.sqrt(times.size)
    assert abs(1 / used[0] - times.mean()) < 4.9 * error
    assert used[1] > used[0]


def test_pause_needs_headroom_and_admission_fills_the_pipe():
    pipe = 1e11 * (2 * 3e-6 + 4096 / 1e11)
    lanes = {"admission_window": np.array([pipe / 8, pipe / 2, 2 * pipe])}
    found = answer("congestion", "pfc", LINK | lanes | {"port_buffer": 2 * pipe})
    assert regimes(found) == ["admission_limited", "window_controlled", "pause_limited"]
    assert found["congestion_efficiency"][:2] == pytest.approx([0.5, 1.0])
    assert found["standing_queue"] == pytest.approx([0, pipe, 2 * pipe])
    # 8 pipes admitted: one on its way, two in the buffer, five wait one hop up
    assert found["pause_fraction"] == pytest.approx([0, 0, 5 / 8])
    assert found["victim_loss"][2] == pytest.approx(0.1 * 5 / 8)
    headroom = 2 * 4096 + 1e11 * (2 * 50 * METRE + 1e-6)
    assert found["needed_buffer"] == pytest.approx(np.array([0, pipe, 7 * pipe]) + headroom)


def test_one_port_alone_waits_for_nobody():
    for name in ("dcqcn", "dctcp", "pfc", "credits", "spray_trimming"):
        found = answer("congestion", name, LINK | {"flows_per_bottleneck": 1})
        assert regimes(found) == ["quiet"], name
        assert found["queueing_delay"] == 0
        assert found["congestion_efficiency"] == 1


def test_trimming_takes_what_finds_no_room():
    pipe = 1e11 * (2 * 3e-6 + 4096 / 1e11)
    lanes = {"flows_per_bottleneck": np.array([2, 8, 64]), "unsolicited_share": 0.1}
    found = answer("congestion", "spray_trimming", LINK | lanes | {"port_buffer": 3 * pipe})
    # N pipes at once into one pipe and three of buffer: 1 - 4 / N of the first tenth
    assert found["congestion_loss_rate"] == pytest.approx([0, 0.05, 0.1 * (1 - 4 / 64)])
    assert regimes(found) == ["window_controlled", "trimming", "trimming"]
    assert found["standing_queue"] == pytest.approx(4e-6 * 1e11)
    share = 1 / (1 + found["congestion_loss_rate"] * 64 / 4096)
    assert found["congestion_efficiency"] == pytest.approx(share)


@pytest.mark.parametrize("name", ["pfc", "credits", "spray_trimming", "dctcp", "dcqcn"])
@settings(max_examples=25)
@given(flows=st.floats(1, 1e5), buffer=st.floats(1e5, 1e9), rate=st.floats(1e9, 4e11))
def test_throughput_stays_within_the_line_and_queues_within_the_buffer(
    name: str, flows: float, buffer: float, rate: float
):
    given_ = LINK | {"flows_per_bottleneck": flows, "port_buffer": buffer, "link_rate": rate}
    found = answer("congestion", name, given_, dtype=np.float32)
    assert 0 < found["congestion_efficiency"] <= 1
    assert 0 <= found["queueing_delay"] < np.inf
    if name != "credits":
        assert found["standing_queue"] <= buffer * (1 + 1e-6)
    for share in ("pause_fraction", "victim_loss", "congestion_loss_rate", "marking_probability"):
        assert 0 <= found[share] <= 1
