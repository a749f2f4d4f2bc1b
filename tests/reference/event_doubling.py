"""Recursive halving and doubling, exchange by exchange, with the data that they carry.

Ranks lie in NVLink domains of d ranks, d a power of two. In level l of the reduction partners at
distance 2^l inside the domain, then at 2^l domains, swap the half of their parts that the other
keeps, and add; the gather runs the levels back. Both of a pair wait for each other. Domains beyond
the largest power of two hand their parts to a partner before the levels between domains, and get
the result after them (Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005).
"""

from dataclasses import dataclass

from tests.reference.event_ring import Cluster

Part = dict[int, frozenset[int]]
"""Block -> the ranks whose contributions are in its sum."""


@dataclass
class Exchanges:
    """Ranks with their clocks and their data, and what has crossed the fabric."""

    cluster: Cluster
    payload: float
    blocks: int

    def __post_init__(self) -> None:
        """Start with every rank's own contribution to every block."""
        every = range(self.blocks)
        self.clock = [0.0] * self.cluster.ranks
        self.held: list[Part] = [
            dict.fromkeys(every, frozenset([rank])) for rank in range(self.cluster.ranks)
        ]
        self.fabric_bytes = 0.0
        self.fabric_messages = 0

    def arrival(self, sender: int, receiver: int, blocks: int) -> float:
        """When a message that its sender starts at once has come, blocks long."""
        cluster, size = self.cluster, self.payload * blocks / self.blocks
        if sender // cluster.domain == receiver // cluster.domain:
            return self.clock[sender] + size / cluster.nvlink_rate + cluster.nvlink_latency
        self.fabric_bytes += size
        self.fabric_messages += 1
        return self.clock[sender] + size / cluster.fabric_rate + cluster.fabric_latency

    def hand_over(self, sender: int, receiver: int) -> None:
        """All that a rank holds goes to another, which adds it to its own."""
        arrival = self.arrival(sender, receiver, len(self.held[sender]))
        self.clock[receiver] = max(self.clock[receiver], arrival)
        self.clock[sender] = arrival
        add(self.held[receiver], self.held[sender])

    def give_back(self, sender: int, receiver: int) -> None:
        """All that a rank holds replaces what another holds."""
        self.clock[receiver] = self.arrival(sender, receiver, len(self.held[sender]))
        self.held[receiver] = dict(self.held[sender])

    def halve(self, low: int, high: int) -> None:
        """A pair adds up its parts: the lower rank keeps the first half of the blocks."""
        blocks = sorted(self.held[low])
        kept = {low: blocks[: len(blocks) // 2], high: blocks[len(blocks) // 2 :]}
        self._meet(low, high, len(blocks) // 2)
        parts = {rank: dict(self.held[rank]) for rank in (low, high)}
        for rank, other in ((low, high), (high, low)):
            self.held[rank] = {block: parts[rank][block] for block in kept[rank]}
            add(self.held[rank], {block: parts[other][block] for block in kept[rank]})

    def double(self, low: int, high: int) -> None:
        """A pair swaps its finished parts."""
        self._meet(low, high, len(self.held[low]))
        both = self.held[low] | self.held[high]
        self.held[low], self.held[high] = dict(both), dict(both)

    def _meet(self, low: int, high: int, blocks: int) -> None:
        arrivals = self.arrival(low, high, blocks), self.arrival(high, low, blocks)
        self.clock[high] = max(self.clock[high], arrivals[0])
        self.clock[low] = max(self.clock[low], arrivals[1])


def add(part: Part, other: Part) -> None:
    """Add what another rank has of the same blocks; nobody may count twice."""
    for block, ranks in other.items():
        if part[block] & ranks:
            raise ValueError(f"block {block} counts ranks {part[block] & ranks} twice")
        part[block] |= ranks


def power_below(count: int) -> int:
    """The largest power of two that is not above a count."""
    return 1 << (count.bit_length() - 1)


def pairs(count: int, distance: int) -> list[tuple[int, int]]:
    """Partners at a distance that is a power of two."""
    return [(one, one + distance) for one in range(count) if not one & distance]


def distances(count: int) -> list[int]:
    """1, 2, 4 ... below a count."""
    return [1 << level for level in range(count.bit_length() - 1)]


def levels(cluster: Cluster) -> list[list[tuple[int, int]]]:
    """The pairs of every level, nearest first: inside the domains, then between them."""
    size, domains = cluster.domain, cluster.ranks // cluster.domain
    if size != power_below(size):
        raise ValueError(f"domains of {size} ranks: a power of two is needed")
    inside = [
        [(d * size + a, d * size + b) for d in range(domains) for a, b in pairs(size, distance)]
        for distance in distances(size)
    ]
    core = power_below(domains)
    across = [
        [(a * size + i, b * size + i) for a, b in pairs(core, distance) for i in range(size)]
        for distance in distances(core)
    ]
    return inside + across


def started(cluster: Cluster, payload: float) -> Exchanges:
    """Ranks that have exchanged nothing yet."""
    core = power_below(cluster.ranks // cluster.domain)
    return Exchanges(cluster, payload, cluster.domain * core)


def surplus(cluster: Cluster) -> list[tuple[int, int]]:
    """The ranks of domains beyond the largest power of two, each with its partner."""
    core = power_below(cluster.ranks // cluster.domain) * cluster.domain
    return [(rank, rank - core) for rank in range(core, cluster.ranks)]


def reduce_scatter(cluster: Cluster, payload: float) -> Exchanges:
    """Every rank ends with one finished block; as many domains as a power of two."""
    if surplus(cluster):
        raise ValueError("no reduce-scatter over domains that are no power of two")
    run = started(cluster, payload)
    for level in levels(cluster):
        for low, high in level:
            run.halve(low, high)
    return run


def all_gather(cluster: Cluster, payload: float) -> Exchanges:
    """Every rank starts with the block that a reduce-scatter leaves it; all end with all."""
    ended, run = reduce_scatter(cluster, payload), started(cluster, payload)
    run.held = ended.held
    for level in reversed(levels(cluster)):
        for low, high in level:
            run.double(low, high)
    return run


def all_reduce(cluster: Cluster, payload: float) -> Exchanges:
    """Halving and doubling one after the other, with the fold of the surplus domains between."""
    run, steps = started(cluster, payload), levels(cluster)
    inside = len(distances(cluster.domain))
    for low, high in (pair for level in steps[:inside] for pair in level):
        run.halve(low, high)
    for rank, partner in surplus(cluster):
        run.hand_over(rank, partner)
    for low, high in (pair for level in steps[inside:] for pair in level):
        run.halve(low, high)
    for low, high in (pair for level in reversed(steps[inside:]) for pair in level):
        run.double(low, high)
    for rank, partner in surplus(cluster):
        run.give_back(partner, rank)
    for low, high in (pair for level in reversed(steps[:inside]) for pair in level):
        run.double(low, high)
    return run
