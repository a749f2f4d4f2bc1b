"""Every algorithm against a simulation of its messages: costs, counts and bytes of N <= 64 ranks.

A flat ring and an all-to-all on both ports at once hide part of one network behind the other, so
their transfer and latency are compared apart; every other algorithm is compared whole as well.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.answers import messages_of
from tests.kernels.collective_lanes import every_algorithm
from tests.reference import event_all_to_all, event_doubling, event_stages, event_tree
from tests.reference.event_ring import Cluster, Run
from tests.reference.event_ring import all_reduce as ring_all_reduce

# NVLink domains of the group and its ranks in each
SHAPES = [
    (1, 1), (1, 2), (1, 8), (2, 1), (3, 1), (4, 1), (5, 1), (13, 1), (32, 1), (64, 1),
    (2, 2), (3, 2), (2, 4), (7, 4), (2, 8), (8, 8), (3, 3), (5, 6), (1, 16), (2, 16),
]  # fmt: skip
PAYLOAD = 1e9
CHUNKS, TIERS, ADDING, EFFICIENCY = 16, 3, 0.3e-6, 0.69
WHOLE = {"payload": PAYLOAD, "delay": 1.0}
TRANSFER = {"payload": PAYLOAD, "delay": 0.0}
LATENCY = {"payload": 0.0, "delay": 1.0}
RATES = {"fast": (900e9, 50e9), "slow": (60e9, 50e9)}
MEAN_HOP, LONGEST_HOP, NVLINK_HOP = 5e-6, 8e-6, 1e-6
Case = tuple[Cluster, float]
"""A cluster and the payload of a call over it."""


def cluster(
    domains: int, size: int, rates: tuple[float, float], hop: float, delay: float
) -> Cluster:
    return Cluster(domains * size, size, *rates, delay * NVLINK_HOP, delay * hop)


@functools.cache
def every(operation: str, network: str, payload: float, delay: float) -> dict[str, Any]:
    """The records that all answers make of every shape."""
    domains, size = np.array(SHAPES, float).T
    nvlink_rate, gpu_rate = RATES[network]
    lanes = {
        "data_parallel": domains * size, "nvlink_domain": size, "payload": payload,
        "nvlink_rate": nvlink_rate, "gpu_rate": gpu_rate, "fabric_tiers": TIERS,
        "nvlink_latency": delay * NVLINK_HOP, "hop_latency": delay * MEAN_HOP,
        "longest_hop_latency": delay * LONGEST_HOP, "tree_chunks": CHUNKS, "fabric_reduction": 1.0,
        "fabric_reduction_latency": delay * ADDING, "nvlink_reduction_efficiency": EFFICIENCY,
    }  # fmt: skip
    return every_algorithm(operation, lanes, len(SHAPES))


def made(name: str, operation: str, network: str, payload: float, delay: float) -> Any:
    """The record that one answer makes of every shape."""
    return every(operation, network, payload, delay)[name]


def total(record: Any) -> np.ndarray:
    return record.nvlink_transfer_time + record.fabric_transfer_time + record.exchange_latency


def inner(case: Case, phases: int) -> float:
    """Ring phases inside every domain."""
    c, payload = case
    domain = Cluster(c.domain, c.domain, c.nvlink_rate, 1.0, c.nvlink_latency)
    return phases * event_stages.ring_phase(domain, payload, 1).finish


def rail(case: Case) -> Case:
    """The ranks of one rail: domains of one, with a d-th of the payload."""
    c, payload = case
    alone = Cluster(c.ranks // c.domain, 1, 1.0, c.fabric_rate, 0.0, c.fabric_latency)
    return alone, payload / c.domain


def charged(domains: int) -> float:
    """What the busiest port of a double binary tree sends, as a share of the payload."""
    return 0.0 if domains == 1 else 1.0 if domains == 2 else 2.0


def treed(case: Case) -> float:
    c, payload = case
    domains = c.ranks // c.domain
    ports = (
        event_tree.busiest_chain_port(c.domain) / c.nvlink_rate,
        charged(domains) / c.domain / c.fabric_rate,
    )
    slot = max(ports) * payload / CHUNKS
    hops = event_tree.Hops(slot, c.fabric_latency, c.nvlink_latency)
    return event_tree.all_reduce(domains, c.domain, CHUNKS, hops)


def halved(run: Callable[[Cluster, float], event_doubling.Exchanges], case: Case) -> float:
    """Time of halving and doubling; NaN where it is not defined."""
    try:
        return max(run(*case).clock)
    except ValueError:
        return math.nan


def added(case: Case, *, adds: bool = True, spreads: bool = True) -> float:
    """What the switch of a domain takes: its fullest port, then up and down for each phase."""
    c, payload = case
    if c.domain == 1:
        return 0.0
    port = event_stages.switched(c.domain, adds=adds, spreads=spreads)
    transfer = port.fuller * payload / (EFFICIENCY * c.nvlink_rate)
    return transfer + 2 * (adds + spreads) * c.nvlink_latency


def switched_across(case: Case) -> float:
    """The fabric's switches: every shard up and down once, each tier adding on the way."""
    c, payload = case
    if c.ranks == c.domain:
        return 0.0
    delay = c.fabric_latency / LONGEST_HOP
    port = 1.0  # a rank sends its shard once and gets the sum once
    return port * payload / c.domain / c.fabric_rate + c.fabric_latency + TIERS * ADDING * delay


def ring_rail(case: Case, phases: int) -> float:
    """Ring phases along every rail."""
    return phases * event_stages.ring_phase(*rail(case), 1).finish


def flat(case: Case, run: Callable[[Cluster, float, int], Run]) -> float:
    """A flat ring for every rank of a domain, so that all of its fabric ports are used."""
    channels = case[0].domain if case[0].ranks > case[0].domain else 1
    return run(*case, channels).finish


MEAN, LONGEST = "mean", "longest"
EVENTS: dict[tuple[str, str], tuple[str, Callable[[Case], float]]] = {
    ("ring", "all_reduce"): (MEAN, lambda c: flat(c, ring_all_reduce)),
    ("ring", "reduce_scatter"): (MEAN, lambda c: flat(c, event_stages.ring_phase)),
    ("ring", "all_gather"): (MEAN, lambda c: flat(c, event_stages.ring_phase)),
    ("double_binary_tree", "all_reduce"): (LONGEST, treed),
    ("recursive_halving_doubling", "all_reduce"): (
        LONGEST, lambda c: halved(event_doubling.all_reduce, c)),
    ("recursive_halving_doubling", "reduce_scatter"): (
        LONGEST, lambda c: halved(event_doubling.reduce_scatter, c)),
    ("recursive_halving_doubling", "all_gather"): (
        LONGEST, lambda c: halved(event_doubling.all_gather, c)),
    ("hierarchical", "all_reduce"): (MEAN, lambda c: inner(c, 2) + ring_rail(c, 2)),
    ("hierarchical", "reduce_scatter"): (MEAN, lambda c: inner(c, 1) + ring_rail(c, 1)),
    ("hierarchical", "all_gather"): (MEAN, lambda c: inner(c, 1) + ring_rail(c, 1)),
    ("hierarchical", "all_to_all"): (LONGEST, lambda c: event_all_to_all.by_rails(*c).finish),
    ("hierarchical_tree", "all_reduce"): (LONGEST, lambda c: inner(c, 2) + treed(rail(c))),
    ("hierarchical_halving_doubling", "all_reduce"): (
        LONGEST, lambda c: inner(c, 2) + halved(event_doubling.all_reduce, rail(c)),
    ),
    ("hierarchical_halving_doubling", "reduce_scatter"): (
        LONGEST, lambda c: inner(c, 1) + halved(event_doubling.reduce_scatter, rail(c)),
    ),
    ("hierarchical_halving_doubling", "all_gather"): (
        LONGEST, lambda c: inner(c, 1) + halved(event_doubling.all_gather, rail(c)),
    ),
    ("nvls", "all_reduce"): (MEAN, lambda c: added(c) + ring_rail(c, 2)),
    ("nvls", "reduce_scatter"): (MEAN, lambda c: added(c, spreads=False) + ring_rail(c, 1)),
    ("nvls", "all_gather"): (MEAN, lambda c: added(c, adds=False) + ring_rail(c, 1)),
    ("nvls_tree", "all_reduce"): (LONGEST, lambda c: added(c) + treed(rail(c))),
    ("sharp", "all_reduce"): (LONGEST, lambda c: inner(c, 2) + switched_across(c)),
    ("nvls_sharp", "all_reduce"): (LONGEST, lambda c: added(c) + switched_across(c)),
    ("direct", "all_to_all"): (LONGEST, lambda c: event_all_to_all.direct(*c).finish),
    ("direct", "point_to_point"): (MEAN, lambda c: event_all_to_all.message(*c).finish),
    ("pairwise", "all_to_all"): (LONGEST, lambda c: event_all_to_all.pairwise(*c).finish),
}  # fmt: skip
"""(answer, operation) -> the floor of its hops and the simulation of one call."""
HIDING = {("ring", op) for op in ("all_reduce", "reduce_scatter", "all_gather")}
HIDING |= {("direct", "all_to_all")}
every_case = pytest.mark.parametrize("case", EVENTS, ids="-".join)


@functools.cache
def simulated(case: tuple[str, str], network: str, payload: float, delay: float) -> np.ndarray:
    """The event-level time of every shape."""
    floor, run = EVENTS[case]
    hop = MEAN_HOP if floor == MEAN else LONGEST_HOP
    clusters = [cluster(g, d, RATES[network], hop, delay) for g, d in SHAPES]
    return np.array([run((c, payload)) for c in clusters])


def agrees(case: tuple[str, str], network: str, what: dict[str, float]) -> None:
    record, events = made(*case, network, **what), simulated(case, network, **what)
    np.testing.assert_allclose(total(record), events, rtol=1e-12, atol=1e-18)


@every_case
def test_latency_is_that_of_every_message(case: tuple[str, str]) -> None:
    agrees(case, "fast", LATENCY)


@every_case
@pytest.mark.parametrize("network", RATES)
def test_transfer_is_that_of_every_message(case: tuple[str, str], network: str) -> None:
    if (case[0], network) != ("ring", "slow"):
        agrees(case, network, TRANSFER)
        return
    # one of d channels leaves each NVLink port for the fabric: a domain of d carries (d - 1) / d
    record, events = made(*case, network, **TRANSFER), simulated(case, network, **TRANSFER)
    spare = np.array([d / (d - 1) if d > 1 and g > 1 else 1.0 for g, d in SHAPES])
    assert np.all(total(record) >= events * (1 - 1e-12))
    assert np.all(total(record) <= events * spare * (1 + 1e-12))


@every_case
@pytest.mark.parametrize("network", RATES)
def test_whole_time_is_that_of_every_message(case: tuple[str, str], network: str) -> None:
    if case not in HIDING:
        agrees(case, network, WHOLE)
        return
    record, events = made(*case, network, **WHOLE), simulated(case, network, **WHOLE)
    assert np.all(total(record) >= events * (1 - 1e-12))


def test_a_latency_of_the_mean_hop_in_a_tree_is_caught() -> None:
    clusters = [cluster(g, d, RATES["fast"], MEAN_HOP, 1.0) for g, d in SHAPES]
    wrong = np.array([treed((c, 0.0)) for c in clusters])
    right = total(made("double_binary_tree", "all_reduce", "fast", **LATENCY))
    several = np.array([g > 1 for g, _ in SHAPES])
    assert not np.any(np.isclose(wrong[several], right[several], rtol=1e-3))


def test_bytes_of_halving_and_doubling() -> None:
    """Where all domains are in pairs; the fold of the rest is in the time, not in the mean."""
    record = made("recursive_halving_doubling", "all_reduce", "fast", **TRANSFER)
    messages, carried = messages_of(record)
    for lane, (domains, size) in enumerate(SHAPES):
        if domains & (domains - 1) or size & (size - 1):
            continue
        run = event_doubling.all_reduce(Cluster(domains * size, size, 1.0, 1.0), PAYLOAD)
        assert messages[lane] == run.fabric_messages
        assert carried[lane] == pytest.approx(run.fabric_bytes, rel=1e-12)


def test_bytes_of_a_tree() -> None:
    """Every edge between two domains carries the payload up and down, over all rails and trees."""
    _, carried = messages_of(made("double_binary_tree", "all_reduce", "fast", **TRANSFER))
    edges = np.array([domains - 1 for domains, _ in SHAPES])
    np.testing.assert_allclose(carried, 2 * edges * PAYLOAD, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "run"),
    [
        ("direct", event_all_to_all.direct),
        ("pairwise", event_all_to_all.pairwise),
        ("hierarchical", event_all_to_all.by_rails),
    ],
)
def test_counts_of_an_all_to_all(name: str, run: Callable[[Cluster, float], Run]):
    messages, carried = messages_of(made(name, "all_to_all", "fast", **TRANSFER))
    runs = [run(Cluster(g * d, d, 1.0, 1.0), PAYLOAD) for g, d in SHAPES]
    np.testing.assert_array_equal(messages, [r.fabric_messages for r in runs])
    np.testing.assert_allclose(carried, [r.fabric_bytes for r in runs], rtol=1e-12)


@pytest.mark.parametrize("name", ["ring", "hierarchical"])
def test_two_phases_of_a_ring_are_an_all_reduce(name: str) -> None:
    """In bytes always; in hops where no chunk crosses its domain's edge twice a phase."""
    both = [made(name, op, "fast", **WHOLE) for op in ("reduce_scatter", "all_gather")]
    whole = made(name, "all_reduce", "fast", **WHOLE)
    transfer = sum(r.nvlink_transfer_time + r.fabric_transfer_time for r in both)
    once = whole.nvlink_transfer_time + whole.fabric_transfer_time
    np.testing.assert_allclose(transfer, once, rtol=1e-12)
    latency = both[0].exchange_latency + both[1].exchange_latency
    # the worst chunk of each phase crosses once more than the worst of both together at most
    assert np.all(latency >= whole.exchange_latency * (1 - 1e-12))
    spare = 0.0 if name == "hierarchical" else MEAN_HOP - NVLINK_HOP
    assert np.all(latency <= whole.exchange_latency + spare * (1 + 1e-9) + 1e-18)


def test_a_gigabyte_between_two_ports_of_400_gigabits() -> None:
    """8e9 bit over 400e9 bit/s: 20 ms; bytes over bits would be 2.5 ms."""
    lane = SHAPES.index((2, 1))
    record = made("ring", "all_reduce", "fast", **TRANSFER)
    assert total(record)[lane] == pytest.approx(8 * 1e9 / 400e9, rel=1e-12)
    assert total(record)[lane] == pytest.approx(0.020, rel=1e-12)
