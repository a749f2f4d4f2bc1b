"""One flow, packet by packet: from loss to loss, so that the packets between cost nothing.

Time is counted in slots, the time of one packet. The sender sends one packet a slot while its
window allows; what became of the packet of slot s is known at slot s + 1 + R. Slots lose packets
as `laws.channel` says.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import Array

from fabric_kernels.loss.laws.channel import NEVER, Channel, Event, first_event
from fabric_kernels.uniform import WideUniform


class Run(NamedTuple):
    """One message of one flow, in packets and slots (whole numbers)."""

    packets: Array
    feedback: Array  # slots from the end of a packet to the sender's knowing
    window: Array  # packets
    timeout: Array  # slots from the start of a packet


class Outcome(NamedTuple):
    """What a run took."""

    slots: Array  # until the sender knows that all packets have come; -1: not finished
    timers: Array  # how often the timer had to repair


_State = TypeVar("_State", "_GoBackN", "_SelectiveRepeat")


_Arrays = TypeVar("_Arrays")


def _lifted(arrays: _Arrays) -> _Arrays:
    """With an axis of one in front, along which a run keeps its open losses."""
    return jax.tree.map(lambda x: x[None], arrays)


def _at_start(run: Run, channel: Channel, uniforms: WideUniform) -> tuple[Event, Array]:
    """The first event of every run, and a zero for each."""
    event = first_event(channel, uniforms)
    shapes = (x.shape for x in (*run, event.slot))
    zero = jnp.zeros(jnp.broadcast_shapes(*shapes), jnp.int32)
    return jax.tree.map(lambda x: jnp.broadcast_to(x, zero.shape), event), zero


def _until_done(
    step: Callable[[_State], tuple[_State, Array, Array]],
    state: _State,
    channel: Channel,
    uniforms: WideUniform,
    most: int,
) -> _State:
    """Step until every run has its slots.

    A step says whether its event is used up, and from which slot on the next one matters.
    """

    def body(carry: tuple[Array, _State]) -> tuple[Array, _State]:
        number, now = carry
        moved, used, slot = step(now)
        drawn = channel.following(now.event, slot, uniforms, number)
        event = jax.tree.map(lambda a, b: jnp.where(used, a, b), drawn, now.event)
        return number + 1, moved._replace(event=event)

    def going(carry: tuple[Array, _State]) -> Array:
        return (carry[0] < most) & jnp.any(carry[1].slots < 0)

    return jax.lax.while_loop(going, body, (jnp.asarray(1, jnp.uint32), state))[1]


class _GoBackN(NamedTuple):
    event: Event
    start: Array  # slot in which `expected` is sent
    expected: Array
    lost: Array  # slot of a lost packet whose followers are awaited; -1: none
    silent: Array  # followers lost so far
    told: Array  # packet that the receiver has reported already; -1: none
    timers: Array
    slots: Array


def go_back_n_run(
    run: Run, channel: Channel, uniforms: WideUniform, *, single_nak: bool, most: int = 2**14
) -> Outcome:
    """Go-back-N: the receiver takes packets in order and reports the one it misses.

    The first packet that comes out of order makes it report; the sender then starts again at the
    missing one. Nothing behind it in the window or the message comes: the timer repeats it. With
    `single_nak` a packet is reported once, and a second loss of it waits for the timer. Runs that
    take more than `most` events are given up (slots -1).
    """
    run, channel = _lifted(run), _lifted(channel)
    event, zero = _at_start(run, channel, uniforms)
    state = _GoBackN(event, zero, zero, zero - 1, zero, zero - 1, zero, zero - 1)

    def step(now: _GoBackN) -> tuple[_GoBackN, Array, Array]:
        return _go_back_n_step(run, now, single_nak=single_nak)

    last = _until_done(step, state, channel, uniforms, most)
    return Outcome(last.slots[0], last.timers[0])


def _go_back_n_step(run: Run, now: _GoBackN, *, single_nak: bool) -> tuple[_GoBackN, Array, Array]:
    """One event, whether it is used up, and the slot from which the next matters."""
    slot, lossy = now.event.slot, now.event.lossy
    waiting = now.lost >= 0
    packet = now.expected + (jnp.where(waiting, now.lost, slot) - now.start)
    running = now.slots < 0
    ended = running & ~waiting & (packet >= run.packets) & (slot >= now.start)
    hit = running & ~waiting & ~ended & (slot >= now.start) & lossy
    followers = jnp.minimum(run.window, run.packets - packet) - 1
    next_silent = waiting & lossy & (slot == now.lost + 1 + now.silent)
    silent = now.silent + next_silent.astype(jnp.int32)
    spoken = now.told == packet if single_nak else jnp.zeros_like(waiting)
    timed = ((hit | waiting) & (followers <= silent)) | (hit & spoken)
    answered = waiting & ~next_silent & ~timed
    lost = jnp.where(waiting, now.lost, slot)
    start = jnp.where(timed, lost + run.timeout, lost + run.feedback + 2 + silent)
    repaired = timed | answered
    moved = now._replace(
        start=jnp.where(repaired, start, now.start),
        expected=jnp.where(repaired, packet, now.expected),
        lost=jnp.where(repaired, -1, jnp.where(hit, slot, now.lost)),
        silent=jnp.where(repaired, 0, silent),
        told=jnp.where(answered, packet, now.told),
        timers=now.timers + timed.astype(jnp.int32),
        slots=jnp.where(ended, now.start + (run.packets - now.expected) + run.feedback, now.slots),
    )
    return moved, ~answered & ~ended & running, moved.start


_NONE, _SILENT, _DUE, _RESENT = 0, 1, 2, 3
"""Of a lost packet: none; nothing sent later has come; known; sent again and on its way."""


class _SelectiveRepeat(NamedTuple):
    event: Event
    slot: Array
    sent: Array  # packets sent for the first time
    number: Array  # [open, ...] of lost packets that are not known to have come
    phase: Array
    time: Array  # timer, slot in which it is known lost, or slot in which it is known to have come
    last: Array  # slot of the last packet that came
    timers: Array
    slots: Array


def selective_repeat_run(
    run: Run, channel: Channel, uniforms: WideUniform, *, open_losses: int = 16, most: int = 2**15
) -> Outcome:
    """Selective repeat in a window of sequence numbers.

    A packet is known lost once one that was sent later has come, first sending or not; known
    losses are sent again before anything new, the oldest first. New packets stay within `window`
    of the oldest that is not known to have come. Nothing sent later comes: the timer. At most
    `open_losses` losses are kept at once; a run that needs more, or more than `most` events, is
    given up (slots -1).
    """
    run, channel = _lifted(run), _lifted(channel)
    event, zero = _at_start(run, channel, uniforms)
    none = jnp.zeros((open_losses, *zero.shape[1:]), jnp.int32)
    state = _SelectiveRepeat(event, zero, zero, none, none, none, zero - 1, zero, zero - 1)
    last = _until_done(lambda now: _selective_step(run, now), state, channel, uniforms, most)
    return Outcome(jnp.where(last.slots == NEVER, -1, last.slots)[0], last.timers[0])


class _Sending(NamedTuple):
    """What the sender does from its slot on."""

    again: Array  # [open, ...] the loss that it sends again, if any
    length: Array  # slots in a row
    horizon: Array  # next slot in which anything becomes known


def _sending(run: Run, now: _SelectiveRepeat) -> _Sending:
    active = now.phase != _NONE
    base = jnp.min(jnp.where(active, now.number, NEVER), axis=0, keepdims=True)
    allowed = jnp.maximum(jnp.minimum(run.packets, base + run.window) - now.sent, 0)
    due = (now.phase == _DUE) & (now.time <= now.slot)
    oldest = jnp.min(jnp.where(due, now.number, NEVER), axis=0, keepdims=True)
    later = active & (now.time > now.slot)
    horizon = jnp.min(jnp.where(later, now.time, NEVER), axis=0, keepdims=True)
    any_due = jnp.any(due, axis=0, keepdims=True)
    # the first packet that comes now makes a silent loss known so much later
    silent = jnp.any(now.phase == _SILENT, axis=0, keepdims=True)
    known = jnp.where(silent, run.feedback + 1, NEVER)
    length = jnp.minimum(jnp.minimum(allowed, known), horizon - now.slot)
    length = jnp.where(any_due, 1, length)
    return _Sending(due & (now.number == oldest), length, horizon)


def _selective_step(run: Run, now: _SelectiveRepeat) -> tuple[_SelectiveRepeat, Array, Array]:
    """Send up to the next event, say whether it is used up, and where the sender then is."""
    running = now.slots < 0
    now = _informed(run, now)
    sending = _sending(run, now)
    old = now.event.slot < now.slot
    reached = ~old & (now.event.slot < now.slot + sending.length)
    good = jnp.where(reached, now.event.slot - now.slot, sending.length)
    good = jnp.where(old, 0, good)
    dropped = reached & now.event.lossy
    good = good + (reached & ~now.event.lossy).astype(jnp.int32)
    moved = _after_sending(run, now, sending, good, dropped)
    end = now.slot + good + dropped.astype(jnp.int32)
    idle = ~old & (sending.length == 0)
    open_ = (moved.phase == _SILENT) | (moved.phase == _DUE)
    done = (moved.sent >= run.packets) & ~jnp.any(open_, axis=0, keepdims=True)
    moved = moved._replace(
        slot=jnp.where(idle, jnp.minimum(sending.horizon, NEVER), end),
        slots=jnp.where(done, moved.last + 1 + run.feedback, moved.slots),
    )
    keep = jax.tree.map(lambda new, before: jnp.where(running, new, before), moved, now)
    return keep, running & (old | reached), keep.slot


def _informed(run: Run, now: _SelectiveRepeat) -> _SelectiveRepeat:
    """What the sender knows at its slot: resends that have come, timers that have run out."""
    passed = now.time <= now.slot
    timed = (now.phase == _SILENT) & passed
    phase = jnp.where((now.phase == _RESENT) & passed, _NONE, jnp.where(timed, _DUE, now.phase))
    fired = (now.slots < 0) & jnp.any(timed, axis=0, keepdims=True)
    return now._replace(phase=phase, timers=now.timers + fired.astype(jnp.int32))


def _after_sending(
    run: Run, now: _SelectiveRepeat, sending: _Sending, good: Array, dropped: Array
) -> _SelectiveRepeat:
    """`good` packets that come, then perhaps one that is dropped."""
    again = jnp.any(sending.again, axis=0, keepdims=True)
    known = (now.phase == _SILENT) & (good > 0)
    phase = jnp.where(known, _DUE, now.phase)
    time = jnp.where(known, now.slot + run.feedback + 1, now.time)
    resent = sending.again & (good > 0)
    phase = jnp.where(resent, _RESENT, phase)
    time = jnp.where(resent, now.slot + run.feedback + 1, time)
    # a dropped packet takes the entry it has, a new one the first that is free
    free = phase == _NONE
    first = free & (jnp.cumsum(free.astype(jnp.int32), axis=0) == 1)
    entry = dropped & jnp.where(again, sending.again, first)
    timer = now.slot + good + run.timeout
    full = dropped & ~again & ~jnp.any(free, axis=0, keepdims=True)
    new = jnp.where(again, 0, good + dropped.astype(jnp.int32))
    return now._replace(
        sent=now.sent + new,
        number=jnp.where(entry & ~again, now.sent + good, now.number),
        phase=jnp.where(entry, _SILENT, phase),
        time=jnp.where(entry, timer, time),
        last=jnp.where(good > 0, now.slot + good - 1, now.last),
        slots=jnp.where(full, NEVER, now.slots),
    )
