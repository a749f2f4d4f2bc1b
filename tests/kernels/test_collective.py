"""Collectives against every message of an all-reduce, one by one."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.answers import PATH, answer, answered, messages_of
from tests.reference import event_hierarchical, event_ring
from tests.reference.event_ring import Cluster
from tests.reference.step import seed_time

PAYLOAD = 1e9
SHAPES = [(2, 1), (5, 1), (8, 2), (9, 3), (16, 4), (8, 8), (12, 6), (32, 8), (64, 8)]
RATES = [(9e11, 5e10), (1e11, 5e10)]  # NVLink wider and narrower than the ports of a domain
ALGORITHMS = ["ring", "hierarchical"]

Found = dict[str, np.ndarray]


def collective(name: str, cluster: Cluster, tensor: int = 1, **changes: float) -> Found:
    return answer("collective", name, numbers(cluster, tensor) | changes)


def numbers(cluster: Cluster, tensor: int = 1) -> dict[str, float]:
    return {
        "gpus": cluster.ranks * tensor,
        "parameters": PAYLOAD,
        "tensor_parallel": tensor,
        "pipeline_parallel": 1,
        "nvlink_domain": cluster.domain * tensor,
        "nvlink_rate": cluster.nvlink_rate,
        "nvlink_latency": cluster.nvlink_latency,
        "data_parallel": cluster.ranks,
        "concurrent_groups": tensor,
        "payload": PAYLOAD,
        "active_parameters": 1,
        "tokens_per_step": 1,
        "full_clock_compute_time": 1,
        "bubble_share": 0,
        "fabric_tiers": 2,
        "hop_latency": cluster.fabric_latency,
        "gpu_rate": cluster.fabric_rate,
        "link_rate": cluster.fabric_rate,
        "switch_latency": 1e-6,
        **PATH,
        "longest_hop_latency": cluster.fabric_latency,
    }


def transfer(found: Found) -> float:
    return float(found["nvlink_transfer_time"] + found["fabric_transfer_time"])


def simulated(name: str, cluster: Cluster, payload: float) -> event_ring.Run:
    if name == "hierarchical":
        return event_hierarchical.all_reduce(cluster, payload)
    several = cluster.domain if cluster.ranks > cluster.domain else 1
    return event_ring.all_reduce(cluster, payload, channels=several)


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize(("nvlink_rate", "fabric_rate"), RATES)
@pytest.mark.parametrize(("ranks", "domain"), SHAPES)
def test_transfer_agrees_with_every_message(
    name: str, ranks: int, domain: int, nvlink_rate: float, fabric_rate: float
):
    cluster = Cluster(ranks, domain, nvlink_rate, fabric_rate)
    found, run = collective(name, cluster), simulated(name, cluster, PAYLOAD)
    assert transfer(found) == pytest.approx(run.finish, rel=1e-9)


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize(("ranks", "domain"), SHAPES)
def test_latency_agrees_with_every_message(name: str, ranks: int, domain: int):
    cluster = Cluster(ranks, domain, 1e11, 5e10, 1e-6, 3e-6)
    found, run = collective(name, cluster), simulated(name, cluster, 0.0)
    assert found["exchange_latency"] == pytest.approx(run.finish, rel=1e-9)


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize(("ranks", "domain"), SHAPES)
def test_counts_agree_with_every_message(name: str, ranks: int, domain: int):
    cluster = Cluster(ranks, domain, 1e11, 5e10)
    messages, carried = messages_of(answered("collective", name, numbers(cluster)))
    run = simulated(name, cluster, PAYLOAD)
    assert messages == run.fabric_messages
    assert carried == pytest.approx(run.fabric_bytes, rel=1e-9)


@pytest.mark.parametrize(("ranks", "domain"), SHAPES)
def test_hops_of_a_ring_across_the_fabric(ranks: int, domain: int):
    cluster = Cluster(ranks, domain, 1e11, 5e10)
    hops = math.ceil(2 * (ranks - 1) / domain) if ranks > domain else 0
    assert collective("ring", cluster)["fabric_hops"] == hops
    if ranks > domain:
        assert hops == event_ring.longest_fabric_chain(cluster)


def test_the_simulation_sees_a_domain_forgotten():
    """A ring that did not know its NVLink domains would be far from every message."""
    cluster = Cluster(16, 4, 9e11, 5e10)
    flat = transfer(collective("ring", Cluster(16, 1, 9e11, 5e10)))
    assert flat > 3 * simulated("ring", cluster, PAYLOAD).finish


@pytest.mark.parametrize("name", ALGORITHMS)
def test_one_rank_exchanges_nothing(name: str):
    found = collective(name, Cluster(1, 1, 1e11, 5e10, 1e-6, 3e-6))
    assert not any(found[name].any() for name in found if name != "collective_algorithm"), found


@pytest.mark.parametrize("name", ALGORITHMS)
def test_one_domain_leaves_the_fabric_alone(name: str):
    found = collective(name, Cluster(8, 8, 1e11, 5e10, 1e-6, 3e-6))
    for quantity in ("fabric_transfer_time", "fabric_hops"):
        assert found[quantity] == 0
    made = answered("collective", name, numbers(Cluster(8, 8, 1e11, 5e10)))
    assert messages_of(made) == (0, 0)
    assert found["nvlink_transfer_time"] == pytest.approx(2 * 7 / 8 * PAYLOAD / 1e11)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_tensor_parallelism_fills_the_domain_first(name: str):
    """72 GPUs a domain with tensor_parallel 8 leave 9 ranks of a group in it; 64 over 8, 8."""
    plain, split = (collective(name, Cluster(72, 9, 1e11, 5e10), tensor) for tensor in (1, 8))
    assert all(np.array_equal(plain[quantity], split[quantity]) for quantity in plain)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_ranks_that_do_not_fill_their_domains_are_spread(name: str):
    """73 ranks over domains of 72 are 36 and 37, not 72 and 1."""
    found = collective(name, Cluster(73, 1, 1e11, 5e10), nvlink_domain=72)
    even = collective(name, Cluster(72, 36, 1e11, 5e10), nvlink_domain=36)
    assert transfer(found) == pytest.approx(transfer(even), rel=0.02)


@given(
    st.sampled_from(ALGORITHMS),
    st.integers(2, 2**20),
    st.integers(1, 1024),
    st.floats(1e9, 1e13),
    st.floats(1e9, 1e12),
)
def test_no_faster_than_the_bounds(
    name: str, ranks: int, domain: int, nvlink_rate: float, fabric_rate: float
):
    """Every rank sends at least 2 (g - 1) / g of its payload, a domain d ports' worth of it."""
    cluster = Cluster(ranks, 1, nvlink_rate, fabric_rate, 1e-6, 3e-6)
    found = collective(name, cluster, nvlink_domain=domain)
    assert all(np.isfinite(value) and value >= 0 for value in found.values())
    if ranks > domain:
        domains = math.ceil(ranks / domain)
        bound = 2 * (domains - 1) / domains * PAYLOAD / (min(domain, ranks) * fabric_rate)
        assert transfer(found) >= bound * (1 - 1e-12)
    assert found["fabric_hops"] <= 2 * (ranks - 1)
    assert found["exchange_latency"] <= 2 * (ranks - 1) * 3e-6 * (1 + 1e-12)


def test_the_seed_documents_case():
    """100,000 GPUs, 1.8e12 parameters of 2 B, 800 Gbit/s, 1.2 us: 71.9993 s and 8.99993 s."""
    case = {"payload": 3.6e12, "link_rate": 1e11, "hop_latency": 1.2e-6}
    cluster = Cluster(100_000, 1, 1e11, 1e11)
    wire, written = seed_time(100_000, 3.6e12, 800e9, 1.2e-6)
    for name, reference, printed in (
        ("seed_document", wire, 71.9993),
        ("seed_document_as_written", written, 8.99993),
    ):
        found = collective(name, cluster, **case)
        time = transfer(found) + found["exchange_latency"]
        assert time == pytest.approx(reference, rel=1e-12)
        assert time == pytest.approx(printed, rel=1e-6)
