"""Hierarchical all-reduce, message by message.

Reduce-scatter on a ring inside each NVLink domain of d ranks, all-reduce on a ring across the G
domains (one ring a rail, each on the part that its ranks hold), all-gather on the ring inside.
There is no barrier between the stages: a rank starts a stage when its own part of the one before
is complete. Ports and costs are those of ``event_ring``.
"""

import heapq
import itertools
from collections.abc import Callable

from tests.reference.event_ring import Cluster, Ports, Run

Done = Callable[[float, int, int], None]


class _Simulation:
    """Chunks on rings of ranks, forwarded as they arrive."""

    def __init__(self, cluster: Cluster) -> None:
        self.ports = Ports(cluster)
        self.ticket = itertools.count()
        self.waiting: list[tuple[float, int, tuple[int, ...], int, int, float, Done]] = []
        self.finish = 0.0

    def travel(
        self, ready: float, ring: tuple[int, ...], place: int, hops: int, size: float, done: Done
    ) -> None:
        """Let a chunk at ring[place] travel `hops` hops, reporting (time, rank, hops left)."""
        item = (ready, next(self.ticket), ring, place, hops, size, done)
        heapq.heappush(self.waiting, item)

    def run(self) -> Run:
        """Serve every message in the order in which it becomes ready."""
        while self.waiting:
            ready, _, ring, place, hops, size, done = heapq.heappop(self.waiting)
            self.finish = max(self.finish, ready)
            done(ready, ring[place], hops)
            if hops:
                following = (place + 1) % len(ring)
                arrival = self.ports.send(ready, ring[place], ring[following], size)
                self.travel(arrival, ring, following, hops - 1, size, done)
        ports = self.ports
        return Run(self.finish, ports.fabric_messages, ports.fabric_bytes, ports.messages)


def _ignore(time: float, rank: int, left: int) -> None:
    """Take note of nothing."""


def all_reduce(cluster: Cluster, payload: float) -> Run:
    """Hierarchical all-reduce of `payload` bytes per rank."""
    size, domains = cluster.domain, cluster.ranks // cluster.domain
    simulation = _Simulation(cluster)
    inner = [tuple(j * size + i for i in range(size)) for j in range(domains)]
    rails = [tuple(j * size + i for j in range(domains)) for i in range(size)]
    part, piece = payload / size, payload / cluster.ranks
    missing = {rank: 2 * domains - 1 for rank in range(cluster.ranks)}

    def gather(time: float, rank: int) -> None:
        simulation.travel(time, inner[rank // size], rank % size, size - 1, part, _ignore)

    def crossed(time: float, rank: int, left: int) -> None:
        # a rank sees 2 G - 1 of these events: G pieces that are being summed, of which one becomes
        # final there, and G - 1 final ones; with the last of them its part is complete
        missing[rank] -= 1
        if not missing[rank]:
            gather(time, rank)

    def scattered(time: float, rank: int, left: int) -> None:
        if left == 0:
            ring, place = rails[rank % size], rank // size
            if domains == 1:
                gather(time, rank)
            else:
                simulation.travel(time, ring, place, 2 * (domains - 1), piece, crossed)

    for domain in range(domains):
        for place in range(size):
            simulation.travel(0.0, inner[domain], place, size - 1, part, scattered)
    return simulation.run()
