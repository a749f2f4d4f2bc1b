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


def _matrix(nodes: Nodes, slope: Array | float) -> tuple[Array, Array, Array, Array]:
    path = 1.0 / nodes.resistance
    return (
        (slope - path) / nodes.die,
        path / nodes.die,
        path / nodes.plate,
        -(path + nodes.conductance) / nodes.plate,
    )


def _eigenvalues(matrix: tuple[Array, Array, Array, Array]) -> tuple[Array, Array]:
    """The slow and the fast one; they differ because heat flows both ways."""
    a, b, c, d = matrix
    root = jnp.sqrt((a - d) * (a - d) + 4.0 * b * c)
    fast = 0.5 * (a + d - root)
    # from the product of both, which does not cancel
    return (a * d - b * c) / fast, fast


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
    matrix = a, b, c, d = _matrix(nodes, slope)
    slow, fast = _eigenvalues(matrix)
    by_slow, by_fast = _grown(slow, time), _grown(fast, time)
    linear = (by_slow - by_fast) / (slow - fast)
    constant = by_fast - linear * fast
    flow = (state.die - state.plate) / nodes.resistance
    die = (power - flow) / nodes.die
    plate = (flow - nodes.conductance * (state.plate - nodes.medium)) / nodes.plate
    return State(
        state.die + constant * die + linear * (a * die + b * plate),
        state.plate + constant * plate + linear * (c * die + d * plate),
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
    matrix = a, b, _, _ = _matrix(nodes, 0.0)
    slow, fast = _eigenvalues(matrix)
    gap = State(*(h - c for h, c in zip(steady(nodes, high), steady(nodes, low), strict=True)))
    coldest = steady(nodes, low).die
    swing = jnp.zeros_like(coldest)
    for rate, other in ((slow, fast), (fast, slow)):
        mode = ((a - other) * gap.die + b * gap.plate) / (rate - other)
        on, off = rate * period * high_share, rate * period * (1.0 - high_share)
        whole = jnp.expm1(on + off)
        whole = jnp.where(whole == 0.0, -1e-30, whole)
        coldest = coldest + mode * jnp.exp(off) * jnp.expm1(on) / whole
        # not a difference of both, which cancels
        swing = swing - mode * (jnp.expm1(on) * jnp.expm1(off) / whole)
    mean = steady(nodes, high_share * high + (1.0 - high_share) * low).die
    return Cycle(mean, coldest, coldest + swing, swing)
