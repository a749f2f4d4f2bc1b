"""Clocks of a population on single-phase plates, by bisection on every part at once.

Beside power cap and temperature a part may be held by its memory, by its supply of coolant, or by
the fold of thermal runaway, all with the definitions of the design; scores are (R, leakage, D, T,
flow) in standard deviations.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SPREADS = np.array([0.08, 0.20, 0.03, 1.0, 0.07])


@dataclass(frozen=True)
class System:
    """One kind of GPU on its plate; flow in m3/s."""

    design: float
    inlet: float
    flow: float
    limit: float = 87.0
    leakage_share: float = 0.10
    growth: float = 0.020
    memory: tuple[float, float, float] | None = None  # limit, own rise, resistance
    dry_out: float | None = None  # W at the median flow
    resistance: float | None = None  # of a boiling plate or a heatsink
    flow_exponent: float = 0.0  # of that resistance, falling with flow


def part_clocks(system: System, scores: Floats, spreads: Floats = SPREADS) -> Floats:
    """Clock of each part, scores[part, 5]."""
    return _clocks(system, _parts(system, scores, spreads))


def solved(system: System, scores: Floats, spreads: Floats = SPREADS) -> tuple[Floats, Floats]:
    """Clock and power of each part."""
    parts = _parts(system, scores, spreads)
    clock = _clocks(system, parts)
    return clock, _power(system, clock, parts)


class _Parts(NamedTuple):
    """What each part has."""

    base: Floats
    resistance: Floats
    leakage: Floats
    dynamic: Floats
    power: Floats  # that it may draw


def _parts(system: System, scores: Floats, spreads: Floats) -> _Parts:
    away = scores * spreads
    base = system.inlet + away[:, 3]
    leakage = system.leakage_share * system.design * np.exp(away[:, 1] - spreads[1] ** 2 / 2)
    dynamic = 0.85 * system.design * (1 + away[:, 2])
    power = np.full(len(scores), system.design)
    if system.memory is not None:
        limit, own, cross = system.memory
        power = np.minimum(power, (limit - base - own) / cross)
    if system.dry_out is not None:
        power = np.minimum(power, system.dry_out * np.exp(away[:, 4]))
    return _Parts(base, _resistance(system, away), leakage, dynamic, power)


def _clocks(system: System, parts: _Parts) -> Floats:
    base, resistance, leakage, dynamic, power = parts
    ceiling = np.minimum(system.limit, base + resistance * power)
    low, high = np.full(len(base), 0.2), np.ones(len(base))
    for halving in range(45):
        clock = high if halving == 0 else 0.5 * (low + high)
        square = np.maximum(0.72, 1 - 0.8 * (1 - clock)) ** 2
        turn = 65 - np.log(resistance * system.growth * leakage * square) / system.growth
        hottest = np.clip(turn, base, np.maximum(base, ceiling))
        leaking = leakage * np.exp(system.growth * (hottest - 65))
        heat = resistance * (0.15 * system.design + square * (leaking + dynamic * clock))
        allowed = hottest - base - heat >= 0
        low, high = np.where(allowed, clock, low), np.where(allowed, high, clock)
    return low


def _resistance(system: System, away: Floats) -> Floats:
    if system.resistance is not None:
        return system.resistance * np.exp(away[:, 0] - system.flow_exponent * away[:, 4])
    flow = system.flow * np.exp(away[:, 4])
    stream = 1007.2 * 3980.6 * flow
    plate = 0.012 * np.exp(away[:, 0]) * (flow / 2.5e-5) ** -0.5
    return 0.015 * np.exp(away[:, 0]) + 1 / (-np.expm1(-1 / (plate * stream)) * stream)


def _power(system: System, clock: Floats, parts: _Parts) -> Floats:
    """Balance at a clock by repeated substitution, which rises to the lowest root."""
    base, resistance, leakage, dynamic, _ = parts
    square = np.maximum(0.72, 1 - 0.8 * (1 - clock)) ** 2
    temperature, drawn = base, np.zeros_like(base)
    for _ in range(400):
        leaking = leakage * np.exp(system.growth * (temperature - 65))
        drawn = 0.15 * system.design + square * (leaking + dynamic * clock)
        temperature = np.minimum(base + resistance * drawn, system.limit + 100)
    return drawn


def slowest_of(system: System, scores: Floats, spreads: Floats = SPREADS) -> Floats:
    """Slowest clock of each cluster, scores[cluster, part, 5]."""
    return part_clocks(system, scores.reshape(-1, 5), spreads).reshape(scores.shape[:2]).min(1)


def expected_slowest(system: System, count: int, parts: int, seed: int) -> tuple[float, float]:
    """Mean over clusters of the slowest clock of `count` parts, and its standard error.

    From the law F of one part: the mean is the integral of (1 - F)^count. Parts are drawn 1.7 times
    as far away as they are and weighted for it, so that the tail of 131,072 is well filled.
    """
    wide = 1.7
    scores = wide * np.random.default_rng(seed).standard_normal((parts, 5))
    weight = wide**5 * np.exp(-0.5 * (1 - wide**-2) * np.sum(scores**2, 1))
    clock = part_clocks(system, scores)
    order = np.argsort(clock)
    clock, weight = clock[order], weight[order]
    faster = np.maximum(1 - np.cumsum(weight) / parts, 0.0)
    gaps = np.diff(clock, append=1.0)
    mean = clock[0] + np.sum(faster**count * gaps)
    # what one part adds to F, from its own clock on
    pull = count * np.cumsum((faster ** (count - 1) * gaps)[::-1])[::-1]
    return float(mean), float(np.std(weight * pull) / np.sqrt(parts))
