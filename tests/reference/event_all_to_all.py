"""All-to-all and point-to-point, message by message, with the ports of ``event_ring``."""

from tests.reference.event_ring import Cluster, Ports, Run


def direct(cluster: Cluster, payload: float) -> Run:
    """Every rank sends every other its part at once; a port serves one message after another."""
    ranks, ports, finish = cluster.ranks, Ports(cluster), 0.0
    for shift in range(1, ranks):
        for rank in range(ranks):
            arrival = ports.send(0.0, rank, (rank + shift) % ranks, payload / ranks)
            finish = max(finish, arrival)
    return Run(finish, ports.fabric_messages, ports.fabric_bytes, ports.messages)


def pairwise(cluster: Cluster, payload: float) -> Run:
    """g - 1 rounds with a barrier between; in each, every rank sends one and gets one.

    In a round all partners are equally many domains and equally many places apart, so that all
    messages of it take the same network.
    """
    size, ranks = cluster.domain, cluster.ranks
    ports, now = Ports(cluster), 0.0
    for domains in range(ranks // size):
        for places in range(size):
            if domains == places == 0:
                continue
            arrivals = [
                ports.send(
                    now,
                    rank,
                    (rank // size * size + domains * size) % ranks + (rank + places) % size,
                    payload / ranks,
                )
                for rank in range(ranks)
            ]
            now = max(arrivals)
    return Run(now, ports.fabric_messages, ports.fabric_bytes, ports.messages)


def by_rails(cluster: Cluster, payload: float) -> Run:
    """First to the rank of the own domain on the receiver's rail, then along the rail.

    A rank starts along its rail when all that its domain has for the rail is there.
    """
    size, ranks = cluster.domain, cluster.ranks
    domains, ports = ranks // size, Ports(cluster)
    there = [0.0] * ranks
    for places in range(1, size):
        for rank in range(ranks):
            neighbour = rank // size * size + (rank + places) % size
            arrival = ports.send(0.0, rank, neighbour, domains * payload / ranks)
            there[neighbour] = max(there[neighbour], arrival)
    finish = max(there)
    for shift in range(1, domains):
        for rank in range(ranks):
            receiver = (rank + shift * size) % ranks
            finish = max(finish, ports.send(there[rank], rank, receiver, size * payload / ranks))
    return Run(finish, ports.fabric_messages, ports.fabric_bytes, ports.messages)


def message(cluster: Cluster, payload: float) -> Run:
    """One message from every rank to the one half the group away."""
    ranks, ports = cluster.ranks, Ports(cluster)
    if ranks == 1:
        return Run(0.0, 0, 0.0, 0)
    arrivals = [
        ports.send(0.0, rank, (rank + ranks // 2) % ranks, payload) for rank in range(ranks)
    ]
    return Run(max(arrivals), ports.fabric_messages, ports.fabric_bytes, ports.messages)
