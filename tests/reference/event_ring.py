"""Ring all-reduce, message by message.

Ranks 0 .. g-1 lie in NVLink domains of d ranks. Each rank owns one port into its domain and one
port into the fabric; a message to the next rank leaves by the first if both ranks are in one
domain, else by the second. A chunk is forwarded when it has been received and the port is free,
in the order in which chunks become ready; a port is busy for size / rate, and the message arrives
one latency after its last byte has left.

With c channels the message is cut into c parts, each on a ring of its own. Channel k visits the
ranks of every domain in an order rotated by k, so that each channel leaves a domain by another
rank's fabric port.
"""

import heapq
import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Cluster:
    """Two networks between `ranks` GPUs, `domain` of them in each NVLink domain."""

    ranks: int
    domain: int
    nvlink_rate: float  # B/s of one rank
    fabric_rate: float  # B/s of one rank
    nvlink_latency: float = 0.0  # s
    fabric_latency: float = 0.0  # s

    def __post_init__(self) -> None:
        """Refuse a group that does not fill its domains."""
        if self.ranks % self.domain:
            raise ValueError(f"{self.ranks} ranks do not fill domains of {self.domain}")


@dataclass(frozen=True)
class Run:
    """What one event-level run shows."""

    finish: float  # s, when the last rank has its last chunk
    fabric_messages: int  # messages that crossed the fabric
    fabric_bytes: float  # bytes that crossed the fabric
    messages: int  # all messages


class Ports:
    """Output ports, each serving its messages one after another."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.free: dict[tuple[int, bool], float] = {}
        self.fabric_messages = 0
        self.fabric_bytes = 0.0
        self.messages = 0

    def send(self, ready: float, sender: int, receiver: int, size: float) -> float:
        """Arrival time of a message that is ready at `ready`."""
        cluster = self.cluster
        fabric = sender // cluster.domain != receiver // cluster.domain
        rate = cluster.fabric_rate if fabric else cluster.nvlink_rate
        latency = cluster.fabric_latency if fabric else cluster.nvlink_latency
        sent = max(ready, self.free.get((sender, fabric), 0.0)) + size / rate
        self.free[sender, fabric] = sent
        self.messages += 1
        if fabric:
            self.fabric_messages += 1
            self.fabric_bytes += size
        return sent + latency


def ring_order(cluster: Cluster, channel: int) -> list[int]:
    """The ranks in the order in which this channel visits them."""
    size = cluster.domain
    return [rank - rank % size + (rank + channel) % size for rank in range(cluster.ranks)]


def all_reduce(cluster: Cluster, payload: float, channels: int) -> Run:
    """Ring all-reduce of `payload` bytes per rank over `channels` rings.

    Each channel cuts its share into g chunks; every chunk travels 2 (g - 1) hops.
    """
    ranks = cluster.ranks
    size = payload / (channels * ranks)
    orders = [ring_order(cluster, channel) for channel in range(channels)]
    ports, ticket, finish = Ports(cluster), itertools.count(), 0.0
    waiting = [(0.0, next(ticket), c, place, 0) for c in range(channels) for place in range(ranks)]
    while waiting:
        ready, _, channel, place, hop = heapq.heappop(waiting)
        if hop == 2 * (ranks - 1):
            finish = max(finish, ready)
            continue
        order, following = orders[channel], (place + 1) % ranks
        arrival = ports.send(ready, order[place], order[following], size)
        heapq.heappush(waiting, (arrival, next(ticket), channel, following, hop + 1))
    return Run(finish, ports.fabric_messages, ports.fabric_bytes, ports.messages)


def longest_fabric_chain(cluster: Cluster) -> int:
    """Fabric hops on the worst chunk's way: the time of a run in which only they cost anything."""
    counted = Cluster(cluster.ranks, cluster.domain, 1.0, 1.0, 0.0, 1.0)
    return round(all_reduce(counted, 0.0, 1).finish)


def ring_finish(noise: NDArray[np.float64]) -> NDArray[np.float64]:
    """Time of a ring without barrier whose hops cost only noise: noise[replicate, step, rank].

    Rank i ends step k + 1 one hop cost after both its own step k and that of rank i - 1 are done.
    """
    done = np.zeros_like(noise[:, 0, :])
    for step in range(noise.shape[1]):
        done = np.maximum(done, np.roll(done, 1, axis=1)) + noise[:, step, :]
    return done.max(axis=1)


def barrier_finish(noise: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same with a barrier after every step: each step costs its largest noise."""
    return noise.max(axis=2).sum(axis=1)


def barrier_stalls(largest: NDArray[np.float64], groups: int) -> NDArray[np.float64]:
    """Slowest of `groups` barrier all-reduces: largest[replicate * groups, step] per step."""
    return largest.sum(axis=1).reshape(-1, groups).max(axis=1)
