"""Loss stalls against packet-by-packet runs, exact Poisson quantiles and random chains."""

import math
from collections.abc import Mapping

import numpy as np
import pytest
from numpy.typing import ArrayLike, DTypeLike

from fabric_kernels.path import Path
from fabric_kernels.pattern import Ring, Traffic
from fabric_kernels.quantity import quantities
from tests.agreement import FALSE_ALARM
from tests.answers import CLEAN, answer
from tests.reference import packet_loss

PACKET = 4096.0
RATE = 50e9
SLOT = PACKET / RATE  # time of one packet
FEEDBACK = 90  # slots from a packet's end to the sender's knowing: a round trip
PACKETS = 50  # in one message
TIMEOUT = 20_000  # slots

GIVEN = {
    **CLEAN, **dict.fromkeys(quantities(Path), 1.0),
    "hop_latency": FEEDBACK * SLOT / 2, "gpu_rate": RATE, "link_rate": RATE,
    "switch_latency": 1e-7, "packet_payload": PACKET, "retransmission_timeout": TIMEOUT * SLOT,
    "path_loss_rate": 1e-6, "marginal_path_loss_rate": 0.0, "marginal_links": 0.0,
}  # fmt: skip
STEPS, RANKS = 131_070.0, 65_536.0  # so many ranks that the ring is a smooth cylinder
MESSAGES = STEPS * RANKS
Point = tuple[ArrayLike, ArrayLike]
NONE = (False, 0.25)  # where nothing is lost at the rates below
LONGEST = (True, 1e-6)  # where a chain is as long as it can be: few stalls are all waited for
SHORTEST = (False, 1e-6)
NO_TIMER = {"retransmission_timeout": 0.0}  # only the fast class costs anything
ONLY_TIMER = {"hop_latency": 0.0, "gpu_rate": 1e40}  # the fast class costs nothing


def stall(
    name: str,
    given: Mapping[str, ArrayLike],
    lost: Point,
    timed_out: Point = NONE,
    *,
    chain: Point = LONGEST,
    dtype: DTypeLike = np.float64,
) -> np.ndarray:
    """The stall of a data exchange of one ring; of timers, the chain is longest at SHORTEST."""
    steps, ranks = given.get("steps", STEPS), given.get("ranks", RANKS)
    ring = Ring(ranks, steps, PACKETS * PACKET, 1.0, 1.0)  # pyright: ignore
    traffic = {"collective": Traffic((ring,), given.get("groups", 1.0))}  # pyright: ignore
    quiet = [f"{e}_{slot}" for e in ("expert", "pipeline") for slot in ("lost", "timed_out")]
    uniforms = dict.fromkeys(quiet, NONE) | {"lost": lost, "timed_out": timed_out, "chain": chain}
    found = answer(
        "loss", name, {**GIVEN, **given}, uniforms=uniforms, traffic=traffic, dtype=dtype
    )
    return found["data_loss_stall"]


def rate_for(expected: object, per_message: float, messages: float = MESSAGES) -> np.ndarray:
    """Loss rate at which the exchange loses this many packets of a class."""
    return np.asarray(expected) / (messages * per_message)


def test_one_loss_costs_what_it_costs_packet_by_packet() -> None:
    rare = {"path_loss_rate": rate_for(1e-7, PACKETS)}
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
        "path_loss_rate": rate_for(1e-7, PACKETS),
    }
    slots = packet_loss.one_loss(PACKETS, loop, TIMEOUT, 20)
    made = float(stall("link_retry", given, (True, 1e-9)))
    assert made == pytest.approx(slots * SLOT, rel=1e-9)


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
    given = (ONLY_TIMER if timer else NO_TIMER) | {"groups": groups}
    given["path_loss_rate"] = rate_for(expected, per_message)
    point = (upper, distance)
    if timer:
        made = stall("go_back_n", given, NONE, point, chain=SHORTEST)
    else:
        made = stall("go_back_n", given, point, chain=LONGEST)
    few = count <= 7
    assert few.sum() > 200
    assert len(set(count[few])) == 8
    # a packet lost again right behind a lost one costs a slot more, the rate is below 3e-10
    np.testing.assert_allclose(made[few] / (cost * SLOT), count[few], 1e-8, 1e-20)
    assert np.all(made[~few] > 6.99 * cost * SLOT)


def test_no_packet_is_lost_twice_as_often_at_the_end_of_a_message() -> None:
    # the last packet of a message is of the timer's class only: 1 of 50, not counted in both
    edge = math.log(2.0)  # P(none) = 1/2 at this expectation
    for factor, some in [(0.99, False), (1.01, True)]:
        given = NO_TIMER | {"path_loss_rate": rate_for(edge * factor, PACKETS - 1.0)}
        assert bool(stall("go_back_n", given, (False, 0.5)) > 0) == some


@pytest.mark.parametrize("expected", [3e3, 1e5, 1e7])
def test_many_losses_cost_their_square_root(expected: float) -> None:
    given = NO_TIMER | {"path_loss_rate": rate_for(expected, PACKETS - 1.0)}
    levels = [(False, 1e-6), (False, 0.5), (True, 1e-6)]
    made = [float(stall("go_back_n", given, u, chain=(False, 0.5))) for u in levels]
    assert made[0] < made[1] < made[2]
    count = packet_loss.largest_poisson(expected, 1.0, 0.5, upper=False)
    chain = made[1] / ((FEEDBACK + 2) * SLOT)
    chain -= count / 65_536  # stalls that meet in one message
    # between the limit sqrt(2 n) and 1.031 sqrt(2 n), where `chain_lengths` has it at n = 2000
    # (65.18, standard error 0.11: 0.2 %, twice that allowed); a median is a whole number within
    # one of the mean
    limit = math.sqrt(2 * count)
    assert 0.999 * limit - 1 < chain < 1.031 * 1.004 * limit + 1


@pytest.mark.parametrize("expected", [0.1, 1.0, 10.0, 100.0])
def test_mean_stall_is_that_of_a_ring_without_barrier(expected: float) -> None:
    generator = np.random.default_rng(42)
    events = packet_loss.ring_stalls(64, expected, 4000, generator, repeated=True)
    points = (np.arange(1000) + 0.5) / 1000
    upper, distance = points > 0.5, np.minimum(points, 1 - points)
    order = generator.permutation(1000)
    given = NO_TIMER | {"steps": 126.0, "ranks": 64.0}
    given["path_loss_rate"] = rate_for(expected, PACKETS - 1.0, 126.0 * 64.0)
    chain = (upper[order], distance[order])
    made = stall("go_back_n", given, (upper, distance), chain=chain).mean()
    made /= (FEEDBACK + 2) * SLOT
    spread = float(events.std()) / math.sqrt(events.size)
    limit = float(packet_loss.stats.norm.isf(FALSE_ALARM / 2)) * spread
    # the chain law on a ring of 64: within 3 % (measured in the design)
    assert abs(made - events.mean()) < limit + 0.03 * made


def test_float32_counts_like_float64() -> None:
    generator = np.random.default_rng(43)
    lanes = 1000
    given = {
        "path_loss_rate": rate_for(np.exp(generator.uniform(-20, 3, lanes)), PACKETS - 1.0),
        "groups": np.exp(generator.uniform(0, 11, lanes)).round(),
    }
    upper = generator.random(lanes) < 0.5
    distance = np.exp(generator.uniform(np.log(1e-9), np.log(0.5), lanes))
    other = generator.permutation(lanes)
    points = (upper, distance), (~upper, distance)
    chain = (upper[other], distance[other])
    double = stall("go_back_n", given, *points, chain=chain)
    single = stall("go_back_n", given, *points, chain=chain, dtype=np.float32)
    assert np.isfinite(single).all()
    close = np.isclose(single, double, rtol=1e-5, atol=0)
    # a count flips only within rounding of its threshold
    assert (~close).sum() <= 2
