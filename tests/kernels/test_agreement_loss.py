"""Loss stalls against packet-by-packet runs, exact Poisson quantiles and random chains."""

import math

import numpy as np
import pytest

from tests.agreement import FALSE_ALARM
from tests.answers import answer
from tests.reference import packet_loss

PACKET = 4096.0
RATE = 50e9
SLOT = PACKET / RATE  # time of one packet
FEEDBACK = 90  # slots from a packet's end to the sender's knowing: a round trip
PACKETS = 50  # in one message
TIMEOUT = 20_000  # slots

EXCHANGE = {
    "data_parallel": 64.0, "concurrent_groups": 1.0, "payload": 1e9, "tokens_per_step": 1e6,
    "full_clock_compute_time": 1.0, "bubble_share": 0.0, "fabric_tiers": 2.0,
    "hop_latency": FEEDBACK * SLOT / 2, "gpu_rate": RATE, "nvlink_transfer_time": 0.0,
    "fabric_transfer_time": 1.0, "exchange_latency": 1e-3, "fabric_hops": 131_070.0,
    "fabric_steps": 131_070.0, "fabric_messages": 65_536.0, "message_payload": PACKETS * PACKET,
    "link_rate": RATE, "switch_latency": 1e-7, "packet_payload": PACKET,
    "retransmission_timeout": TIMEOUT * SLOT, "packet_loss_rate": 1e-6,
}  # fmt: skip
MESSAGES = 131_070.0 * 65_536.0  # so many ranks that the ring is a smooth cylinder
NONE = (False, 0.25)  # where nothing is lost at the rates below
NO_TIMER = {"retransmission_timeout": 0.0}  # only the fast class costs anything
ONLY_TIMER = {"hop_latency": 0.0, "gpu_rate": 1e40}  # the fast class costs nothing


def stall(name: str, given: dict, lost: tuple, timed_out: tuple = NONE) -> np.ndarray:
    uniforms = {"lost": lost, "timed_out": timed_out}
    return answer("loss", name, EXCHANGE | given, uniforms=uniforms)["loss_stall"]


def rate_for(expected: object, per_message: float, messages: float = MESSAGES) -> np.ndarray:
    """Loss rate at which the exchange loses this many packets of a class."""
    return np.asarray(expected) / (messages * per_message)


def test_one_loss_costs_what_it_costs_packet_by_packet() -> None:
    rare = {"packet_loss_rate": rate_for(1e-7, PACKETS)}
    event = (True, 1e-9)  # one packet of the class is lost here, of both classes
    for packet, lost, timed_out in [(20, event, NONE), (PACKETS - 1, NONE, event)]:
        slots = packet_loss.one_loss(PACKETS, FEEDBACK, TIMEOUT, packet)
        made = float(stall("go_back_n", rare, lost, timed_out))
        assert made == pytest.approx(slots * SLOT, rel=1e-9)
    assert float(stall("go_back_n", rare, NONE, NONE)) == 0.0


def test_link_retry_is_go_back_n_on_one_link() -> None:
    loop = 15  # slots of fibre and turnaround
    fibre = 2 * 30.0 * 4.9e-9
    given = {
        "cable_length": 30.0,
        "link_turnaround": loop * SLOT - fibre,
        "packet_loss_rate": rate_for(1e-7, PACKETS),
    }
    slots = packet_loss.one_loss(PACKETS, loop, TIMEOUT, 20)
    made = answer("loss", "link_retry", EXCHANGE | given, uniforms={"lost": (True, 1e-9)})
    assert float(made["loss_stall"]) == pytest.approx(slots * SLOT, rel=1e-9)


def chain_of(count: np.ndarray) -> np.ndarray:
    """Length of the longest chain of 0, 1 and 2 points; the last is 19/12 exactly."""
    return np.array([0.0, 1.0, 19 / 12])[count]


@pytest.mark.parametrize("timer", [False, True])
def test_counts_are_exact_poisson_quantiles(*, timer: bool) -> None:
    generator = np.random.default_rng(40)
    lanes = 400
    expected = np.exp(generator.uniform(np.log(1e-12), np.log(2.0), lanes))
    groups = np.exp(generator.uniform(0, np.log(1e5), lanes)).round()
    distance = np.exp(generator.uniform(np.log(1e-9), np.log(0.5), lanes))
    upper = generator.random(lanes) < 0.6
    count = np.array([
        packet_loss.largest_poisson(float(m), float(g), float(h), upper=bool(u))
        for m, g, h, u in zip(expected, groups, distance, upper, strict=True)
    ])  # fmt: skip
    per_message, cost = (1.0, TIMEOUT) if timer else (PACKETS - 1.0, FEEDBACK + 2)
    given = (ONLY_TIMER if timer else NO_TIMER) | {"concurrent_groups": groups}
    given["packet_loss_rate"] = rate_for(expected, per_message)
    point = (upper, distance)
    made = stall("go_back_n", given, *((NONE, point) if timer else (point, NONE)))
    few = count <= 2
    assert few.sum() > 100
    assert (count[few] > 0).sum() > 50
    np.testing.assert_allclose(made[few] / (cost * SLOT), chain_of(count[few]), 2e-3, 1e-20)
    assert np.all(made[~few] > chain_of(np.array(2)) * cost * SLOT)


def test_no_packet_is_lost_twice_as_often_at_the_end_of_a_message() -> None:
    # the last packet of a message is of the timer's class only: 1 of 50, not counted in both
    edge = math.log(2.0)  # P(none) = 1/2 at this expectation
    for factor, some in [(0.99, False), (1.01, True)]:
        given = NO_TIMER | {"packet_loss_rate": rate_for(edge * factor, PACKETS - 1.0)}
        assert bool(stall("go_back_n", given, (False, 0.5)) > 0) == some


@pytest.mark.parametrize("count", [3, 5, 10, 20, 60])
def test_stall_is_the_mean_chain_of_random_points(count: int) -> None:
    replicates = 6000 if count < 50 else 2000
    lengths = packet_loss.chain_lengths(count, 2.0, replicates, np.random.default_rng(41))
    # u in the middle of the count's probability
    low = packet_loss.stats.poisson.cdf(count - 1, count)
    middle = (low + packet_loss.stats.poisson.cdf(count, count)) / 2
    upper = middle > 0.5
    point = (upper, 1 - middle if upper else middle)
    given = NO_TIMER | {"packet_loss_rate": rate_for(float(count), PACKETS - 1.0)}
    made = float(stall("go_back_n", given, point)) / ((FEEDBACK + 2) * SLOT)
    spread = float(lengths.std()) / math.sqrt(replicates)
    limit = float(packet_loss.stats.norm.isf(FALSE_ALARM / 2)) * spread
    # the table is interpolated within 0.2 % (design of the chain law)
    assert abs(made - lengths.mean()) < limit + 2e-3 * made
    # a barrier model charges every lost packet in full
    assert not abs(count - lengths.mean()) < limit + 2e-3 * count


@pytest.mark.parametrize("expected", [3e3, 1e5, 1e7])
def test_many_losses_cost_their_square_root(expected: float) -> None:
    given = NO_TIMER | {"packet_loss_rate": rate_for(expected, PACKETS - 1.0)}
    for upper, distance in [(True, 1e-6), (False, 0.5), (False, 1e-6)]:
        made = float(stall("go_back_n", given, (upper, distance)))
        count = packet_loss.largest_poisson(expected, 1.0, distance, upper=upper)
        chain = made / ((FEEDBACK + 2) * SLOT)
        chain -= count / 65_536  # stalls that meet in one message
        # between the limit sqrt(2 n) and 1.031 sqrt(2 n), where `chain_lengths` has it at n = 2000
        # (65.18, standard error 0.11: 0.2 %, twice that allowed)
        assert 0.999 * math.sqrt(2 * count) < chain < 1.031 * 1.004 * math.sqrt(2 * count)


@pytest.mark.parametrize("expected", [0.1, 1.0, 10.0, 100.0])
def test_mean_stall_is_that_of_a_ring_without_barrier(expected: float) -> None:
    generator = np.random.default_rng(42)
    events = packet_loss.ring_stalls(64, expected, 4000, generator, repeated=True)
    points = (np.arange(1000) + 0.5) / 1000
    upper = points > 0.5
    lost = (upper, np.where(upper, 1 - points, points))
    given = NO_TIMER | {"fabric_steps": 126.0, "fabric_messages": 64.0}
    given["packet_loss_rate"] = rate_for(expected, PACKETS - 1.0, 126.0 * 64.0)
    made = stall("go_back_n", given, lost).mean() / ((FEEDBACK + 2) * SLOT)
    spread = float(events.std()) / math.sqrt(events.size)
    limit = float(packet_loss.stats.norm.isf(FALSE_ALARM / 2)) * spread
    # the chain law on a ring of 64: within 3 % (measured in the design)
    assert abs(made - events.mean()) < limit + 0.03 * made


def test_float32_counts_like_float64() -> None:
    generator = np.random.default_rng(43)
    lanes = 1000
    given = {
        "packet_loss_rate": rate_for(np.exp(generator.uniform(-20, 3, lanes)), PACKETS - 1.0),
        "concurrent_groups": np.exp(generator.uniform(0, 11, lanes)).round(),
    }
    upper = generator.random(lanes) < 0.5
    distance = np.exp(generator.uniform(np.log(1e-9), np.log(0.5), lanes))
    uniforms = {"lost": (upper, distance), "timed_out": (~upper, distance)}
    double = answer("loss", "go_back_n", EXCHANGE | given, uniforms=uniforms)["loss_stall"]
    single = answer("loss", "go_back_n", EXCHANGE | given, uniforms=uniforms, dtype=np.float32)[
        "loss_stall"
    ]
    assert np.isfinite(single).all()
    close = np.isclose(single, double, rtol=1e-5, atol=0)
    # a count flips only within rounding of its threshold
    assert (~close).sum() <= 2
