"""Operating points of many GPUs at once, by bisection on the clock and on the temperature.

The equations and the governor are those of `thermal`, which solves one GPU by Brent's method.
Halving goes on until neighbouring numbers are left, so both answers are exact to rounding but where
the balance is a double root, at the fold.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_HALVINGS = 80


@dataclass(frozen=True)
class Gpus:
    """Power law, limits and medium of many GPUs; an array each."""

    constant: Floats  # P0, W
    leakage: Floats  # L0 at the reference temperature and full voltage, W
    reference: Floats  # T0, degC
    growth: Floats  # beta, 1/K
    dynamic: Floats  # D at full clock and voltage, W
    voltage_floor: Floats
    voltage_slope: Floats
    clock_floor: Floats
    power_limit: Floats  # W
    temperature_limit: Floats  # degC
    shutdown: Floats  # degC
    base: Floats  # T_b, degC
    resistance: Floats  # R, K/W

    def excess(self, temperature: Floats, clock: Floats) -> Floats:
        """T - T_b - R P(T, phi): below 0 a GPU at this temperature warms."""
        leaking = self.leakage * np.exp(self.growth * (temperature - self.reference))
        drawn = self.constant + self.square(clock) * (leaking + self.dynamic * clock)
        return temperature - self.base - self.resistance * drawn

    def square(self, clock: Floats) -> Floats:
        """Square of the normalised voltage."""
        return np.maximum(self.voltage_floor, 1 - self.voltage_slope * (1 - clock)) ** 2

    def fold(self, clock: Floats) -> Floats:
        """Temperature above which leakage grows faster than heat escapes."""
        gain = self.resistance * self.growth * self.leakage * self.square(clock)
        return self.reference - np.log(gain) / self.growth

    def settles(self, clock: Floats, below: Floats) -> NDArray[np.bool_]:
        """Whether heat balances at some temperature from T_b to `below`."""
        hottest = np.minimum(below, self.fold(clock))
        return (hottest > self.base) & (self.excess(hottest, clock) >= 0)


@dataclass(frozen=True)
class Points:
    """Where GPUs settle; the temperature of a tripped one means nothing."""

    clock: Floats
    temperature: Floats
    status: NDArray[np.str_]
    fold: Floats  # degC, at that clock


def governed(gpus: Gpus) -> Points:
    """The points that the clock governor finds, with the status ladder of the design."""
    by_power = gpus.base + gpus.resistance * gpus.power_limit
    ceiling = np.minimum(gpus.temperature_limit, by_power)
    full, lowest = np.ones_like(gpus.base), gpus.clock_floor
    free = gpus.settles(full, ceiling)
    below = ~gpus.settles(lowest, ceiling)
    highest = _last(lowest, full, lambda clock: gpus.settles(clock, ceiling))
    clock = np.where(free, full, np.where(below, lowest, highest))
    lost = below & ~gpus.settles(lowest, gpus.shutdown)
    fold = gpus.fold(clock)
    top = np.minimum(fold, np.where(below, gpus.shutdown, ceiling))
    temperature = _last(gpus.base, top, lambda t: gpus.excess(t, clock) < 0)
    runs_away = ~free & ~below & (fold < ceiling)
    status = np.where(by_power <= gpus.temperature_limit, "power", "thermal")
    for name, where in (
        ("none", free), ("runaway", runs_away), ("floor", below), ("trip", lost),
    ):  # fmt: skip
        status = np.where(where, name, status)
    return Points(clock, np.where(runs_away, fold, temperature), status, fold)


def _last(low: Floats, high: Floats, holds: Callable[[Floats], NDArray[np.bool_]]) -> Floats:
    """Where a condition that holds at `low` ends, between `low` and `high`."""
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        here = holds(middle)
        low, high = np.where(here, middle, low), np.where(here, high, middle)
    return low
