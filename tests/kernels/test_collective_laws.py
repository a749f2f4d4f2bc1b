"""What every algorithm must obey on any cluster: bounds, monotone answers, `auto` the fastest.

The library's own cost model and its calibration choose by rules of thumb, and the seed document's
formula is kept as it was written: they are not held to these laws.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabricarlo.units import to_si
from tests.answers import answer
from tests.kernels.collective_lanes import OPERATIONS, every_algorithm

ADDING = {"nvls", "nvls_tree", "nvls_sharp", "sharp"}
"""Switches add: a port carries less than without them."""
FIELDS = (
    "nvlink_transfer_time", "fabric_transfer_time", "exchange_latency", "fabric_hops",
    "collective_algorithm",
)  # fmt: skip
LARGER = ("payload", "nvlink_latency", "hop_latency", "longest_hop_latency")
"""More of it never takes less time."""
FASTER = ("nvlink_rate", "gpu_rate")
"""More of it never takes more time."""
CLUSTERS, LANES = 36, 252
"""Clusters of one check, and lanes of every program: each cluster plain and with six changes."""
EXAMPLE = {
    "domains": 4, "nvlink_domain": 4, "payload": 1e9, "nvlink_rate": 4e11, "gpu_rate": 5e10,
    "nvlink_latency": 1e-6, "hop_latency": 5e-6, "longer": 1.5, "fabric_reduction_latency": 1e-7,
    "nvlink_reduction_efficiency": 0.7, "tree_chunks": 16, "fabric_tiers": 2,
    "nvlink_reduction": 1, "fabric_reduction": 1,
}  # fmt: skip

Lanes = dict[str, np.ndarray]
seeds = st.integers(0, 2**32 - 1)
every_operation = pytest.mark.parametrize("operation", OPERATIONS)


def lanes_of(drawn: Lanes) -> Lanes:
    """With the longest hop and the ranks of groups that fill their domains."""
    lanes = dict(drawn)
    lanes["longest_hop_latency"] = lanes["hop_latency"] * lanes.pop("longer")
    lanes["data_parallel"] = lanes.pop("domains") * lanes["nvlink_domain"]
    return lanes


def example(**changes: float) -> Lanes:
    """One cluster of one lane."""
    return lanes_of({name: np.array([v], float) for name, v in (EXAMPLE | changes).items()})


def clusters(seed: int, count: int) -> Lanes:
    """Clusters of every size, some without latency, some with nothing to send."""
    generator = np.random.default_rng(seed)

    def between(low: float, high: float) -> np.ndarray:
        return np.exp(generator.uniform(np.log(low), np.log(high), count))

    def some(values: np.ndarray) -> np.ndarray:
        return np.where(generator.random(count) < 0.1, 0.0, values)

    def one_of(*values: float) -> np.ndarray:
        return generator.choice(np.array(values, float), count)

    powers = np.exp2(generator.integers(0, 13, count))
    domains = np.where(generator.random(count) < 0.5, powers, np.round(between(1, 4000)))
    drawn = {
        "domains": domains, "nvlink_domain": one_of(1, 2, 3, 4, 8, 16, 18, 72),
        "payload": some(between(1, 1e11)), "nvlink_rate": between(1e10, 2e12),
        "gpu_rate": between(1e9, 2e11), "nvlink_latency": some(between(1e-8, 1e-5)),
        "hop_latency": some(between(1e-7, 1e-4)), "longer": between(1, 3),
        "fabric_reduction_latency": between(1e-8, 1e-5),
        "nvlink_reduction_efficiency": between(0.3, 1),
        "tree_chunks": np.round(between(1, 1000)), "fabric_tiers": one_of(1, 2, 3, 4),
        "nvlink_reduction": one_of(0, 1), "fabric_reduction": one_of(0, 1),
    }  # fmt: skip
    return lanes_of(drawn)


def times(operation: str, lanes: Lanes) -> dict[str, Lanes]:
    """What every algorithm says by name, and `time`, the sum of it."""
    count, found = len(lanes["payload"]), {}
    for name, made in every_algorithm(operation, lanes, LANES).items():
        values = {field: getattr(made, field)[:count] for field in FIELDS}
        found[name] = values | {"time": sum(values[field] for field in FIELDS[:3])}
    return found


def varied(lanes: Lanes, factor: float) -> tuple[Lanes, list[str]]:
    """The lanes, then again with one quantity after another times a factor."""
    changed = [*LARGER, *FASTER]
    blocks = [lanes] + [lanes | {name: lanes[name] * factor} for name in changed]
    return {name: np.concatenate([block[name] for block in blocks]) for name in lanes}, changed


def least(operation: str, lanes: Lanes, adding: np.ndarray) -> np.ndarray:
    """A time that no algorithm beats: the bytes that must leave a port, or a domain's ports.

    A domain of d ranks sends at least (G - 1) / G of the payload for each phase, over d ports; a
    rank sends (g - 1) / g for each phase by whatever ports it has. Where switches add, a port
    sends that once for both phases.
    """
    ranks, size = lanes["data_parallel"], lanes["nvlink_domain"]
    domains, phases = ranks / size, 2.0 if operation == "all_reduce" else 1.0
    if operation == "point_to_point":
        rate = np.where(domains > 1, lanes["gpu_rate"], lanes["nvlink_rate"])
        return np.where(ranks > 1, lanes["payload"] / rate, 0.0)
    if operation == "all_to_all":
        per_rank = lanes["payload"] / ranks
        fabric, nvlink = (ranks - size) * per_rank, (size - 1) * per_rank
        # by rails the port into the domain has the whole payload, the other what leaves the domain
        return np.maximum(fabric / lanes["gpu_rate"], nvlink / lanes["nvlink_rate"])
    sent = np.where(adding, 1.0, phases)
    across = sent * (domains - 1) / domains * lanes["payload"] / size / lanes["gpu_rate"]
    both = lanes["nvlink_rate"] * (size > 1) + lanes["gpu_rate"] * (domains > 1)
    own = sent * (ranks - 1) / ranks * lanes["payload"] / np.where(ranks > 1, both, 1.0)
    return np.maximum(across, own)


@every_operation
@settings(max_examples=5)
@given(seeds, st.floats(1.001, 50))
def test_time_grows_with_bytes_and_latency_and_falls_with_rate(
    operation: str, seed: int, factor: float
) -> None:
    lanes, changed = varied(clusters(seed, CLUSTERS), factor)
    for name, found in times(operation, lanes).items():
        first, *others = found["time"].reshape(1 + len(changed), -1)
        kept = ~np.isnan(first)
        assert np.all(first[kept] >= 0)
        for quantity, later in zip(changed, others, strict=True):
            np.testing.assert_array_equal(np.isnan(later), ~kept)
            more, less = (later, first) if quantity in LARGER else (first, later)
            assert np.all(more[kept] >= less[kept] * (1 - 1e-12)), (name, quantity)


@every_operation
@settings(max_examples=5)
@given(seeds)
def test_no_faster_than_its_ports(operation: str, seed: int) -> None:
    """So bus bandwidth is never above what the ports carry."""
    lanes = clusters(seed, LANES)
    able = (lanes["nvlink_reduction"] > 0) | (lanes["fabric_reduction"] > 0)
    for name, found in times(operation, lanes).items():
        adding = able if name == "auto" else np.array(name in ADDING)
        transfer = found["nvlink_transfer_time"] + found["fabric_transfer_time"]
        below = transfer < least(operation, lanes, adding) * (1 - 1e-12)
        assert not below.any(), (name, {n: value[below] for n, value in lanes.items()})


@every_operation
@settings(max_examples=5)
@given(seeds)
def test_auto_is_the_fastest(operation: str, seed: int) -> None:
    """Never slower than a single algorithm, and as fast as the one that it names."""
    single = times(operation, clusters(seed, LANES))
    chosen = single.pop("auto")
    every = np.array([found["time"] for found in single.values()])
    np.testing.assert_allclose(chosen["time"], np.nanmin(every, axis=0), rtol=1e-12, atol=1e-18)
    named = np.zeros(LANES, bool)
    for found in single.values():
        same = found["collective_algorithm"] == chosen["collective_algorithm"]
        named |= same & np.isclose(found["time"], chosen["time"], rtol=1e-12, atol=1e-18)
    assert np.all(named)


@every_operation
def test_one_rank_exchanges_nothing(operation: str) -> None:
    for found in times(operation, example(domains=1, nvlink_domain=1)).values():
        assert found["time"] == 0
        assert found["fabric_hops"] == 0


@every_operation
def test_one_domain_leaves_the_fabric_alone(operation: str) -> None:
    for found in times(operation, example(domains=1)).values():
        assert found["fabric_transfer_time"] == found["fabric_hops"] == 0
        assert found["time"] > 0


@pytest.mark.parametrize("network", ["nvlink", "fabric"])
def test_switches_that_cannot_add_give_no_time(network: str) -> None:
    cannot = times("all_reduce", example(**{f"{network}_reduction": 0}))
    needs = {"nvlink": {"nvls", "nvls_tree", "nvls_sharp"}, "fabric": {"sharp", "nvls_sharp"}}
    assert {name for name, found in cannot.items() if np.isnan(found["time"])} == needs[network]
    assert all(np.isfinite(found["time"]) for found in times("all_reduce", example()).values())


def test_more_oversubscription_never_helps() -> None:
    """At as many tiers; more downlinks may save one."""
    ratio = np.repeat([1.0, 1.5, 2.0, 3.0, 7.0, 10.0], 8)
    gpus = np.tile([64.0, 512.0, 1024.0, 4096.0, 16384.0, 65536.0, 131072.0, 8.0], 6)
    known: dict[str, Any] = {"gpus": gpus, "oversubscription": ratio, "nvlink_domain": 8.0}
    known |= {"nvlink_rate": 4e11, "link_rate": 5e10, "switch_latency": 6e-7, "parameters": 1e9}
    known |= {"tensor_parallel": 1.0, "pipeline_parallel": 1.0}
    known |= answer("placement", "worst", known) | answer("routing", "adaptive", known)
    path = answer("path", "fat_tree", known)
    few = {name: value for name, value in example().items() if value.shape == (1,)}
    lanes = {name: np.repeat(value, 48) for name, value in few.items()}
    lanes |= {"nvlink_domain": np.full(48, 8.0), "data_parallel": gpus}
    lanes |= {name: path[name] for name in ("gpu_rate", "hop_latency", "longest_hop_latency")}
    tiers = path["fabric_tiers"].reshape(6, 8)
    for name, found in times("all_reduce", lanes).items():
        time = found["time"].reshape(6, 8)
        slower = (time[1:] >= time[:-1] * (1 - 1e-12)) | (tiers[1:] != tiers[:-1])
        assert np.all(slower), name
    assert np.any(path["gpu_rate"].reshape(6, 8)[-1] < 0.2 * path["gpu_rate"].reshape(6, 8)[0])


def test_a_gigabyte_over_400_gigabits_takes_20_milliseconds() -> None:
    """Two ranks send S once in all: 1 GB over 50 GB/s. Bytes over bits would be 2.5 ms."""
    ports = {"gpu_rate": to_si("400 Gbit/s", "B s-1"), "payload": to_si("1 GB", "B")}
    lanes = example(nvlink_domain=1, domains=2, nvlink_latency=0, hop_latency=0, **ports)
    time = float(times("all_reduce", lanes)["ring"]["time"][0])
    assert time == pytest.approx(0.020, rel=1e-12)


def test_half_a_payload_through_adding_switches_is_caught() -> None:
    """A reduce-scatter that had half of an all-reduce's bytes would beat its ports."""
    lanes = example(domains=1, nvlink_domain=72)
    whole = times("all_reduce", lanes)["nvls"]["nvlink_transfer_time"]
    bound = least("reduce_scatter", lanes, np.ones(1, bool))
    assert whole / 2 < bound
    assert times("reduce_scatter", lanes)["nvls"]["nvlink_transfer_time"] > bound
