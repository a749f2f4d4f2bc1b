"""Switches, cables, hops and bisection against networks built link by link."""

import itertools

import numpy as np
import pytest

from tests.answers import answer
from tests.reference import topology

CLEAN = {
    "parameters": 1e12,
    "nvlink_domain": 1,
    "nvlink_rate": 9e11,
    "nvlink_latency": 1e-6,
    "link_rate": 1e11,
    "payload_fraction": 1.0,
    "oversubscription": 1.0,
    "spine_oversubscription": 1.0,
    "core_oversubscription": 1.0,
    "adapter_latency": 0.0,
    "error_correction_latency": 0.0,
    "switch_latency": 1e-6,
    "cable_length": 10.0,
    "collision_efficiency": 1.0,
    "flows_per_link": 1.0,
}


def found(name: str = "fat_tree", *, placement: str = "worst", **changes: object) -> dict:
    """The path of a placement; a share that is given replaces that of the placement."""
    shares = answer("placement", placement, CLEAN | changes)
    return answer("path", name, CLEAN | shares | changes)


def built(gpus: int, radix: int, ratios: tuple[int, int, int]) -> tuple[topology.Network, int]:
    """The graph of as many tiers as are needed, and their number."""
    downs = [radix * ratio // (1 + ratio) for ratio in ratios]
    most = radix
    for tiers in range(1, 5):
        if gpus <= most:
            return topology.fat_tree(gpus, radix, tiers, downs, list(range(gpus))), tiers
        most *= downs[tiers - 1]
    raise AssertionError("more than four tiers")


FULL = [
    # gpus, radix, ratios, tiers: every port of every switch is used
    (6, 6, (1, 1, 1), 1),
    (8, 4, (1, 1, 1), 2),
    (18, 6, (1, 1, 1), 2),
    (24, 6, (2, 1, 1), 2),
    (48, 8, (3, 1, 1), 2),
    (16, 4, (1, 1, 1), 3),
    (54, 6, (1, 1, 1), 3),
    (96, 6, (2, 2, 1), 3),
    (128, 8, (1, 1, 1), 3),
    (288, 8, (3, 3, 1), 3),
    (32, 4, (1, 1, 1), 4),
    (162, 6, (1, 1, 1), 4),
    (384, 6, (2, 2, 2), 4),
]
PARTLY = [(5, 4), (7, 4), (9, 4), (11, 4), (13, 4), (17, 4), (27, 4), (29, 6), (31, 6), (47, 6)]
PARTLY += [(65, 8), (100, 8), (130, 8), (200, 8)]


def ratios_of(case: tuple[int, int, int]) -> dict[str, int]:
    names = ("oversubscription", "spine_oversubscription", "core_oversubscription")
    return dict(zip(names, case, strict=True))


@pytest.mark.parametrize(("gpus", "radix", "ratios", "tiers"), FULL)
def test_a_full_tree_is_the_graph(gpus: int, radix: int, ratios: tuple, tiers: int):
    graph, needed = built(gpus, radix, ratios)
    assert needed == tiers
    assert graph.most_ports_used() == radix
    made = found(gpus=gpus, switch_radix=radix, **ratios_of(ratios))
    assert made["fabric_tiers"] == tiers
    assert made["network_switches"] == graph.switches
    assert made["network_links"] == len(graph.cables)
    if ratios == (1, 1, 1):  # N (2 L - 1) / k and N L
        assert graph.switches == gpus * (2 * tiers - 1) / radix
        assert len(graph.cables) == gpus * tiers
    # full duplex: half of the GPUs may send to the other half at once
    half = gpus // 2
    flow = graph.flow(range(half), range(half, gpus))
    assert flow == pytest.approx(half * made["bisection_fraction"], abs=0)


@pytest.mark.parametrize(("gpus", "radix", "ratios", "tiers"), FULL)
def test_hops_are_those_of_the_graph(gpus: int, radix: int, ratios: tuple, tiers: int):
    """Worst, in a row, and between any two: breadth first through the graph."""
    graph, _ = built(gpus, radix, ratios)
    hops = np.array([graph.switches_between(start) for start in range(gpus)])
    ring = hops[np.arange(gpus), (np.arange(gpus) + 1) % gpus]
    pairs = hops[~np.eye(gpus, dtype=bool)]
    changes = {"gpus": gpus, "switch_radix": radix, **ratios_of(ratios)}
    for placement, truth in (("worst", pairs.max()), ("packed", ring.mean())):
        made = found(placement=placement, **changes)
        assert made["switch_hops"] == pytest.approx(truth, rel=1e-12)
        # a message passes a cable of 10 m more often than a switch
        assert made["path_length"] == pytest.approx(10 * (truth + 1), rel=1e-12)
        cables = (truth + 1) * 10 * 4.9e-9
        assert made["hop_latency"] == pytest.approx(truth * 1e-6 + cables, rel=1e-12)
        longest = pairs.max() * 1e-6 + (pairs.max() + 1) * 10 * 4.9e-9
        assert made["longest_hop_latency"] == pytest.approx(longest, rel=1e-12)
    made = found(placement="scattered", **changes)
    assert made["switch_hops"] == pytest.approx(pairs.mean(), rel=1e-12)
    mixed = found(placement="scattered", packed_share=0.25, **changes)
    assert mixed["switch_hops"] == pytest.approx(
        0.25 * ring.mean() + 0.75 * pairs.mean(), rel=1e-12
    )
    if tiers > 1:  # what another placement would give is not within the tolerance
        assert ring.mean() < pairs.mean() < pairs.max()


@pytest.mark.parametrize(("gpus", "radix"), PARTLY)
def test_a_partly_filled_tree_has_the_ports(gpus: int, radix: int):
    """Every switch full but the last of a tier, and no port is short."""
    graph, tiers = built(gpus, radix, (1, 1, 1))
    assert graph.most_ports_used() <= radix
    made = found(gpus=gpus, switch_radix=radix)
    assert made["fabric_tiers"] == tiers
    assert made["network_switches"] == graph.switches
    assert made["network_links"] == len(graph.cables)
    assert made["network_switches"] >= gpus * (2 * tiers - 1) / radix


def test_a_rounded_total_would_be_caught():
    """N (2 L - 1) / k rounded up once, not tier by tier, is too few switches."""
    once = [int(np.ceil(gpus * (2 * built(gpus, radix, (1, 1, 1))[1] - 1) / radix))
            for gpus, radix in PARTLY]  # fmt: skip
    graphs = [built(gpus, radix, (1, 1, 1))[0].switches for gpus, radix in PARTLY]
    assert sum(a < b for a, b in zip(once, graphs, strict=True)) > len(PARTLY) / 2


def test_domains_in_a_row():
    """Domains of four GPUs, two a leaf and sixteen a pod."""
    gpus, radix, domain = 512, 16, 4
    graph, _ = built(gpus, radix, (1, 1, 1))
    ring = [
        graph.switches_between(m * domain)[(m + 1) * domain % gpus] for m in range(gpus // domain)
    ]
    made = found(placement="packed", gpus=gpus, switch_radix=radix, nvlink_domain=domain)
    assert made["switch_hops"] == pytest.approx(np.mean(ring), rel=1e-12)
    apart = [graph.switches_between(0)[other] for other in range(domain, gpus)]
    made = found(placement="scattered", gpus=gpus, switch_radix=radix, nvlink_domain=domain)
    assert made["switch_hops"] == pytest.approx(np.mean(apart), rel=1e-12)


@pytest.mark.parametrize(
    ("domains", "rails", "radix", "tiers"),
    [(4, 2, 8, 1), (4, 4, 8, 2), (8, 4, 8, 2), (16, 8, 8, 3)],
)
def test_rails_are_the_graph_with_rails_together(domains: int, rails: int, radix: int, tiers: int):
    """GPU i of domain m takes place i domains + m of the tree."""
    gpus = domains * rails
    downs = [radix // 2] * 3
    order = [m * rails + i for i, m in itertools.product(range(rails), range(domains))]
    graph = topology.fat_tree(gpus, radix, tiers, downs, order)
    assert found("rail_optimised", gpus=gpus, switch_radix=radix)["fabric_tiers"] == tiers
    hops = [graph.switches_between(m * rails)[::rails] for m in range(domains)]
    ring = [hops[m][(m + 1) % domains] for m in range(domains)]
    pairs = np.array(hops)[~np.eye(domains, dtype=bool)]
    changes = {"gpus": gpus, "nvlink_domain": rails, "switch_radix": radix}
    for placement, truth in (
        ("packed", np.mean(ring)), ("scattered", pairs.mean()), ("worst", pairs.max())
    ):  # fmt: skip
        made = found("rail_optimised", placement=placement, **changes)
        assert made["switch_hops"] == pytest.approx(truth, rel=1e-12), placement
        assert made["network_switches"] == graph.switches
        assert made["network_links"] == len(graph.cables)
    # across rails: NVLink first, then the longest way within a rail
    assert made["longest_hop_latency"] == pytest.approx(made["hop_latency"] + 1e-6, rel=1e-12)
    half = [m * rails + i for m in range(domains // 2) for i in range(rails)]
    rest = sorted(set(range(gpus)) - set(half))
    assert graph.flow(half, rest) == gpus / 2 * made["bisection_fraction"]


def test_rails_save_the_spine_up_to_half_the_radix():
    """32 domains of 8 on switches of 64 ports: 1 switch on a rail, where a fat tree passes 3."""
    changes = {"gpus": 256, "nvlink_domain": 8, "switch_radix": 64}
    assert found("rail_optimised", **changes)["switch_hops"] == 1
    assert found("fat_tree", **changes)["switch_hops"] == 3
    assert found("rail_optimised", **changes | {"gpus": 264})["switch_hops"] == 3


def test_planes_are_trees_side_by_side():
    graph, _ = built(8, 4, (1, 1, 1))
    made = found("multi_plane", gpus=8, switch_radix=2, planes=2)
    assert made["fabric_tiers"] == 2
    assert made["network_switches"] == 2 * graph.switches
    assert made["network_links"] == 2 * len(graph.cables)


@pytest.mark.parametrize(("gpus", "tiers"), [(512, 1), (513, 2), (131_072, 2), (131_073, 3)])
def test_eight_planes_hold_131072_gpus_in_two_tiers(gpus: int, tiers: int):
    made = found("multi_plane", gpus=gpus, switch_radix=64, planes=8)
    assert made["fabric_tiers"] == tiers
    if gpus == 131_072:  # 8 planes of N 3 / 512 switches
        assert made["network_switches"] == 8 * 768
        assert made["bisection_fraction"] == 1
        assert found(gpus=gpus, switch_radix=64)["fabric_tiers"] == 4


@pytest.mark.parametrize(
    ("gpus", "switches", "tiers"), [(41_472, 1440, 3), (10_368, 216, 2)], ids=["large", "small"]
)
def test_vendors_count_of_switches(gpus: int, switches: int, tiers: int):
    """144-port switches: 41,472 and 10,368 GPUs as Lambda published them."""
    made = found(gpus=gpus, switch_radix=144)
    assert made["network_switches"] == switches == gpus * (2 * tiers - 1) / 144
    assert made["network_links"] == gpus * tiers
