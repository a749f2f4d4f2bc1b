"""Stalls of lost packets: what one costs, how many there are, where the light regime ends."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike, DTypeLike

from fabric_kernels.path import Path
from fabric_kernels.pattern import Ring, Traffic
from fabric_kernels.quantity import quantities
from tests.answers import CLEAN, answer
from tests.reference import packet_loss
from tests.tables import reference_table

PACKET_TIME = 4096 / 5e10
FEEDBACK = 40  # packet times

GIVEN = {
    **CLEAN,
    **dict.fromkeys(quantities(Path), 1.0),
    "hop_latency": FEEDBACK / 2 * PACKET_TIME,
    "gpu_rate": 5e10,
    "link_rate": 1e11,
    "switch_latency": 1e-6,
    "packet_payload": 4096,
    "path_loss_rate": 1e-9,
    "marginal_path_loss_rate": 0,
    "marginal_links": 0,
    "retransmission_timeout": 1e-3,
    "cable_length": 50,
    "link_turnaround": 400e-9,
}
RING = {"ranks": 64, "steps": 126, "payload": 100 * 4096, "parallel": 1, "repeats": 1}
PACKETS = 126 * 64 * 100
MESSAGES = 126 * 64
QUIET = (False, 0.4)  # no event at small rates

Point = tuple[ArrayLike, ArrayLike]
SLOTS = ("lost", "timed_out", *(f"{e}_{s}" for e in ("expert", "pipeline")
                                for s in ("lost", "timed_out")))  # fmt: skip


def parts(
    name: str,
    points: Mapping[str, Point],
    exchange: str = "collective",
    dtype: DTypeLike = np.float64,
    **changes: ArrayLike,
) -> dict[str, np.ndarray]:
    """All stalls of an answer whose one exchange is a ring; every other slot is quiet."""
    sizes: Any = {n: changes.get(n, value) for n, value in RING.items()}
    traffic = Traffic((Ring(**sizes),), changes.get("groups", 1))  # pyright: ignore
    uniforms = dict.fromkeys((*SLOTS, "chain"), QUIET) | dict(points)
    return answer(
        "loss", name, GIVEN | changes, uniforms=uniforms, traffic={exchange: traffic}, dtype=dtype
    )


def stall(
    name: str = "go_back_n", lost: Point = QUIET, timed_out: Point = QUIET, **changes: Any
) -> np.ndarray:
    """The stall of the data exchange."""
    found = parts(name, {"lost": lost, "timed_out": timed_out}, **changes)
    return found["data_loss_stall"]


def rate_of(chance: float, number: int) -> float:
    """Loss rate at which any of `number` packets is lost with this chance."""
    return -np.expm1(np.log1p(-chance) / number)


def test_one_lost_packet_costs_what_a_packet_simulation_says():
    rare = rate_of(1e-6, PACKETS - MESSAGES)
    found = stall(lost=(True, 0.9e-6), path_loss_rate=rare)
    slots = packet_loss.one_loss(100, FEEDBACK, 10**6, packet=50)
    assert slots == FEEDBACK + 2
    assert found == pytest.approx(slots * PACKET_TIME, rel=1e-9)


def test_a_lost_last_packet_waits_for_the_timer():
    timeout = 5000
    rare = rate_of(1e-6, MESSAGES)
    found = stall(
        timed_out=(True, 0.9e-6),
        path_loss_rate=rare,
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
        assert stall(lost=(False, 1e-9), path_loss_rate=loss_rate, groups=groups) > 0
        return
    inside, outside = (1 - 1e-6, 1 + 1e-6) if upper else (1 + 1e-6, 1 - 1e-6)
    changes = {"path_loss_rate": loss_rate, "groups": groups}
    assert stall(lost=(upper, distance * inside), **changes) > 0
    assert stall(lost=(upper, distance * outside), **changes) == 0


def mean_stall(scale: float = 1.0, **changes: Any) -> float:
    """Mean of the fast stalls, in units of one; the levels of count and chain are spread evenly."""
    half = (np.arange(512) + 0.5) / 1024
    upper, distance = np.repeat([True, False], half.size), np.tile(half, 2)
    order = np.random.default_rng(12).permutation(upper.size)
    points = {"lost": (upper, distance), "chain": (upper[order], distance[order])}
    found = parts("go_back_n", points, retransmission_timeout=0, **changes)["data_loss_stall"]
    return scale * float(found.mean()) / ((FEEDBACK + 2) * PACKET_TIME)


def test_mean_agrees_with_the_ring_event_by_event():
    """Ten losses a run on 64 ranks: chain law of the ring, 3 % as its docstring says."""
    expected = 10.0
    rate = expected / (PACKETS - MESSAGES)
    truth = packet_loss.ring_stalls(64, expected, 1500, np.random.default_rng(7), repeated=True)
    error = truth.std() / np.sqrt(truth.size)
    allowed = 0.03 * truth.mean() + 4.9 * error
    assert abs(mean_stall(path_loss_rate=rate) - truth.mean()) < allowed
    assert abs(mean_stall(1.2, path_loss_rate=rate) - truth.mean()) > allowed


def test_the_seed_documents_ring():
    """100,000 ranks, 8789 packets a message: the table's stalls on the critical path."""
    rows = {
        row["params"]: float(row["value"])
        for row in reference_table("collective_stall.csv")
        if row["stat"] == "critical_path_stalls_ring_no_barrier"
    }
    seed = {"ranks": 100_000, "steps": 199_998, "payload": 8789.0625 * 4096}
    for rate in ("1e-15", "1e-13", "1e-12", "1e-11", "1e-10", "1e-09"):
        found = mean_stall(**seed, path_loss_rate=float(rate))
        assert found == pytest.approx(rows[f"p={rate}"], rel=0.02), rate


def test_the_largest_of_many_groups():
    """A million groups with rate 1e-7 each see an event with 1 - exp(-0.1)."""
    rate = rate_of(1e-7, PACKETS - MESSAGES)
    chance = -np.expm1(-0.1)
    for factor, stalled in ((0.999, True), (1.001, False)):
        found = stall(lost=(True, chance * factor), path_loss_rate=rate, groups=1e6)
        assert (found > 0) == stalled


def test_rails_are_rings_of_their_own():
    """Eight rails of one group stall as one rail of eight groups does."""
    rails = stall(lost=(True, 0.3), path_loss_rate=1e-5, parallel=8)
    groups = stall(lost=(True, 0.3), path_loss_rate=1e-5, groups=8)
    assert rails == groups > 0


def test_a_link_retry_costs_the_links_loop():
    rare = rate_of(1e-6, PACKETS)
    found = stall("link_retry", lost=(True, 0.9e-6), path_loss_rate=rare)
    loop = 2 * 50 * 4.9e-9 + 400e-9 + 2 * 4096 / 1e11
    assert found == pytest.approx(loop, rel=1e-9)


@pytest.mark.parametrize("exchange", ["expert", "pipeline"])
def test_every_exchange_stalls_on_its_own(exchange: str):
    """The same ring stalls the same in each exchange, by uniforms of its own alone."""
    own = {"collective": "lost", "expert": "expert_lost", "pipeline": "pipeline_lost"}
    field = {"collective": "data"}.get(exchange, exchange) + "_loss_stall"
    expected = stall(lost=(True, 0.3), path_loss_rate=1e-5)
    found = parts("go_back_n", {own[exchange]: (True, 0.3)}, exchange, path_loss_rate=1e-5)
    assert found[field] == pytest.approx(expected, rel=1e-12)
    assert found["loss_stall"] == pytest.approx(expected, rel=1e-12)
    others = [slot for e, slot in own.items() if e != exchange]
    other = parts("go_back_n", dict.fromkeys(others, (True, 0.3)), exchange, path_loss_rate=1e-5)
    assert other[field] < expected


def test_a_pause_of_one_marginal_link_is_paid_in_full():
    """Three losses on one link are three stalls; spread over a ring they would be a chain."""
    rate = 3.0 / (126 * 99)
    third = (False, 0.5)  # the median of a Poisson number of mean 3 is 3
    found = stall(lost=third, path_loss_rate=0, marginal_links=1, marginal_path_loss_rate=rate)
    # the next packet of the message may be lost too: half a packet time per thousand
    assert found == pytest.approx(3 * (FEEDBACK + 2) * PACKET_TIME, rel=1e-3)
    spread = parts("go_back_n", {"lost": third, "chain": third}, path_loss_rate=rate / 64)
    assert spread["data_loss_stall"] < 0.75 * found


@pytest.mark.parametrize("name", ["go_back_n", "link_retry"])
@settings(max_examples=40, derandomize=True, deadline=None)
@given(
    loss_rate=st.floats(0, 0.1),
    steps=st.integers(0, 2 * 10**5),
    ranks=st.integers(1, 10**5),
    payload=st.floats(0, 1e12),
    distance=st.floats(1e-9, 0.5),
    upper=st.booleans(),
)
def test_is_finite_and_never_negative(
    name: str,
    loss_rate: float,
    steps: int,
    ranks: int,
    payload: float,
    distance: float,
    *,
    upper: bool,
):
    points: dict[str, Point] = {n: (upper, distance) for n in ("lost", "timed_out", "chain")}
    changes: dict[str, Any] = {
        "steps": steps,
        "ranks": ranks,
        "payload": payload,
        "path_loss_rate": loss_rate,
    }
    found = parts(name, points, dtype=np.float32, **changes)["loss_stall"]
    assert np.isfinite(found)
    assert found >= 0
    assert found == 0 or (steps > 0 and loss_rate > 0)
