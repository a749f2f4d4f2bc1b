"""Recovery of lost packets, slot by slot, from a list of the slots that lose what is sent in them.

One flow: the sender sends at most one packet in a slot; the packet of slot s, if the slot does
not lose it, has come by s + 1, and the sender hears so `feedback` slots later. Every sending is
looked at in every slot: slow, and nothing is skipped.
"""

from collections.abc import Callable
from typing import NamedTuple

Lossy = Callable[[int], bool]  # whether the slot loses its packet


class Flow(NamedTuple):
    packets: int
    feedback: int
    window: int
    timeout: int


class Took(NamedTuple):
    slots: int
    timers: int


def go_back_n(flow: Flow, lossy: Lossy, *, single_nak: bool) -> Took:
    """The receiver takes packets in order and reports the first that comes out of order.

    It reports a packet once per round of sending, or, with `single_nak`, once for good. The
    sender goes back when it hears a report, or when the timer of the oldest packet in flight,
    counted from its last sending, runs out and no report is on its way.
    """
    expected = following = timers = slot = 0
    report: tuple[int, int] | None = None  # slot in which the sender hears, packet
    reported: set[int] = set()
    open_round = True
    sent: dict[int, int] = {}
    while expected < flow.packets:
        if report is not None and report[0] == slot:
            following, report, open_round, sent = report[1], None, True, {}
        elif report is None and sent.get(expected, slot) + flow.timeout == slot:
            following, open_round, sent = expected, True, {}
            timers += 1
        # a window of R + 1 or more never stops a sender whose packets come
        if following < min(flow.packets, expected + flow.window):
            sent[following] = slot
            if not lossy(slot):
                may_report = open_round and not (single_nak and expected in reported)
                if following == expected:
                    expected += 1
                elif may_report:
                    report = (slot + 1 + flow.feedback, expected)
                    reported.add(expected)
                    open_round = False
            following += 1
        slot += 1
    return Took(slot + flow.feedback, timers)


def selective_repeat(flow: Flow, lossy: Lossy) -> Took:
    """Lost packets are sent again, the oldest first, as soon as the sender can know of them.

    It knows of a loss when a packet that was sent later has come; without one, the timer of the
    sending runs out. New packets stay within the window above the oldest packet not known to have
    come.
    """
    sendings: list[tuple[int, int, bool]] = []  # slot, packet, lost
    handled: set[int] = set()  # sendings known lost whose packet was sent again
    timed_out: set[int] = set()
    timers = slot = fresh = 0
    arrived_last = -1
    while True:
        known = {p for s, p, lost in sendings if not lost and s + 1 + flow.feedback <= slot}
        missing = [p for p in range(flow.packets) if p not in known]
        if not missing:
            return Took(arrived_last + 1 + flow.feedback, timers)
        survivors = [s for s, _, lost in sendings if not lost]
        candidates: list[tuple[int, int]] = []
        for index, (s, packet, lost) in enumerate(sendings):
            if not lost or index in handled:
                continue
            later = [t for t in survivors if t > s]
            told = bool(later) and min(later) + 1 + flow.feedback <= slot
            timed = not later and s + flow.timeout <= slot
            if told or timed or index in timed_out:
                candidates.append((packet, index))
                if timed and not told and index not in timed_out:
                    timed_out.add(index)
                    timers += 1
        if candidates:
            packet, index = min(candidates)
            handled.add(index)
        elif fresh < flow.packets and fresh < missing[0] + flow.window:
            packet, fresh = fresh, fresh + 1
        else:
            slot += 1
            continue
        lost = lossy(slot)
        if not lost:
            arrived_last = slot
        sendings.append((slot, packet, lost))
        slot += 1
