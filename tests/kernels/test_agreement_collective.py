"""Collectives against message-by-message simulations of the same cluster."""

import numpy as np
import pytest

from tests.answers import PATH, answer, answered, messages_of
from tests.reference import event_hierarchical, event_ring
from tests.reference.step import seed_time

# ranks of the group and how many of them share an NVLink domain
SHAPES = [
    (2, 1), (5, 1), (16, 1), (64, 1), (4, 2), (16, 2), (12, 3), (8, 4),
    (16, 4), (24, 8), (64, 8), (2, 2), (8, 8),
]  # fmt: skip
PAYLOAD = 1e9
FAST = {"nvlink_rate": 900e9, "gpu_rate": 50e9, "nvlink_latency": 1e-6, "hop_latency": 6e-6}
UNREAD = {"active_parameters": 1.0, **PATH}
SLOW_NVLINK = FAST | {"nvlink_rate": 90e9}


def numbers(network: dict[str, float]) -> dict[str, np.ndarray | float]:
    """What the answers need for every shape."""
    ranks, domain = np.array(SHAPES, float).T
    given = {"gpus": ranks, "data_parallel": ranks, "nvlink_domain": domain, "parameters": 1e9}
    given |= {"tensor_parallel": 1.0, "pipeline_parallel": 1.0, "concurrent_groups": 1.0}
    given |= {"payload": np.full(len(SHAPES), PAYLOAD), "tokens_per_step": 1e6, "bubble_share": 0.0}
    return given | {"full_clock_compute_time": 1.0, "fabric_tiers": 2.0, **UNREAD} | network


def made(name: str, network: dict[str, float]) -> dict[str, np.ndarray]:
    """What the answer says for every shape, as float64 lanes."""
    return answer("collective", name, numbers(network))


def clusters(network: dict[str, float], latency: float) -> list[event_ring.Cluster]:
    """The clusters of every shape with latencies times `latency`."""
    delays = latency * network["nvlink_latency"], latency * network["hop_latency"]
    rates = network["nvlink_rate"], network["gpu_rate"]
    return [event_ring.Cluster(g, d, *rates, *delays) for g, d in SHAPES]


def simulated(name: str, cluster: event_ring.Cluster, payload: float) -> event_ring.Run:
    """One event-level run; the flat ring has one channel for every rank of a domain."""
    if name == "ring":
        return event_ring.all_reduce(cluster, payload, cluster.domain)
    return event_hierarchical.all_reduce(cluster, payload)


def transfer(product: dict[str, np.ndarray]) -> np.ndarray:
    return product["nvlink_transfer_time"] + product["fabric_transfer_time"]


@pytest.mark.parametrize("name", ["ring", "hierarchical"])
def test_latency_is_that_of_an_empty_message(name: str) -> None:
    events = [simulated(name, cluster, 0.0).finish for cluster in clusters(FAST, 1.0)]
    np.testing.assert_allclose(made(name, FAST)["exchange_latency"], events, rtol=1e-12)


@pytest.mark.parametrize("name", ["ring", "hierarchical"])
def test_transfer_is_that_of_a_network_without_latency(name: str) -> None:
    events = [simulated(name, cluster, PAYLOAD).finish for cluster in clusters(FAST, 0.0)]
    np.testing.assert_allclose(transfer(made(name, FAST)), events, rtol=1e-12)


@pytest.mark.parametrize("name", ["ring", "hierarchical"])
def test_slow_nvlink_is_never_underestimated(name: str) -> None:
    events = [simulated(name, cluster, PAYLOAD).finish for cluster in clusters(SLOW_NVLINK, 0.0)]
    product = transfer(made(name, SLOW_NVLINK))
    assert np.all(product >= np.array(events) * (1 - 1e-12))
    # one of d channels leaves each NVLink port for the fabric: a domain of d carries (d - 1) / d
    spare = np.array([d / (d - 1) if 1 < d < g and name == "ring" else 1.0 for g, d in SHAPES])
    assert np.all(product <= np.array(events) * spare * (1 + 1e-12))


@pytest.mark.parametrize("name", ["ring", "hierarchical"])
def test_sum_of_transfer_and_latency_bounds_the_run(name: str) -> None:
    events = [simulated(name, cluster, PAYLOAD).finish for cluster in clusters(FAST, 1.0)]
    product = made(name, FAST)
    total = transfer(product) + product["exchange_latency"]
    assert np.all(total >= np.array(events) * (1 - 1e-12))
    # a ring of mixed hops hides part of the NVLink latency behind the fabric ports: up to 5 % here
    assert np.all(total <= np.array(events) * (1.05 if name == "ring" else 1 + 1e-12))


@pytest.mark.parametrize("name", ["ring", "hierarchical"])
def test_fabric_carries_as_many_bytes(name: str) -> None:
    events = [simulated(name, cluster, PAYLOAD).fabric_bytes for cluster in clusters(FAST, 0.0)]
    _, carried = messages_of(answered("collective", name, numbers(FAST)))
    np.testing.assert_allclose(carried, events, rtol=1e-12)


@pytest.mark.parametrize("name", ["ring", "hierarchical"])
def test_fabric_carries_as_many_messages(name: str) -> None:
    events = [simulated(name, cluster, PAYLOAD).fabric_messages for cluster in clusters(FAST, 0.0)]
    counted, _ = messages_of(answered("collective", name, numbers(FAST)))
    np.testing.assert_allclose(counted, events, rtol=1e-12)


def test_ring_crosses_the_fabric_as_often_as_the_worst_chunk() -> None:
    events = [event_ring.longest_fabric_chain(cluster) for cluster in clusters(FAST, 0.0)]
    np.testing.assert_array_equal(made("ring", FAST)["fabric_hops"], events)


def test_hierarchical_crosses_the_fabric_once_a_step() -> None:
    counted = [
        round(simulated("hierarchical", event_ring.Cluster(g, d, 1.0, 1.0, 0.0, 1.0), 0.0).finish)
        for g, d in SHAPES
    ]
    np.testing.assert_array_equal(made("hierarchical", FAST)["fabric_hops"], counted)


def test_float32_loses_nothing() -> None:
    single = answer("collective", "hierarchical", numbers(FAST), dtype=np.float32)
    for name, value in made("hierarchical", FAST).items():
        np.testing.assert_allclose(single[name], value, rtol=1e-6, err_msg=name)


SEED = {"payload": 3.6e12, "data_parallel": 1e5, "gpus": 1e5, "hop_latency": 1.2e-6}
SEED |= {"link_rate": 100e9, "gpu_rate": 95e9, "fabric_tiers": 3.0, "switch_latency": 1e-7}
SEED |= {"concurrent_groups": 1.0, "tokens_per_step": 1e6, "bubble_share": 0.0}
SEED |= {"full_clock_compute_time": 1.0, "parameters": 1.8e12, **UNREAD}


@pytest.mark.parametrize(("name", "which"), [("seed_document", 0), ("seed_document_as_written", 1)])
def test_seed_document_is_reproduced(name: str, which: int) -> None:
    product = answer("collective", name, SEED)
    total = float(transfer(product) + product["exchange_latency"])
    assert total == pytest.approx(seed_time(100_000, 3.6e12, 800e9, 1.2e-6)[which], rel=1e-9)


def test_latency_of_the_seed_document_is_not_that_of_a_ring() -> None:
    events = event_ring.all_reduce(event_ring.Cluster(64, 1, 1.0, 1.0, 0.0, 1.2e-6), 0.0, 1).finish
    given = SEED | {"gpus": 64.0, "data_parallel": 64.0}
    wrong = float(answer("collective", "seed_document", given)["exchange_latency"])
    assert wrong < events / 10
