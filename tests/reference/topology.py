"""Fat trees built link by link, and balls thrown into boxes: slow, and without any formula."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow


@dataclass
class Network:
    """Nodes are numbers, GPUs first; a cable is a pair of nodes, and a pair may come again."""

    gpus: int
    nodes: int
    cables: list[tuple[int, int]] = field(default_factory=list)

    def add_switch(self) -> int:
        """A new switch without cables."""
        self.nodes += 1
        return self.nodes - 1

    @property
    def switches(self) -> int:
        """How many there are."""
        return self.nodes - self.gpus

    def most_ports_used(self) -> int:
        """Cables at the busiest switch."""
        ends = np.bincount(np.ravel(self.cables), minlength=self.nodes)
        assert (ends[: self.gpus] == 1).all(), "a GPU has one port"
        return int(ends[self.gpus :].max())

    def switches_between(self, start: int) -> NDArray[np.int64]:
        """Switches on the shortest way from one GPU to every GPU (breadth first); to itself -1."""
        near: list[list[int]] = [[] for _ in range(self.nodes)]
        for a, b in self.cables:
            near[a].append(b)
            near[b].append(a)
        steps = np.full(self.nodes, -1)
        steps[start] = 0
        queue = deque([start])
        while queue:
            here = queue.popleft()
            for there in near[here]:
                if steps[there] < 0:
                    steps[there] = steps[here] + 1
                    queue.append(there)
        assert (steps >= 0).all(), "everything is connected"
        return steps[: self.gpus] - 1

    def flow(self, sources: Iterable[int], sinks: Iterable[int]) -> int:
        """Cables' worth of traffic from all of one set of GPUs to all of another."""
        ends = [(a, b) for cable in self.cables for a, b in (cable, cable[::-1])]
        ends += [(self.nodes, a) for a in sources] + [(b, self.nodes + 1) for b in sinks]
        rows, columns = np.transpose(ends)
        size = self.nodes + 2
        ones = np.ones(len(ends), np.int32)
        capacity = csr_array((ones, (rows, columns)), shape=(size, size), dtype=np.int32)
        return int(maximum_flow(capacity, self.nodes, self.nodes + 1).flow_value)


@dataclass
class _Group:
    """Part of a network: the switches of its top tier that still have uplinks to connect."""

    uplinks: list[int]  # a switch for each uplink port, the ports of one switch apart


def _interleaved(groups: list[list[int]]) -> list[int]:
    """One of each in turn, until all are used up."""
    longest = max(len(group) for group in groups)
    return [group[i] for i in range(longest) for group in groups if i < len(group)]


def _joined(network: Network, below: list[list[int]], down: int, up: int, ratio: float) -> _Group:
    """Switches above some groups: as few as have the ports, the cables of a group dealt out."""
    count = -(-sum(len(group) for group in below) // down)
    above = [network.add_switch() for _ in range(count)]
    used = [0] * count
    for group in below:
        for number, port in enumerate(group):
            free = next(i % count for i in range(number, number + count) if used[i % count] < down)
            network.cables.append((port, above[free]))
            used[free] += 1
    ports = [min(int(np.ceil(n / ratio - 1e-9)), up) for n in used]
    return _Group(_interleaved([[s] * n for s, n in zip(above, ports, strict=True)]))


def _group(
    network: Network, tier: int, gpus: list[int], downs: list[int], ups: list[int]
) -> _Group:
    """The part of a network that holds these GPUs under tiers 1 to `tier`, with its uplinks."""
    down, up = downs[tier - 1], ups[tier - 1]
    ratio = down / up
    if tier == 1:
        leaf = network.add_switch()
        network.cables += [(gpu, leaf) for gpu in gpus]
        return _Group([leaf] * min(int(np.ceil(len(gpus) / ratio - 1e-9)), up))
    size = int(np.prod(downs[: tier - 1]))
    parts = [
        _group(network, tier - 1, gpus[i : i + size], downs, ups).uplinks
        for i in range(0, len(gpus), size)
    ]
    return _joined(network, parts, down, up, ratio)


def fat_tree(gpus: int, radix: int, tiers: int, downs: list[int], order: list[int]) -> Network:
    """A fat tree of so many tiers over GPUs in this order, `downs` ports down below the top."""
    network = Network(gpus, gpus)
    ups = [radix - down for down in downs]
    if tiers == 1:
        switch = network.add_switch()
        network.cables += [(gpu, switch) for gpu in order]
        return network
    size = int(np.prod(downs[: tiers - 1]))
    parts = [
        _group(network, tiers - 1, order[i : i + size], downs, ups).uplinks
        for i in range(0, gpus, size)
    ]
    _joined(network, parts, radix, 0, np.inf)
    return network


def largest_loads(
    balls: int, boxes: int, trials: int, random: np.random.Generator
) -> NDArray[np.int64]:
    """The fullest of the boxes in each of many throws of all balls."""
    number = random.integers(0, boxes, (trials, balls)) + boxes * np.arange(trials)[:, None]
    return np.bincount(number.ravel(), minlength=trials * boxes).reshape(trials, boxes).max(1)


def largest_load_law(balls: int, boxes: int) -> NDArray[np.float64]:
    """P(max <= k) for k = 0 ... balls, by counting all throws: powers of sum x^j / j!, scaled."""
    mass = stats.poisson.pmf(np.arange(balls + 1), balls / boxes)
    law = np.zeros(balls + 1)
    for most in range(balls + 1):
        power, square, left = np.ones(1), mass[: most + 1], boxes
        while left:
            if left % 2:
                power = np.convolve(power, square)[: balls + 1]
            square = np.convolve(square, square)[: balls + 1]
            left //= 2
        law[most] = power[balls] if power.size > balls else 0.0
    return law / stats.poisson.pmf(balls, balls)
