"""One phase of a ring, message by message, and what switches that add do to their ports.

Ports and costs are those of ``event_ring``.
"""

import heapq
import itertools
from dataclasses import dataclass

from tests.reference.event_ring import Cluster, Ports, Run, ring_order


def ring_phase(cluster: Cluster, payload: float, channels: int) -> Run:
    """Reduce-scatter or all-gather of `payload` bytes of all ranks over `channels` rings.

    Each channel cuts its share into g chunks; every chunk travels g - 1 hops.
    """
    ranks = cluster.ranks
    size = payload / (channels * ranks)
    orders = [ring_order(cluster, channel) for channel in range(channels)]
    ports, ticket, finish = Ports(cluster), itertools.count(), 0.0
    waiting = [(0.0, next(ticket), c, place, 0) for c in range(channels) for place in range(ranks)]
    while waiting:
        ready, _, channel, place, hop = heapq.heappop(waiting)
        if hop == ranks - 1:
            finish = max(finish, ready)
            continue
        following = (place + 1) % ranks
        arrival = ports.send(ready, orders[channel][place], orders[channel][following], size)
        heapq.heappush(waiting, (arrival, next(ticket), channel, following, hop + 1))
    return Run(finish, ports.fabric_messages, ports.fabric_bytes, ports.messages)


@dataclass
class Port:
    """What one rank sends to a switch and gets from it, as shares of the payload."""

    out: float = 0.0
    into: float = 0.0

    @property
    def fuller(self) -> float:
        """What the fuller direction carries."""
        return max(self.out, self.into)


def switched(ranks: int, *, adds: bool, spreads: bool) -> Port:
    """The fullest port of ranks on a switch that adds (reduces) and spreads (multicasts).

    Every rank owns a share. To add it, the switch takes the owner's and all others' and gives the
    owner the sum; to spread it, the owner sends it once and all get it.
    """
    ports = [Port() for _ in range(ranks)]
    for owner in range(ranks):
        if adds:
            for port in ports:
                port.out += 1 / ranks
            ports[owner].into += 1 / ranks
        if spreads:
            ports[owner].out += 1 / ranks
            for port in ports:
                port.into += 1 / ranks
    return max(ports, key=lambda port: port.fuller)
