"""Collectives under hop noise, one message at a time, in plain loops.

`noise(step, place)` gives the noise of one hop; every function returns when the last rank is done.
Nothing here is vectorised, so that it can be read beside the definitions.
"""

from collections.abc import Callable

Noise = Callable[[int, int], float]


def ring(ranks: int, steps: int, noise: Noise) -> float:
    """A rank ends a step one hop after both its own step before and its neighbour's."""
    done = [0.0] * ranks
    for step in range(steps):
        done = [max(done[i], done[i - 1]) + noise(step, i) for i in range(ranks)]
    return max(done)


def ring_with_slots(ranks: int, steps: int, slots: int, noise: Noise) -> float:
    """The same where a sender waits until its receiver has taken the message `slots` before."""
    history = [[0.0] * ranks]
    for step in range(steps):
        now = history[-1]
        start = [max(now[i], now[i - 1]) for i in range(ranks)]
        if len(history) >= slots:
            earlier = history[-slots]
            start = [max(start[i], earlier[(i + 1) % ranks]) for i in range(ranks)]
        history.append([start[i] + noise(step, i) for i in range(ranks)])
    return max(history[-1])


def doubling(ranks: int, distances: list[tuple[int, int]], noise: Noise) -> float:
    """Pairs at a distance wait for each other; distances are (distance, number of its noise)."""
    done = [0.0] * ranks
    for distance, step in distances:
        done = [max(done[i], done[i ^ distance]) + noise(step, i) for i in range(ranks)]
    return max(done)


def tree(depth: int, chunks: int, legs: int, up: Noise, down: Noise) -> float:
    """Chunk after chunk up a binary tree and, with two legs, down again.

    Edge e of height h leads from node e up; noise(16 chunk + h, e). Going down, edge e of level d
    leads to node e of that level.
    """
    rising = [[0.0] * 2 ** (depth - h) for h in range(depth)]
    falling = [[0.0] * 2 ** (d + 1) for d in range(depth)]
    finish = 0.0
    for chunk in range(chunks):
        ready = [0.0] * 2**depth
        for h in range(depth):
            for e in range(len(rising[h])):
                rising[h][e] = max(rising[h][e], ready[e]) + up(16 * chunk + h, e)
            ready = [max(rising[h][2 * e : 2 * e + 2]) for e in range(len(ready) // 2)]
        finish = ready[0]
        if legs == 2:
            for d in range(depth):
                for e in range(len(falling[d])):
                    falling[d][e] = max(falling[d][e], ready[e // 2]) + down(16 * chunk + d, e)
                ready = falling[d]
            finish = max(ready)
    return finish


def hierarchical(ranks: int, domains: int, noise: tuple[Noise, Noise, Noise]) -> float:
    """Ring inside, ring across on every rail, ring inside; place = rank * domains + domain."""
    places = [(i, p) for i in range(ranks) for p in range(domains)]
    done = dict.fromkeys(places, 0.0)
    stages = ((ranks - 1, 1, 0), (2 * (domains - 1), 0, 1), (ranks - 1, 1, 0))
    for (steps, inside, across), of in zip(stages, noise, strict=True):
        for step in range(steps):
            done = {
                (i, p): max(done[i, p], done[(i - inside) % ranks, (p - across) % domains])
                + of(step, i * domains + p)
                for i, p in places
            }
    return max(done.values())
