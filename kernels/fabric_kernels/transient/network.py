"""Two heat capacities in a row: die, then plate, then medium.

    C1 dT1/dt = P - (T1 - T2) / R12,   C2 dT2/dt = (T1 - T2) / R12 - G (T2 - T_medium)

Linear between changes of power, so steps are exact (matrix exponential by its eigenvalues, which
are real and apart) and periodic states have closed forms. The heat capacities are assumptions set
to published times to shutdown.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from fabric_kernels.inputs.power_law import Chip, leakage_power, power_with_leakage, voltage
from fabric_kernels.maths.root import increasing_root

_STEPS = 64  # of a heating with leakage: error of its time below 3e-5
_ROOT_STEPS = 60


class Nodes(NamedTuple):
    """The network and what it is cooled by."""

    die: Array  # C1, J K-1
    plate: Array  # C2, J K-1
    resistance: Array  # R12, K W-1
    conductance: Array  # G, W K-1
    medium: Array  # degC


class State(NamedTuple):
    """Temperatures of both nodes, in degC."""

    die: Array
    plate: Array


def steady(nodes: Nodes, power: Array) -> State:
    """Where a constant power (W) leads; the conductance must be above 0."""
    plate = nodes.medium + power / nodes.conductance
    return State(plate + power * nodes.resistance, plate)


class _Modes(NamedTuple):
    """What is needed of the matrix [[a, b], [c, d]] of the network and of its rates, all in s-1."""

    b: Array  # 1 / (R12 C1)
    c: Array  # 1 / (R12 C2)
    slow: Array
    fast: Array
    above: Array  # a - fast = slow - d
    below: Array  # slow - a = d - fast
    above_c: Array  # above - c
    below_b: Array  # b - below

    @property
    def gap(self) -> Array:
        """slow - fast, above 0 because heat flows both ways."""
        return self.above + self.below


def _modes(nodes: Nodes, slope: Array | float) -> _Modes:
    """The modes, with no small number as the difference of large ones.

    A small resistance makes a, b, c and d large, what heats or cools both nodes stays small: the
    smaller of two roots comes from their product, and that from the heat that is fed and lost.
    """
    path = 1.0 / nodes.resistance
    b, c = path / nodes.die, path / nodes.plate
    fed, lost = slope / nodes.die, nodes.conductance / nodes.plate
    whole = fed - b - c - lost
    difference = fed - b + c + lost
    root = jnp.sqrt(difference * difference + 4.0 * b * c)
    wide = 0.5 * (jnp.abs(difference) + root)
    narrow = b * c / wide
    above = jnp.where(difference > 0, wide, narrow)
    below = jnp.where(difference > 0, narrow, wide)
    product = b * lost - fed * (c + lost)
    larger = 0.5 * jnp.where(whole > 0, whole + root, whole - root)
    smaller = product / larger
    escaping = fed + lost
    return _Modes(
        b,
        c,
        slow=jnp.where(whole > 0, larger, smaller),
        fast=jnp.where(whole > 0, smaller, larger),
        above=above,
        below=below,
        above_c=escaping * c / (c + below),
        below_b=escaping * b / (b + above),
    )


def _grown(rate: Array, time: Array) -> Array:
    """Integral of exp(rate t) over the time, in s."""
    at = jnp.minimum(rate * time, 60.0)
    small = jnp.abs(at) < 1e-4
    safe = jnp.where(small, 1.0, at)
    return time * jnp.where(small, 1.0 + 0.5 * at, jnp.expm1(safe) / safe)


def after(
    nodes: Nodes, state: State, power: Array, time: Array, slope: Array | float = 0.0
) -> State:
    """The state a time (s) later, exactly.

    `power` (W) is that at the state, growing by `slope` (W K-1) with the die's temperature.
    """
    modes = _modes(nodes, slope)
    by_slow, by_fast = _grown(modes.slow, time), _grown(modes.fast, time)
    flow = (state.die - state.plate) / nodes.resistance
    loss = nodes.conductance * (state.plate - nodes.medium)
    # heat into both, the die and the plate; the flow, a small difference times a large number where
    # the resistance is small, hardly enters the slow mode
    both, first, second = power - loss, power - flow, flow - loss
    die = by_slow * (modes.c * both + modes.above_c * first)
    die = die + by_fast * (modes.below * first - modes.c * second)
    plate = by_slow * (modes.below * both + modes.below_b * first)
    plate = plate + by_fast * (modes.above * second - modes.b * first)
    return State(
        state.die + die / (modes.gap * nodes.die),
        state.plate + plate / (modes.gap * nodes.plate),
    )


def time_to(nodes: Nodes, state: State, power: Array, target: Array, horizon: float) -> Array:
    """Time (s) until the die has the target temperature at constant power, at most `horizon`."""
    zero = jnp.zeros_like(state.die + target + power)

    def excess(time: Array) -> Array:
        return after(nodes, state, power, time).die - target

    root = increasing_root(excess, (zero, zero + horizon), zero + 10.0, _ROOT_STEPS)
    return jnp.where(state.die >= target, 0.0, root)


def time_to_with_leakage(
    chip: Chip, clock: Array, nodes: Nodes, state: State, target: Array, horizon: float
) -> Array:
    """Time (s) until the die has the target temperature at a held clock, leakage growing with it.

    Exponential Rosenbrock steps (Hochbruck and Ostermann, Acta Numerica 19, 2010): each exact for
    the leakage linearised at its start.
    """
    square = voltage(chip, clock) * voltage(chip, clock)

    def drawn(temperature: Array) -> tuple[Array, Array]:
        leakage = leakage_power(chip, temperature)
        power = power_with_leakage(chip, leakage, clock)
        return power, square * leakage * chip.leakage_coefficient

    # a start beyond the target, however hot, is there at once
    state = State(jnp.minimum(state.die, target), jnp.minimum(state.plate, target))
    # at constant power it takes longer
    longest = time_to(nodes, state, drawn(state.die)[0], target, horizon)
    # the length of a step is no part of the answer, so it takes no part in derivatives
    longest = jax.lax.stop_gradient(longest)
    step = longest / _STEPS

    def advance(_: int, at: tuple[State, Array]) -> tuple[State, Array]:
        before, time = at
        power, slope = drawn(before.die)
        later = after(nodes, before, power, step, slope)
        rise = jnp.maximum(later.die - before.die, 1e-6)
        part = jnp.clip((target - before.die) / rise, 0.0, 1.0)
        reached = before.die >= target
        later = State(*(jnp.minimum(new, 1e4) for new in later))
        kept = State(*(jnp.where(reached, o, n) for o, n in zip(before, later, strict=True)))
        return kept, time + jnp.where(reached, 0.0, part * step)

    start = State(*(x + jnp.zeros_like(longest) for x in state)), jnp.zeros_like(longest)
    return jax.lax.fori_loop(0, _STEPS, advance, start)[1]


class Cycle(NamedTuple):
    """Junction temperatures of a periodic steady state, in degC."""

    mean: Array
    coldest: Array  # at the end of the low power
    hottest: Array  # at the end of the high power
    swing: Array  # hottest less coldest, K


def duty_cycle(
    nodes: Nodes, powers: tuple[Array, Array], period: Array, high_share: Array
) -> Cycle:
    """Periodic steady state of a power that is high for a share of each period, low for the rest.

    Each eigenmode decays towards the steady state of the power that is on; its amplitudes at both
    changes follow from their repeating. The mean is the steady state of the mean power.
    """
    high, low = powers
    modes = _modes(nodes, 0.0)
    rise = (high - low) / (nodes.die * modes.gap)
    coldest = steady(nodes, low).die
    swing = jnp.zeros_like(coldest)
    for rate, share in ((modes.slow, modes.above), (modes.fast, modes.below)):
        mode = rise * share / -rate
        on, off = rate * period * high_share, rate * period * (1.0 - high_share)
        whole = jnp.expm1(on + off)
        whole = jnp.where(whole == 0.0, -1e-30, whole)
        coldest = coldest + mode * jnp.exp(off) * jnp.expm1(on) / whole
        # not a difference of both, which cancels
        swing = swing - mode * (jnp.expm1(on) * jnp.expm1(off) / whole)
    mean = steady(nodes, high_share * high + (1.0 - high_share) * low).die
    return Cycle(mean, coldest, coldest + swing, swing)
