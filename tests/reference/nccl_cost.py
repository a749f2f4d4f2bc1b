"""NCCL's cost model one call at a time, in microseconds and GB/s, as its source prints it.

Written from the facts of NCCL v2.30.7 (`src/graph/tuning.cc`, `src/graph/topo.h`): plain numbers,
one function for each algorithm, integer logarithms. Shares no code with the kernel.
"""

import dataclasses
from fractions import Fraction

GENERATIONS = ("volta", "ampere", "hopper", "blackwell")


@dataclasses.dataclass(frozen=True)
class Case:
    """One collective on one machine."""

    operation: str
    size: int
    nodes: int
    per_node: int
    channels: int = 16
    inside: float = 20.0  # GB/s a channel
    across: float = 20.0
    multicast: float = 20.0
    generation: str = "hopper"
    host: str = "intel"
    overhead: float = 1.0  # us
    plugin: float = 0.0
    old_ring: bool = False
    pcie: bool = False
    plain_tree: bool = False
    nvlink_switch_adds: bool = True
    fabric_adds: bool = False

    @property
    def ranks(self) -> int:
        return self.nodes * self.per_node

    @property
    def passes(self) -> int:
        return 2 if self.operation == "all_reduce" else 1


def _column(case: Case) -> int:
    return min(case.nodes, 3) - 1


def _plateau(case: Case) -> bool:
    return case.size // (case.channels * case.ranks) >= 64


def _each(case: Case) -> float:
    return case.inside if case.nodes <= 2 else case.across


def _levels(case: Case) -> int:
    return case.nodes.bit_length() - 1


LL_MOST = ((39, 39, 20.4), (87.7, 22.5, 19.0), (141, 45, 35), (282, 90, 70))
RING_128 = {"volta": 20, "ampere": 20, "hopper": 36.7, "blackwell": 40}
TREE_128 = {
    "volta": (20, 20, 20), "ampere": (20, 20, 20),
    "hopper": (36.7, 36.7, 29), "blackwell": (55.6, 31.67, 20),
}  # fmt: skip
TREE = {
    "volta": (26.5, 18.5, 10), "ampere": (24, 23.6, 17.8),
    "hopper": (38.7, 41.4, 36), "blackwell": (70, 42.8, 24),
}  # fmt: skip
NVLS_TREE = {"hopper": (0, 57.7, 45.5), "blackwell": (0, 96, 80)}
NVLS_SHARE = {"hopper": 0.85, "blackwell": 0.74}
CORRECTION = {
    "ll": "1 1 1 1 .9 .8 .7 .7 .7 .7 .6 .5 .4 .4 .5 .6 .7 .8 .9 1 1 1 1",
    "ll128": "1 1 1 1 1 .9 .8 .8 .8 .7 .6 .6 .6 .6 .6 .6 .8 .9 .9 .9 .9 1 1",
    "simple": ".9 .9 .9 .9 .9 .9 .9 .8 .7 .6 .6 .5 .5 .5 .5 .6 .7 .8 .7 .7 .8 .9 .9",
}


def _corrected(case: Case, protocol: str) -> float:
    place = (case.size >> 6).bit_length() - 1
    values = CORRECTION[protocol].split()
    return float(values[place]) if 0 <= place < len(values) else 1.0


def _ll_most(case: Case) -> float:
    row = GENERATIONS.index(case.generation) if case.nodes == 1 else int(case.host == "amd")
    return LL_MOST[row][_column(case)]


def _network(case: Case, latency: dict[str, float], protocol: str) -> float:
    tree = {"ll": 5.0, "ll128": 8.5, "simple": 14.0}
    hop = (tree if case.per_node == 1 else latency)[protocol]
    return hop + case.plugin * (2 if protocol == "simple" else 1)


def ring(case: Case, protocol: str) -> float:
    """Ring: every step a hop, of which so many cross the network."""
    steps = case.passes * (case.ranks - 1)
    crossing = 0
    if case.nodes > 1:
        old = case.old_ring and case.operation == "all_reduce"
        crossing = 2 * case.nodes if old else case.passes * (case.nodes - 1)
    wires = {"ll": 1.0, "ll128": 2.5, "simple": 5.7} if case.pcie else {
        "ll": 0.6, "ll128": 1.9, "simple": 3.4}  # fmt: skip
    hop = wires[protocol]
    if case.nodes > 1:
        hop = max(hop, case.overhead * (3 if protocol == "simple" else 1))
    base = {"ll": 6.6, "ll128": 14.0, "simple": 8.4}[protocol]
    network = _network(case, {"ll": 2.7, "ll128": 4.0, "simple": 14.0}, protocol)
    latency = base + (steps - crossing) * hop + crossing * network
    bus = case.channels * _each(case)
    if protocol == "ll":
        bus = min(_ll_most(case), bus / 2)
    elif protocol == "ll128":
        bus = min(0.92 * bus, case.channels * RING_128[case.generation])
    elif case.operation == "all_reduce" and case.nodes > 1 and _plateau(case):
        latency *= 1.9 if case.generation == "volta" else 1.4
    return latency + case.size / (1000 * bus * case.ranks / steps)


def tree(case: Case, protocol: str) -> float:
    """Double binary tree of nodes, a chain inside each."""
    hop = {"ll": 1.0, "ll128": 1.9, "simple": 4.0} if case.pcie else {
        "ll": 0.6, "ll128": 1.25, "simple": 4.0}  # fmt: skip
    network = _network(case, {"ll": 5.0, "ll128": 8.5, "simple": 14.0}, protocol)
    base = {"ll": 6.8, "ll128": 14.0, "simple": 8.4}[protocol]
    latency = base + 2 * ((case.per_node - 1) * hop[protocol] + _levels(case) * network)
    column = _column(case)
    bus = min(0.92 * case.channels * _each(case), case.channels * TREE[case.generation][column])
    if protocol == "ll":
        bus = min(bus / 3.8, _ll_most(case))
    if protocol == "ll128":
        share = Fraction(7, 9) if case.nodes == 1 else Fraction(120, 128)
        bus = min(bus * float(share), case.channels * TREE_128[case.generation][column])
    if case.plain_tree:
        bus *= 0.85
    return latency + case.size / (1000 * bus / 2 * _corrected(case, protocol))


def collnet(case: Case, *, direct: bool) -> float:
    """Reduction in the fabric's switches, by all GPUs of a node (direct) or along a chain."""
    others = case.per_node - 1
    network = _network(case, {"simple": 31.0 if direct else 30.0}, "simple")
    bus = case.channels * case.inside
    if direct:
        latency = 2 * (min(1, others) * 3.7 + 0.4 * others) + network
        crowd = case.per_node / case.channels
        bus /= crowd - (crowd - 1) / 2
        bus *= 0.85 if case.generation in NVLS_SHARE else 1
    else:
        latency = 2 * others * 2.8 + network
    return latency + case.size / (1000 * bus / 2)


def nvls(case: Case, *, across_tree: bool) -> float:
    """The NVLink switch adds and multicasts; between nodes a tree or the fabric's switches."""
    network = _network(case, {"simple": 20.9 if across_tree else 18.0}, "simple")
    latency = 25.0
    if across_tree:
        latency += 2 * _levels(case) * network
    elif case.nodes > 1:
        latency += network
    share = NVLS_SHARE[case.generation] * (case.channels - 1) / case.channels
    each = case.multicast * share
    each *= 2 if case.operation == "all_reduce" else (case.per_node - 1) / case.per_node
    if case.nodes > 1:
        each = min(each, case.across * (2 if across_tree and case.nodes == 2 else 1))
    if across_tree:
        each = min(each, NVLS_TREE[case.generation][_column(case)])
        if case.generation == "blackwell" and case.host != "arm":
            each *= _corrected(case, "simple")
    steps = case.passes * (case.ranks - 1)
    return latency + case.size / (1000 * case.channels * each * case.ranks / steps)


def pat(case: Case) -> float:
    """PAT: logarithmic steps across nodes of one GPU."""
    network = _network(case, {"simple": 14.0}, "simple")
    latency = 8.0 + _levels(case) * network / 3.5 + 2.8 * case.ranks
    return latency + case.size / (1000 * 0.75 * case.channels * _each(case))


def times(case: Case) -> dict[tuple[str, str], float]:
    """(algorithm, protocol) -> predicted time in us, for all that NCCL would consider."""
    found: dict[tuple[str, str], float] = {}
    protocols = ("ll", "simple") if case.pcie else ("ll", "ll128", "simple")
    reduces = case.operation == "all_reduce"
    for protocol in protocols:
        if reduces:
            found["tree", protocol] = tree(case, protocol)
        found["ring", protocol] = ring(case, protocol)
    multicast = case.nvlink_switch_adds and case.generation in NVLS_SHARE and not case.pcie
    if case.fabric_adds and reduces and case.nodes > 1:
        if not case.pcie:
            found["collnet_direct", "simple"] = collnet(case, direct=True)
        found["collnet_chain", "simple"] = collnet(case, direct=False)
    if multicast and case.per_node > 2 and case.channels >= 2:
        small = case.per_node <= 32 and case.channels <= 32
        if (case.nodes == 1 or case.fabric_adds) and (reduces or small):
            found["nvls", "simple"] = nvls(case, across_tree=False)
        if reduces and case.nodes > 1:
            found["nvls_tree", "simple"] = nvls(case, across_tree=True)
    if not reduces and case.per_node == 1 and case.nodes > 1:
        found["pat", "simple"] = pat(case)
    return found
