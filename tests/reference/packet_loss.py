"""Lost packets, packet by packet, and what they cost a ring of flows.

One flow is simulated in slots, the time of one packet: the sender puts one packet on the wire in
every slot, the receiver's word about a packet reaches the sender `feedback` slots after the packet
has left. The receiver takes packets in order only; a packet out of order makes it ask for the one
it misses (NAK), and the sender goes back to that one. If nothing behind a lost packet arrives,
only the timer of `timeout` slots, counted from the start of the lost packet, repeats it.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Lost = Callable[[int, int], bool]  # (packet, how often it was sent before) -> lost?


def go_back_n(packets: int, feedback: int, timeout: int, lost: Lost) -> int:
    """Slots until the sender knows that all `packets` have arrived.

    The window never stops the sender. A receiver asks again for a packet when it is lost again
    (one request per round, not one per packet).
    """
    sent = [0] * packets
    slot, following, expected = 0, 0, 0
    asked: int | None = None  # slot at which the sender hears that `expected` is missing
    timer: int | None = None
    while expected < packets:
        if asked == slot or timer == slot:
            following, asked, timer = expected, None, None
        if following < packets:
            gone = lost(following, sent[following])
            sent[following] += 1
            if not gone and following == expected and asked is None:
                expected, timer = expected + 1, None
            elif gone and following == expected:
                timer = slot + timeout
            elif not gone and following > expected and asked is None:
                asked, timer = slot + 1 + feedback, None
            following += 1
        slot += 1
    return slot + feedback


def one_loss(packets: int, feedback: int, timeout: int, packet: int) -> int:
    """Slots that the loss of one packet, sent the first time, adds to a clean run."""
    lossy = go_back_n(packets, feedback, timeout, lambda j, again: j == packet and again == 0)
    return lossy - go_back_n(packets, feedback, timeout, lambda j, again: False)


def sampled_go_back_n(
    packets: int, feedback: int, timeout: int, rate: float, generator: np.random.Generator
) -> tuple[int, int]:
    """Slots of one run in which packets are lost with probability `rate`, and the losses in it."""
    losses = 0

    def lost(packet: int, again: int) -> bool:
        nonlocal losses
        gone = bool(generator.random() < rate)
        losses += gone
        return gone

    return go_back_n(packets, feedback, timeout, lost), losses


def chain_lengths(
    points: int, span: float, replicates: int, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Longest chain of random points on a ring of girth 1 in the time `span`, per replicate.

    A point (x, t) is followed by (x', t') if t' - t >= (x' - x) mod 1: a stall at one rank delays
    another if the ring has carried it there. All-reduce has span 2, one phase of it span 1.
    """
    times = np.sort(generator.random((replicates, points)) * span, axis=1)
    places = generator.random((replicates, points))
    length = np.ones((replicates, points))
    for late in range(1, points):
        apart = times[:, late, None] - times[:, :late]
        around = np.mod(places[:, late, None] - places[:, :late], 1.0)
        before = np.where(apart >= around, length[:, :late], 0.0)
        length[:, late] = 1.0 + before.max(axis=1)
    return length.max(axis=1) if points else np.zeros(replicates)


def ring_stalls(
    ranks: int, expected: float, replicates: int, generator: np.random.Generator, *, repeated: bool
) -> NDArray[np.float64]:
    """Stalls on the critical path of an all-reduce ring, event by event.

    The 2 (g - 1) g hops share `expected` stalls; a rank ends a step when its own and its
    predecessor's step before are done. A hop has a Poisson number of stalls if `repeated`, else
    one or none (so ``collective_stall.csv`` counts them: with 300 stalls in a ring of 64 that is
    2 % less, as 4 % of the hops stall).
    """
    steps = 2 * (ranks - 1)
    rate = expected / (steps * ranks)
    done = np.zeros((replicates, ranks))
    for _ in range(steps):
        if repeated:
            stalls = generator.poisson(rate, done.shape).astype(float)
        else:
            stalls = (generator.random(done.shape) < rate).astype(float)
        done = np.maximum(done, np.roll(done, 1, axis=1)) + stalls
    return done.max(axis=1)


def largest_poisson(rate: float, groups: float, distance: float, *, upper: bool) -> int:
    """Quantile of the largest of `groups` Poisson(rate) numbers at `distance` from its end.

    The smallest k with F(k)^groups >= u, compared on the side of the nearer end.
    """

    def reaches(count: int) -> bool:
        survival = float(stats.poisson.sf(count, rate))
        if upper:
            if survival >= 1.0:
                return False
            return -math.expm1(groups * math.log1p(-survival)) <= distance
        if survival < 0.5:
            logarithm = math.log1p(-survival)
        else:
            logarithm = float(stats.poisson.logcdf(count, rate))
        return groups * logarithm >= math.log(distance)

    low, high = -1, 1
    while not reaches(high):
        low, high = high, 2 * high + int(rate)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high
