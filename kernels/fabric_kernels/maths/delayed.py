"""Equations with a delay, integrated in fixed steps, and what they do once they have settled."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

State = tuple[Array, ...]

_TOP = 8
_RANK = 0.99


class Schedule(NamedTuple):
    """How long to integrate; whole numbers that are known when a program is built."""

    settling: int  # blocks before the statistics start
    blocks: int  # blocks that are counted, at most 800
    stride: int  # steps of one block
    memory: int  # steps that the delay line holds, more than the longest lag


class Settled(NamedTuple):
    """Statistics of one observed number over the counted steps."""

    mean: Array
    deviation: Array
    least: Array
    most: Array


class Equation(NamedTuple):
    """One step of Euler's method, what it remembers of its past, and what is observed of it."""

    advance: Callable[[State, State], State]  # of the state and of what was remembered
    remembered: Callable[[State], State]
    observed: Callable[[State], State]


class _Run(NamedTuple):
    state: State
    past: State  # each [memory, lanes...], a ring
    now: Array  # int32, number of the step


class _Sums(NamedTuple):
    """Of one block, about its first value, so that nothing is lost in single precision."""

    first: Array
    total: Array
    squares: Array
    least: Array
    most: Array


def with_remainder(value: Array, lost: Array, change: Array) -> tuple[Array, Array]:
    """value + change, and what rounding took of it, to be given back at the next step.

    Kahan, Communications of the ACM 8(1), 1965. A slow variable in single precision would stand
    still as soon as its change falls below half a last digit.
    """
    wanted = change + lost
    total = value + wanted
    return total, wanted - (total - value)


def settled(
    equation: Equation, start: State, lag: Array, schedule: Schedule
) -> tuple[tuple[Settled, ...], Array]:
    """Statistics of the observed numbers, and the 99th percentile of the first of them.

    `equation.advance(state, late)` is one step; `late` is `equation.remembered(state)` as it was
    `lag` steps ago, a whole number (int32) from 0 to memory - 1 of each lane. Before the start
    everything was as it is at the start. The percentile is that of one value a block, by rank.
    A step costs one `advance` and one read and one write of the delay line; all is elementwise
    over lanes.
    """
    past = tuple(
        jnp.broadcast_to(value, (schedule.memory, *value.shape))
        for value in equation.remembered(start)
    )
    run = _Run(start, past, jnp.int32(0))
    back = jnp.clip(lag, 0, schedule.memory - 1)

    def step(run: _Run) -> _Run:
        return _step(run, equation, back)

    run, _ = jax.lax.scan(
        lambda carry, _: (step(carry), None), run, length=schedule.settling * schedule.stride
    )
    return _counted(step, equation, run, schedule)


def _step(run: _Run, equation: Equation, back: Array) -> _Run:
    memory = run.past[0].shape[0]
    past = tuple(
        jax.lax.dynamic_update_index_in_dim(line, value, run.now % memory, 0)
        for line, value in zip(run.past, equation.remembered(run.state), strict=True)
    )
    place = ((run.now - back) % memory)[None]
    late = tuple(
        jnp.take_along_axis(line, place, axis=0, mode="promise_in_bounds")[0] for line in past
    )
    return _Run(equation.advance(run.state, late), past, run.now + 1)


def _counted(
    step: Callable[[_Run], _Run], equation: Equation, run: _Run, schedule: Schedule
) -> tuple[tuple[Settled, ...], Array]:
    opened = equation.observed(run.state)
    empty = tuple(Settled(v, jnp.zeros_like(v), v, v) for v in opened)
    highest = (jnp.full_like(opened[0], -jnp.inf),) * _TOP

    def block(
        carry: tuple[_Run, tuple[Settled, ...], State], number: Array
    ) -> tuple[tuple[_Run, tuple[Settled, ...], State], None]:
        run, merged, highest = carry
        run, sums = _block(step, equation, run, schedule.stride)
        merged = tuple(
            _merged(m, s, number, schedule.stride) for m, s in zip(merged, sums, strict=True)
        )
        return (run, merged, _inserted(highest, equation.observed(run.state)[0])), None

    numbers = jnp.arange(schedule.blocks, dtype=opened[0].dtype)
    (_, merged, highest), _ = jax.lax.scan(block, (run, empty, highest), numbers)
    found = tuple(m._replace(deviation=jnp.sqrt(jnp.maximum(m.deviation, 0.0))) for m in merged)
    return found, _percentile(highest, schedule.blocks)


def _block(
    step: Callable[[_Run], _Run], equation: Equation, run: _Run, stride: int
) -> tuple[_Run, tuple[_Sums, ...]]:
    opened = equation.observed(run.state)
    empty = tuple(_Sums(v, jnp.zeros_like(v), jnp.zeros_like(v), v, v) for v in opened)

    def one(
        carry: tuple[_Run, tuple[_Sums, ...]], _: None
    ) -> tuple[tuple[_Run, tuple[_Sums, ...]], None]:
        run, sums = carry
        run = step(run)
        return (run, tuple(map(_added, sums, equation.observed(run.state)))), None

    (run, sums), _ = jax.lax.scan(one, (run, empty), length=stride)
    return run, sums


def _added(sums: _Sums, value: Array) -> _Sums:
    apart = value - sums.first
    return _Sums(
        sums.first,
        sums.total + apart,
        sums.squares + apart * apart,
        jnp.minimum(sums.least, value),
        jnp.maximum(sums.most, value),
    )


def _merged(merged: Settled, sums: _Sums, number: Array, stride: int) -> Settled:
    """Chan, Golub and LeVeque's update; `deviation` holds the variance until the end."""
    shift = sums.total / stride
    variance = sums.squares / stride - shift * shift
    weight = 1.0 / (number + 1.0)
    apart = sums.first + shift - merged.mean
    begins = number == 0
    return Settled(
        mean=merged.mean + weight * apart,
        deviation=merged.deviation
        + weight * (variance - merged.deviation + (1.0 - weight) * apart * apart),
        least=jnp.where(begins, sums.least, jnp.minimum(merged.least, sums.least)),
        most=jnp.where(begins, sums.most, jnp.maximum(merged.most, sums.most)),
    )


def _inserted(highest: State, value: Array) -> State:
    """The highest values so far, in order, with one more."""
    kept = []
    for old in highest:
        kept.append(jnp.maximum(old, value))
        value = jnp.minimum(old, value)
    return tuple(kept)


def _percentile(highest: State, count: int) -> Array:
    """By linear interpolation between ranks."""
    above = (1.0 - _RANK) * (count - 1)
    whole = min(int(above), _TOP - 2)
    share = min(above - whole, 1.0)
    return highest[whole] * (1.0 - share) + highest[whole + 1] * share
