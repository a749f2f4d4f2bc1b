"""Fat trees, rails and planes: numbers by hand, invariants, what is refused."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric_kernels.catalogue import REFUSALS
from fabric_kernels.inputs import Job, Planes, ScaleOut, ScaleUp, UpperTiers
from fabric_kernels.path import Path
from fabric_kernels.path.fat_tree import fat_tree, fat_tree_refusal
from fabric_kernels.path.multi_plane import multi_plane, multi_plane_refusal
from fabric_kernels.path.rail_optimised import rail_optimised, rail_optimised_refusal
from fabric_kernels.quantity import quantities
from tests.answers import answer, record_of
from tests.reference import step

PORT = {
    "gpus": 98304,
    "parameters": 1e12,
    "nvlink_domain": 8,
    "nvlink_rate": 9e11,
    "nvlink_latency": 1e-6,
    "link_rate": 1e11,
    "payload_fraction": 0.95,
    "oversubscription": 2.0,
    "routing_efficiency": 0.9,
    "switch_latency": 600e-9,
    "adapter_latency": 1.5e-6,
    "error_correction_latency": 120e-9,
    "cable_length": 30.0,
    "switch_radix": 64,
    "packed_share": 0.0,
    "scattered_share": 0.0,
    "collision_efficiency": 0.9,
    "flows_per_link": 2.0,
}
PATHS = ("fat_tree", "rail_optimised", "multi_plane")
several = settings(max_examples=40, deadline=None, derandomize=True)


def found(name: str = "fat_tree", dtype: type = np.float64, **changes: object) -> dict:
    return answer("path", name, PORT | changes, dtype=dtype)


def refusal(name: str = "fat_tree", **changes: object) -> str | None:
    kinds = {
        "fat_tree": (fat_tree_refusal, (Job, ScaleOut, UpperTiers)),
        "rail_optimised": (rail_optimised_refusal, (Job, ScaleUp, ScaleOut, UpperTiers)),
        "multi_plane": (multi_plane_refusal, (Job, ScaleOut, UpperTiers, Planes)),
    }
    refuse, needs = kinds[name]
    return refuse(*(record_of(kind, PORT | changes, np.float32) for kind in needs))


def test_agrees_with_the_plain_reference():
    made = found()
    assert made["fabric_tiers"] == step.tiers(PORT) == 4
    assert made["hop_latency"] == pytest.approx(step.hop_latency(PORT), rel=1e-12)
    assert made["gpu_rate"] == pytest.approx(step.gpu_rate(PORT), rel=1e-12)


@pytest.mark.parametrize(
    ("gpus", "tiers"),
    [(1, 1), (64, 1), (65, 2), (2048, 2), (2049, 3), (65536, 3), (65537, 4), (2**20, 4)],
)
def test_tiers_change_where_the_ports_run_out(gpus: int, tiers: int):
    made = found(gpus=gpus, oversubscription=1, dtype=np.float32)
    assert made["fabric_tiers"] == tiers
    assert made["switch_hops"] == 2 * tiers - 1


@pytest.mark.parametrize(("ratio", "most"), [(1, 2048), (3, 64 * 48), (7, 64 * 56), (63, 64 * 63)])
def test_an_oversubscribed_leaf_holds_more(ratio: float, most: int):
    """Ports down k r / (1 + r): 32, 48, 56, 63 of 64."""
    for gpus, tiers in ((most, 2), (most + 1, 3)):
        made = found(gpus=gpus, oversubscription=ratio, dtype=np.float32)
        assert made["fabric_tiers"] == tiers


def test_one_hop_by_hand():
    """One tier: 1.5 us + 2 (30 m x 4.9 ns/m + 120 ns) + 1 x 600 ns = 2.634 us."""
    made = found(gpus=64)
    assert made["hop_latency"] == pytest.approx(2.634e-6, rel=1e-12)
    assert made["hop_latency"] == made["longest_hop_latency"]
    assert made["path_length"] == 60
    # one switch: nothing to share, no ways to choose between
    assert made["gpu_rate"] == pytest.approx(9.5e10, rel=1e-12)
    assert made["bisection_fraction"] == 1
    assert made["network_switches"] == 1
    # two tiers: 1e11 x 0.95 x 0.9 / 2
    assert found(gpus=512)["gpu_rate"] == pytest.approx(4.275e10, rel=1e-12)
    assert found(gpus=512)["bisection_fraction"] == 0.5


def test_cables_grow_by_hand():
    """Two tiers, 3 m in the rack, ten times longer above: 2 (3 + 30) m, 4 links, 3 switches."""
    made = found(gpus=512, cable_length=3, cable_length_growth=10)
    assert made["path_length"] == pytest.approx(66, rel=1e-12)
    by_hand = 1.5e-6 + 66 * 4.9e-9 + 4 * 120e-9 + 3 * 600e-9
    assert made["hop_latency"] == pytest.approx(by_hand, rel=1e-12)


def test_every_tier_has_its_oversubscription():
    """Radix 4, four tiers: 1 / (3 x 2 x 1.5) would not fit whole ports, 1 and 3 do."""
    ratios = {"spine_oversubscription": 3.0, "core_oversubscription": 3.0}
    for gpus, share in ((4, 1), (9, 1 / 3), (30, 1 / 9), (100, 1 / 27)):
        made = found(
            gpus=gpus, switch_radix=4, oversubscription=3, collision_efficiency=1, **ratios
        )
        assert made["gpu_rate"] == pytest.approx(9.5e10 * share, rel=1e-12)
        assert made["bisection_fraction"] == pytest.approx(share, rel=1e-12)


def test_a_packed_ring_hardly_needs_its_uplinks():
    """Of 48 ports down 8 send up, where 16 go up: nobody waits; scattered, 2.7 share one."""
    packed = found(gpus=2048, oversubscription=3, collision_efficiency=1, packed_share=1)
    assert packed["gpu_rate"] == pytest.approx(9.5e10, rel=1e-12)
    worst = found(gpus=2048, oversubscription=3, collision_efficiency=1)
    assert worst["gpu_rate"] == pytest.approx(9.5e10 / 3, rel=1e-12)
    apart = found(gpus=2048, oversubscription=3, collision_efficiency=1, scattered_share=1)
    assert apart["gpu_rate"] == pytest.approx(9.5e10 / (3 * 2000 / 2040), rel=1e-12)


def test_more_than_four_tiers_hold_is_undefined_and_refused():
    made = found(switch_radix=4, oversubscription=1)
    assert all(np.isnan(value) for value in made.values())
    message = refusal(switch_radix=4, oversubscription=1)
    assert message is not None
    assert "gpus is 98304: at most 32 are allowed" in message
    assert "set gpus to 32 or less, or switch_radix to 30 or more" in message
    assert refusal(switch_radix=30, oversubscription=1) is None
    assert refusal(switch_radix=29, oversubscription=1) is not None
    assert refusal(switch_radix=64) is None


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("fat_tree", {"oversubscription": 64}, "oversubscription is 64 .* at most 63 is allowed"),
        ("fat_tree", {"spine_oversubscription": 99}, "set spine_oversubscription to 63 or less"),
        ("rail_optimised", {"gpus": 100}, "gpus is 100: .* of 8 GPUs; set gpus to 96 or 104"),
        ("rail_optimised", {"gpus": 2**20, "nvlink_domain": 72}, "set gpus to 1048536[.]"),
        ("rail_optimised", {"gpus": 2**20, "switch_radix": 16}, "at most"),
        ("multi_plane", {"switch_radix": 4, "planes": 2}, "switch_radix 4 x 2 planes hold"),
    ],
)
def test_a_refusal_says_what_fits(name: str, changes: dict, words: str):
    message = refusal(name, **changes)
    assert message is not None
    assert re.search(words, message), message


def test_refusals_are_those_of_the_catalogue():
    assert REFUSALS[fat_tree] is fat_tree_refusal
    assert REFUSALS[rail_optimised] is rail_optimised_refusal
    assert REFUSALS[multi_plane] is multi_plane_refusal
    assert refusal("rail_optimised", gpus=96) is None
    assert refusal("rail_optimised", gpus=5) is None  # within one domain
    assert refusal("multi_plane", planes=8) is None


@several
@given(
    gpus=st.integers(1, 2**20),
    radix=st.sampled_from([2, 4, 16, 32, 64, 128, 512]),
    ratios=st.lists(st.sampled_from([1.0, 1.5, 2.0, 3.0, 7.0]), min_size=3, max_size=3),
)
def test_refused_exactly_where_undefined(gpus: int, radix: int, ratios: list[float]):
    names = ("oversubscription", "spine_oversubscription", "core_oversubscription")
    changes = dict(zip(names, ratios, strict=True)) | {"gpus": gpus, "switch_radix": radix}
    undefined = np.isnan(found(dtype=np.float32, **changes)["hop_latency"])
    refused = refusal(**changes)
    if max(ratios) > radix - 1:
        assert "oversubscription is" in str(refused)
    else:
        assert undefined == (refused is not None)


@pytest.mark.parametrize("name", PATHS)
@several
@given(gpus=st.integers(1, 2**16), more=st.integers(0, 2**16), packed=st.floats(0, 1))
def test_more_gpus_never_come_nearer(name: str, gpus: int, more: int, packed: float):
    made = found(name, gpus=[8 * gpus, 8 * (gpus + more)], packed_share=packed, dtype=np.float32)
    for quantity in ("longest_hop_latency", "network_switches", "network_links", "fabric_tiers"):
        assert made[quantity][0] <= made[quantity][1], quantity
    if packed == 0:
        assert made["hop_latency"][0] <= made["hop_latency"][1]


@pytest.mark.parametrize("name", PATHS)
@several
@given(
    gpus=st.integers(1, 2**17),
    ratio=st.floats(1, 20),
    more=st.floats(1, 3),
    shares=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_invariants(name: str, gpus: int, ratio: float, more: float, shares: tuple):
    """What holds of every network, with more oversubscription and less."""
    packed, scattered = shares
    ratios = [ratio, ratio * more]
    made = found(
        name, gpus=gpus, oversubscription=ratios, packed_share=packed, scattered_share=scattered,
        planes=4, dtype=np.float32,
    )  # fmt: skip
    for quantity, declared in quantities(Path).items():
        low, high = declared.bounds
        assert np.all((made[quantity] >= low) & (made[quantity] <= high)), quantity
    assert np.all((made["bisection_fraction"] > 0) & (made["bisection_fraction"] <= 1))
    assert np.all(made["hop_latency"] <= made["longest_hop_latency"] * (1 + 1e-6))
    assert np.all(made["gpu_rate"] <= 9.5e10 * (1 + 1e-6))
    assert np.all(made["switch_hops"] <= 2 * made["fabric_tiers"] - 1)
    assert np.all(made["network_links"] >= gpus)
    # a tier less may be enough with more oversubscription, which is the better bargain
    if made["fabric_tiers"][0] == made["fabric_tiers"][1]:
        assert made["gpu_rate"][1] <= made["gpu_rate"][0] * (1 + 1e-6)
        assert made["bisection_fraction"][1] <= made["bisection_fraction"][0] * (1 + 1e-6)


@several
@given(gpus=st.integers(1, 2**20), ratio=st.sampled_from([1.0, 1.4, 2.0, 5.4, 7.0]))
def test_float32_counts_as_float64_does(gpus: int, ratio: float):
    """Whole ports and whole switches: no quotient falls to the wrong side."""
    single = found(gpus=gpus, oversubscription=ratio, dtype=np.float32)
    double = found(gpus=gpus, oversubscription=ratio)
    for quantity in ("fabric_tiers", "network_switches", "network_links"):
        assert single[quantity] == double[quantity], quantity
    assert single["hop_latency"] == pytest.approx(double["hop_latency"], rel=1e-6)


def test_one_plane_and_one_gpu_a_domain_is_a_fat_tree():
    plain = found(gpus=5000)
    for name, changes in (("multi_plane", {"planes": 1}), ("rail_optimised", {"nvlink_domain": 1})):
        other = found(name, gpus=5000, **changes)
        for quantity, value in plain.items():
            assert other[quantity] == pytest.approx(value, rel=1e-12), (name, quantity)


def test_an_empty_fabric_adds_nothing():
    path = dict.fromkeys(quantities(Path), 1) | {"gpu_rate": [[1e10, 2e10]]}
    made = answer("congestion", "none", path, dtype=np.float32)
    assert made["congestion_efficiency"].tolist() == [[1, 1]]
    assert made["queueing_delay"].tolist() == [[0, 0]]
    assert made["queueing_delay"].dtype == np.float32
