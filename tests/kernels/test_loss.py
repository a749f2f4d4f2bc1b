"""Stalls of lost packets: what one costs, how many there are, where the light regime ends."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.answers import answer
from tests.reference import packet_loss
from tests.tables import reference_table

PACKET_TIME = 4096 / 5e10
FEEDBACK = 40  # packet times

RING = {
    "data_parallel": 64,
    "concurrent_groups": 1,
    "payload": 64 * 100 * 4096,
    "tokens_per_step": 1,
    "full_clock_compute_time": 1,
    "bubble_share": 0,
    "fabric_tiers": 1,
    "hop_latency": FEEDBACK / 2 * PACKET_TIME,
    "gpu_rate": 5e10,
    "nvlink_transfer_time": 0,
    "fabric_transfer_time": 1,
    "exchange_latency": 0,
    "fabric_hops": 126,
    "fabric_steps": 126,
    "fabric_messages": 64,
    "message_payload": 100 * 4096,
    "link_rate": 1e11,
    "switch_latency": 1e-6,
    "packet_payload": 4096,
    "packet_loss_rate": 1e-9,
    "retransmission_timeout": 1e-3,
    "cable_length": 50,
    "link_turnaround": 400e-9,
}
PACKETS = 126 * 64 * 100
MESSAGES = 126 * 64
QUIET = (False, 0.4)  # no event at small rates

Point = tuple[object, object]


def stall(
    name: str = "go_back_n", lost: Point = QUIET, timed_out: Point = QUIET, **changes: object
) -> np.ndarray:
    uniforms = {"lost": lost, "timed_out": timed_out}
    return answer("loss", name, RING | changes, uniforms=uniforms)["loss_stall"]


def rate_of(chance: float, number: int) -> float:
    """Loss rate at which any of `number` packets is lost with this chance."""
    return -np.expm1(np.log1p(-chance) / number)


def test_one_lost_packet_costs_what_a_packet_simulation_says():
    certain = rate_of(0.1, PACKETS - MESSAGES)
    found = stall(lost=(True, 0.09), packet_loss_rate=certain)
    slots = packet_loss.one_loss(100, FEEDBACK, 10**6, packet=50)
    assert slots == FEEDBACK + 2
    assert found == pytest.approx(slots * PACKET_TIME, rel=1e-9)


def test_a_lost_last_packet_waits_for_the_timer():
    timeout = 5000
    certain = rate_of(0.1, MESSAGES)
    found = stall(
        timed_out=(True, 0.09),
        packet_loss_rate=certain,
        lost=(False, 1e-12),
        retransmission_timeout=timeout * PACKET_TIME,
    )
    slots = packet_loss.one_loss(100, FEEDBACK, timeout, packet=99)
    assert found == pytest.approx(slots * PACKET_TIME, rel=1e-9)


@pytest.mark.parametrize("groups", [1, 64, 4096])
@pytest.mark.parametrize("loss_rate", [1e-19, 1e-13, 1e-10, 1e-8, 1e-7])
def test_any_loss_at_all_has_its_probability(loss_rate: float, groups: int):
    """A stall exactly where u exceeds the chance that every group stays whole."""
    packets = (PACKETS - MESSAGES) * groups
    chance = -np.expm1(packets * np.log1p(-loss_rate))
    upper = chance <= 0.5
    distance = chance if upper else 1 - chance
    if not upper and distance < 1e-12:
        assert stall(lost=(False, 1e-9), packet_loss_rate=loss_rate, concurrent_groups=groups) > 0
        return
    inside, outside = (1 - 1e-6, 1 + 1e-6) if upper else (1 + 1e-6, 1 - 1e-6)
    changes = {"packet_loss_rate": loss_rate, "concurrent_groups": groups}
    assert stall(lost=(upper, distance * inside), **changes) > 0
    assert stall(lost=(upper, distance * outside), **changes) == 0


def mean_stall(scale: float = 1.0, **changes: object) -> float:
    """Mean over u of the fast stalls, in units of one; u is spread evenly."""
    half = (np.arange(512) + 0.5) / 1024
    upper = np.repeat([True, False], half.size)
    found = stall(lost=(upper, np.tile(half, 2)), retransmission_timeout=1e-7, **changes)
    return scale * float(found.mean()) / ((FEEDBACK + 2) * PACKET_TIME)


def test_mean_agrees_with_the_ring_event_by_event():
    """Ten losses a run on 64 ranks: chain law of the ring, 3 % as its docstring says."""
    expected = 10.0
    rate = expected / (PACKETS - MESSAGES)
    truth = packet_loss.ring_stalls(64, expected, 1500, np.random.default_rng(7), repeated=True)
    error = truth.std() / np.sqrt(truth.size)
    allowed = 0.03 * truth.mean() + 4.9 * error
    assert abs(mean_stall(packet_loss_rate=rate) - truth.mean()) < allowed
    assert abs(mean_stall(1.2, packet_loss_rate=rate) - truth.mean()) > allowed


def test_the_seed_documents_ring():
    """100,000 ranks, 8789 packets a message: the table's stalls on the critical path."""
    rows = {
        row["params"]: float(row["value"])
        for row in reference_table("collective_stall.csv")
        if row["stat"] == "critical_path_stalls_ring_no_barrier"
    }
    seed = {
        "data_parallel": 100_000,
        "fabric_steps": 199_998,
        "fabric_messages": 100_000,
        "message_payload": 8789.0625 * 4096,
    }
    for rate in ("1e-15", "1e-13", "1e-12", "1e-11", "1e-10", "1e-09"):
        found = mean_stall(**seed, packet_loss_rate=float(rate))
        assert found == pytest.approx(rows[f"p={rate}"], rel=0.02), rate


def test_the_largest_of_many_groups():
    """A million groups with rate 1e-7 each see an event with 1 - exp(-0.1)."""
    rate = rate_of(1e-7, PACKETS - MESSAGES)
    chance = -np.expm1(-0.1)
    for factor, stalled in ((0.999, True), (1.001, False)):
        found = stall(lost=(True, chance * factor), packet_loss_rate=rate, concurrent_groups=1e6)
        assert (found > 0) == stalled


def test_rails_are_rings_of_their_own():
    """Eight rails of one group stall as one rail of eight groups does."""
    rails = stall(lost=(True, 0.3), packet_loss_rate=1e-5, fabric_messages=512)
    groups = stall(lost=(True, 0.3), packet_loss_rate=1e-5, concurrent_groups=8)
    assert rails == groups > 0


def test_a_link_retry_costs_the_links_loop():
    found = stall("link_retry", lost=(True, 0.09), packet_loss_rate=rate_of(0.1, PACKETS))
    loop = 2 * 50 * 4.9e-9 + 400e-9 + 2 * 4096 / 1e11
    assert found == pytest.approx(loop, rel=1e-9)


@pytest.mark.parametrize("name", ["go_back_n", "link_retry"])
@settings(max_examples=40)
@given(
    loss_rate=st.floats(0, 0.1),
    steps=st.integers(0, 2 * 10**5),
    messages=st.integers(1, 10**5),
    payload=st.floats(0, 1e12),
    distance=st.floats(1e-9, 0.5),
    upper=st.booleans(),
)
def test_is_finite_and_never_negative(
    name: str,
    loss_rate: float,
    steps: int,
    messages: int,
    payload: float,
    distance: float,
    *,
    upper: bool,
):
    point = (upper, distance)
    changes = {"fabric_steps": steps, "fabric_messages": messages, "message_payload": payload}
    found = answer(
        "loss",
        name,
        RING | changes | {"packet_loss_rate": loss_rate},
        uniforms={"lost": point, "timed_out": point},
        dtype=np.float32,
    )["loss_stall"]
    assert np.isfinite(found)
    assert found >= 0
    assert found == 0 or (steps > 0 and loss_rate > 0)
