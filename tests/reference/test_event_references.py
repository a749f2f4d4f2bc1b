"""The event-level references do what they are said to do, on their own."""

import math

import pytest

from tests.reference import event_doubling, event_stages, event_tree
from tests.reference.event_ring import Cluster, all_reduce


@pytest.mark.parametrize("domains", range(2, 65))
def test_two_trees_are_complementary(domains: int) -> None:
    """As deep as they can be at least, and no port sends more than twice the payload."""
    for parents in event_tree.both_trees(domains):
        assert sorted(parents) == list(range(domains))
        assert event_tree.depth(parents) == math.ceil(math.log2(domains))
    assert event_tree.busiest_port(domains) == {2: 1.0, 3: 1.5}.get(domains, 2.0)


@pytest.mark.parametrize("domains", range(4, 65))
def test_whoever_has_two_children_is_a_leaf_of_the_other_tree(domains: int) -> None:
    """So no node adds up, or copies to, more than two others in both trees together."""
    first, second = ([*parents.values()] for parents in event_tree.both_trees(domains))
    for node in range(domains):
        counts = first.count(node), second.count(node)
        assert max(counts) <= 2
        assert sum(counts) <= 2


def test_chunks_follow_each_other_through_a_tree() -> None:
    """64 domains of one: 12 hops of a slot and a latency, then the other 15 chunks a slot apart."""
    events = event_tree.all_reduce(64, 1, 16, event_tree.Hops(1e-4, 8e-6, 1e-6))
    assert events == pytest.approx(12 * (8e-6 + 1e-4) + 15 * 1e-4, rel=1e-12)


@pytest.mark.parametrize(("domains", "size"), [(1, 8), (4, 1), (5, 4), (7, 2), (16, 1), (3, 1)])
def test_halving_and_doubling_adds_everything_up(domains: int, size: int) -> None:
    run = event_doubling.all_reduce(Cluster(domains * size, size, 1.0, 1.0), 1.0)
    everyone = frozenset(range(domains * size))
    for part in run.held:
        assert part == dict.fromkeys(range(run.blocks), everyone)


def test_halving_leaves_every_rank_one_block() -> None:
    run = event_doubling.reduce_scatter(Cluster(32, 4, 1.0, 1.0), 1.0)
    assert sorted(block for part in run.held for block in part) == list(range(32))


@pytest.mark.parametrize(("ranks", "domain"), [(2, 1), (6, 3), (8, 2), (9, 1)])
def test_two_phases_of_a_ring_without_latency_are_an_all_reduce(ranks: int, domain: int) -> None:
    cluster = Cluster(ranks, domain, 9e11, 5e10)
    phase = event_stages.ring_phase(cluster, 1e9, domain).finish
    assert 2 * phase == pytest.approx(all_reduce(cluster, 1e9, domain).finish, rel=1e-12)


def test_switches_that_add_send_the_payload_and_a_share() -> None:
    """Both directions are alike in an all-reduce; a phase alone fills one of them."""
    both = event_stages.switched(8, adds=True, spreads=True)
    assert both.out == pytest.approx(1 + 1 / 8)
    assert both.into == pytest.approx(1 + 1 / 8)
    for phase in ({"adds": True, "spreads": False}, {"adds": False, "spreads": True}):
        alone = event_stages.switched(8, **phase)
        assert sorted((alone.out, alone.into)) == pytest.approx([1 / 8, 1.0])
