"""Double binary tree all-reduce, chunk by chunk.

A node of a tree is an NVLink domain, whose d ranks form a chain; the first of the chain owns the
fabric port that the tree uses. Chunks are summed on their way up to the root and copied on their
way down. Every edge passes one chunk a slot in each direction, and a chunk arrives one latency
after it has left. Two trees carry half of the payload each; whoever is inside one of them is, but
for the ends, a leaf of the other (Sanders, Speck, Traeff, Parallel Computing 35(12), 2009).
"""

from dataclasses import dataclass

Parents = dict[int, int | None]


def tree(nodes: int) -> Parents:
    """Parent of every node: 0 on top with one child, below it a binary tree in order of number.

    Odd nodes are leaves.
    """
    parents: Parents = {0: None}

    def hang(low: int, high: int, parent: int) -> None:
        """Hang the nodes low .. high - 1 under a parent, the roundest number on top."""
        if low >= high:
            return
        top = max(range(low, high), key=lambda node: node & -node)
        parents[top] = parent
        hang(low, top, top)
        hang(top + 1, high, top)

    hang(1, nodes, 0)
    return parents


def both_trees(nodes: int) -> tuple[Parents, Parents]:
    """A tree and its complement: numbers from behind, or one further where they are odd in sum."""
    first = tree(nodes)

    def moved(node: int | None) -> int | None:
        if node is None:
            return None
        return nodes - 1 - node if nodes % 2 == 0 else (node + 1) % nodes

    second = {(node + 1) % nodes if nodes % 2 else nodes - 1 - node: moved(above)
              for node, above in first.items()}  # fmt: skip
    return first, second


def depth(parents: Parents) -> int:
    """Edges from the deepest node to the root."""

    def edges(node: int) -> int:
        above = parents[node]
        return 0 if above is None else 1 + edges(above)

    return max(map(edges, parents))


def busiest_port(nodes: int) -> float:
    """What the busiest port sends, as a share of the payload: half of it for every edge."""
    sent = dict.fromkeys(range(nodes), 0.0)
    for parents in both_trees(nodes):
        for node, above in parents.items():
            if above is not None:
                sent[node] += 0.5  # up
                sent[above] += 0.5  # down
    return max(sent.values())


def busiest_chain_port(domain: int) -> float:
    """What the busiest NVLink port of a domain sends, as a share of the payload.

    Every rail has a chain of its own that starts at its own rank and carries a d-th of the
    payload up and down.
    """
    sent = dict.fromkeys(range(domain), 0.0)
    for rail in range(domain):
        for place in range(1, domain):
            sent[(rail + place) % domain] += 1 / domain  # up
            sent[(rail + place - 1) % domain] += 1 / domain  # down
    return max(sent.values())


@dataclass(frozen=True)
class Hops:
    """What a chunk costs: a slot of a port on every edge, then a latency."""

    slot: float
    fabric_latency: float
    nvlink_latency: float


def finish(parents: Parents, domain: int, chunks: int, hops: Hops) -> float:
    """Time at which every rank has every chunk of one tree."""
    above: dict[tuple[int, int], tuple[int, int] | None] = {}
    for node, parent in parents.items():
        above[node, 0] = None if parent is None else (parent, 0)
        for place in range(1, domain):
            above[node, place] = (node, place - 1)
    below: dict[tuple[int, int], list[tuple[int, int]]] = {rank: [] for rank in above}
    for rank, parent in above.items():
        if parent is not None:
            below[parent].append(rank)
    [root] = [rank for rank, parent in above.items() if parent is None]

    def passed(ready: list[float], one: tuple[int, int], other: tuple[int, int]) -> list[float]:
        """Arrivals over one edge of the chunks that are ready at these times."""
        latency = hops.fabric_latency if one[0] != other[0] else hops.nvlink_latency
        free, arrivals = 0.0, []
        for time in ready:
            free = max(free, time) + hops.slot
            arrivals.append(free + latency)
        return arrivals

    def summed(rank: tuple[int, int]) -> list[float]:
        """When the sum of everything below a rank is there, by chunk."""
        ready = [0.0] * chunks
        for child in below[rank]:
            ready = list(map(max, ready, passed(summed(child), child, rank)))
        return ready

    def copied(rank: tuple[int, int], ready: list[float]) -> float:
        """When the last rank below has the last chunk."""
        ends = [copied(child, passed(ready, rank, child)) for child in below[rank]]
        return max([ready[-1], *ends])

    return copied(root, summed(root))


def all_reduce(domains: int, domain: int, chunks: int, hops: Hops) -> float:
    """Time of a double binary tree over `domains` chains of `domain` ranks."""
    return max(finish(parents, domain, chunks, hops) for parents in both_trees(domains))
