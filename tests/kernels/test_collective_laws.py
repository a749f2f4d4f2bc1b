"""What every algorithm must obey on any cluster: bounds, monotone answers, `auto` the fastest.

The library's own cost model and its calibration choose by rules of thumb, and the seed document's
formula is kept as it was written: they are not held to these laws.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric_kernels.catalogue import ANSWERS
from fabric_kernels.model import ModelError
from fabricarlo.units import to_si
from tests.answers import PATH, answer

OPERATIONS = {
    "all_reduce": "replicated", "reduce_scatter": "reduce_scatter", "all_gather": "all_gather",
    "all_to_all": "all_to_all", "point_to_point": "point_to_point",
}  # fmt: skip
NOT_LAWFUL = {"nccl", "calibrated", "seed_document", "seed_document_as_written"}
ALGORITHMS = [name for name in ANSWERS["collective"] if name not in NOT_LAWFUL]
ADDING = {"nvls", "nvls_tree", "nvls_sharp", "sharp"}
"""Switches add: a port carries less than without them."""
FIELDS = (
    "nvlink_transfer_time", "fabric_transfer_time", "exchange_latency", "fabric_hops",
    "collective_algorithm",
)  # fmt: skip

Lanes = dict[str, np.ndarray]

configuration = st.fixed_dictionaries(
    {
        "domains": st.integers(1, 300) | st.integers(0, 12).map(lambda e: 2**e),
        "nvlink_domain": st.sampled_from([1, 2, 3, 4, 8, 16, 18, 72]),
        "payload": st.floats(0, 1e11) | st.floats(1, 1e6),
        "nvlink_rate": st.floats(1e10, 2e12),
        "gpu_rate": st.floats(1e9, 2e11),
        "nvlink_latency": st.floats(0, 1e-5),
        "hop_latency": st.floats(0, 1e-4),
        "longer": st.floats(1, 3),
        "fabric_reduction_latency": st.floats(0, 1e-5),
        "nvlink_reduction_efficiency": st.floats(0.3, 1),
        "tree_chunks": st.integers(1, 1000),
        "fabric_tiers": st.integers(1, 4),
        "nvlink_reduction": st.sampled_from([0, 1]),
        "fabric_reduction": st.sampled_from([0, 1]),
    }
)
clusters = st.lists(configuration, min_size=6, max_size=6)
LARGER = ("payload", "nvlink_latency", "hop_latency", "longest_hop_latency")
"""More of it never takes less time."""
FASTER = ("nvlink_rate", "gpu_rate")
"""More of it never takes more time."""


def refused(name: str, operation: str) -> bool:
    try:
        times(name, operation, lanes_of([EXAMPLE]))
    except ModelError:
        return True
    return False


def lanes_of(drawn: list[dict[str, Any]]) -> Lanes:
    lanes = {name: np.array([d[name] for d in drawn], float) for name in drawn[0]}
    lanes["longest_hop_latency"] = lanes["hop_latency"] * lanes.pop("longer")
    lanes["data_parallel"] = lanes.pop("domains") * lanes["nvlink_domain"]
    return lanes


def times(name: str, operation: str, lanes: Lanes) -> Lanes:
    """What an answer says, and `time`, the sum of it."""
    fixed = dict.fromkeys(("parameters", "tokens_per_step", "active_parameters"), 1e9) | PATH
    fixed |= dict.fromkeys(("tensor_parallel", "pipeline_parallel", "concurrent_groups"), 1.0)
    fixed |= {"bubble_share": 0.0, "full_clock_compute_time": 1.0, "gpus": lanes["data_parallel"]}
    records = {"operation": ANSWERS["operation"][OPERATIONS[operation]]()}
    found = answer("collective", name, fixed | lanes, records=records)
    found = {field: found[field] for field in FIELDS}
    found["time"] = sum(found[field] for field in FIELDS[:3])
    return found


EXAMPLE = {
    "domains": 4, "nvlink_domain": 4, "payload": 1e9, "nvlink_rate": 4e11, "gpu_rate": 5e10,
    "nvlink_latency": 1e-6, "hop_latency": 5e-6, "longer": 1.5, "fabric_reduction_latency": 1e-7,
    "nvlink_reduction_efficiency": 0.7, "tree_chunks": 16, "fabric_tiers": 2,
    "nvlink_reduction": 1, "fabric_reduction": 1,
}  # fmt: skip
PAIRS = [
    (name, operation)
    for name in ALGORITHMS
    for operation in OPERATIONS
    if not refused(name, operation)
]
every_pair = pytest.mark.parametrize(("name", "operation"), PAIRS)


def varied(lanes: Lanes, factor: float) -> tuple[Lanes, list[str]]:
    """The lanes, then again with one quantity after another times a factor."""
    changed = [*LARGER, *FASTER]
    blocks = [lanes] + [lanes | {name: lanes[name] * factor} for name in changed]
    return {name: np.concatenate([block[name] for block in blocks]) for name in lanes}, changed


def least(operation: str, lanes: Lanes, adding: np.ndarray | bool) -> np.ndarray:
    """A time that no algorithm beats: the bytes that must leave a port, or a domain's ports.

    A domain of d ranks sends at least (G - 1) / G of the payload for each phase, over d ports; a
    rank sends (g - 1) / g for each phase by whatever ports it has. Where switches add, a port
    sends the payload once for both phases.
    """
    ranks, size = lanes["data_parallel"], lanes["nvlink_domain"]
    domains, phases = ranks / size, 2.0 if operation == "all_reduce" else 1.0
    if operation == "point_to_point":
        rate = np.where(domains > 1, lanes["gpu_rate"], lanes["nvlink_rate"])
        return np.where(ranks > 1, lanes["payload"] / rate, 0.0)
    if operation == "all_to_all":
        per_rank = lanes["payload"] / ranks
        fabric, nvlink = (ranks - size) * per_rank, (size - 1) * per_rank
        return np.maximum(fabric / lanes["gpu_rate"], nvlink / lanes["nvlink_rate"])
    sent = np.where(adding, 1.0, phases)
    across = sent * (domains - 1) / domains * lanes["payload"] / size / lanes["gpu_rate"]
    own = sent * (ranks - 1) / ranks * lanes["payload"]
    both = lanes["nvlink_rate"] * (size > 1) + lanes["gpu_rate"] * (domains > 1)
    return np.maximum(across, np.where(ranks > 1, own / np.where(both > 0, both, 1.0), 0.0))


@every_pair
@settings(max_examples=6)
@given(clusters, st.floats(1.001, 50))
def test_time_grows_with_bytes_and_latency_and_falls_with_rate(
    name: str, operation: str, drawn: list[dict[str, Any]], factor: float
) -> None:
    lanes, changed = varied(lanes_of(drawn), factor)
    found = times(name, operation, lanes)["time"].reshape(1 + len(changed), -1)
    assert np.all(~(found[0] < 0))
    for quantity, later in zip(changed, found[1:], strict=True):
        np.testing.assert_array_equal(np.isnan(later), np.isnan(found[0]))
        more, less = (later, found[0]) if quantity in LARGER else (found[0], later)
        kept = ~np.isnan(found[0])
        assert np.all(more[kept] >= less[kept] * (1 - 1e-12)), quantity


@every_pair
@settings(max_examples=6)
@given(clusters)
def test_no_faster_than_its_ports(
    name: str, operation: str, drawn: list[dict[str, Any]]
) -> None:
    lanes = lanes_of(drawn)
    found = times(name, operation, lanes)
    able = (lanes["nvlink_reduction"] > 0) | (lanes["fabric_reduction"] > 0)
    adding = able if name == "auto" else name in ADDING
    transfer = found["nvlink_transfer_time"] + found["fabric_transfer_time"]
    kept = ~np.isnan(transfer)
    bound = least(operation, lanes, adding)
    assert np.all(transfer[kept] >= bound[kept] * (1 - 1e-12))


@pytest.mark.parametrize("operation", OPERATIONS)
@settings(max_examples=8)
@given(clusters)
def test_auto_is_the_fastest(operation: str, drawn: list[dict[str, Any]]) -> None:
    """Never slower than a single algorithm, and as fast as the one that it names."""
    lanes = lanes_of(drawn)
    chosen = times("auto", operation, lanes)
    single = {n: times(n, operation, lanes) for n, o in PAIRS if o == operation and n != "auto"}
    every = np.array([found["time"] for found in single.values()])
    np.testing.assert_allclose(chosen["time"], np.nanmin(every, axis=0), rtol=1e-12, atol=1e-18)
    named = np.zeros_like(chosen["time"], bool)
    for found in single.values():
        same = found["collective_algorithm"] == chosen["collective_algorithm"]
        named |= same & np.isclose(found["time"], chosen["time"], rtol=1e-12, atol=1e-18)
    assert np.all(named)


@every_pair
def test_one_rank_exchanges_nothing(name: str, operation: str) -> None:
    lanes = lanes_of([EXAMPLE | {"domains": 1, "nvlink_domain": 1}])
    found = times(name, operation, lanes)
    assert found["time"] == 0
    assert found["fabric_hops"] == 0


@every_pair
def test_one_domain_leaves_the_fabric_alone(name: str, operation: str) -> None:
    found = times(name, operation, lanes_of([EXAMPLE | {"domains": 1}]))
    assert found["fabric_transfer_time"] == found["fabric_hops"] == 0
    assert found["time"] > 0


@pytest.mark.parametrize("name", ["nvls", "nvls_tree", "nvls_sharp"])
def test_nvlink_switches_that_cannot_add_give_no_time(name: str) -> None:
    lanes = lanes_of([EXAMPLE | {"nvlink_reduction": 0}, EXAMPLE])
    assert np.isnan(times(name, "all_reduce", lanes)["time"]).tolist() == [True, False]


@pytest.mark.parametrize("name", ["sharp", "nvls_sharp"])
def test_fabric_switches_that_cannot_add_give_no_time(name: str) -> None:
    lanes = lanes_of([EXAMPLE | {"fabric_reduction": 0}, EXAMPLE])
    assert np.isnan(times(name, "all_reduce", lanes)["time"]).tolist() == [True, False]


def test_more_oversubscription_never_helps() -> None:
    """At as many tiers; more downlinks may save one."""
    ratio = np.repeat([1.0, 1.5, 2.0, 3.0, 7.0, 10.0], 8)
    gpus = np.tile([64.0, 512.0, 1024.0, 4096.0, 16384.0, 65536.0, 131072.0, 8.0], 6)
    given_ = {"gpus": gpus, "oversubscription": ratio, "nvlink_domain": 8.0, "nvlink_rate": 4e11}
    given_ |= {"link_rate": 5e10, "switch_latency": 6e-7, "data_parallel": gpus, "payload": 1e9}
    given_ |= {"tensor_parallel": 1.0, "pipeline_parallel": 1.0, "parameters": 1e9}
    given_ |= {"concurrent_groups": 1.0, "tokens_per_step": 1.0, "active_parameters": 1.0}
    given_ |= {"bubble_share": 0.0, "full_clock_compute_time": 1.0}
    known: dict[str, Any] = given_ | answer("placement", "worst", given_)
    known |= answer("routing", "adaptive", known)
    path = answer("path", "fat_tree", known)
    found = answer("collective", "hierarchical", known | path)
    total = sum(found[field] for field in FIELDS[:3]).reshape(6, 8)
    tiers = path["fabric_tiers"].reshape(6, 8)
    slower = (total[1:] >= total[:-1] * (1 - 1e-12)) | (tiers[1:] != tiers[:-1])
    assert np.all(slower)
    assert np.any(total[-1] > 2 * total[0])


def test_a_gigabyte_over_400_gigabits_takes_20_milliseconds() -> None:
    """Two ranks send S once in all: 1 GB over 50 GB/s. Bytes over bits would be 2.5 ms."""
    small = {"nvlink_domain": 1, "domains": 2, "nvlink_latency": 0.0, "hop_latency": 0.0}
    case = EXAMPLE | small | {"gpu_rate": to_si("400 Gbit/s", "B s-1"), "payload": to_si("1 GB", "B")}
    found = times("ring", "all_reduce", lanes_of([case]))
    assert float(found["time"][0]) == pytest.approx(0.020, rel=1e-12)


def test_half_a_payload_through_adding_switches_is_caught() -> None:
    """A reduce-scatter that shared the all-reduce's bytes evenly would beat the ports."""
    lanes = lanes_of([EXAMPLE | {"domains": 1, "nvlink_domain": 72}])
    whole = times("nvls", "all_reduce", lanes)["nvlink_transfer_time"]
    bound = least("reduce_scatter", lanes, adding=True)
    assert whole / 2 < bound
    assert times("nvls", "reduce_scatter", lanes)["nvlink_transfer_time"] > bound
