"""Clock, temperature and power of one GPU by root finding, and the slowest of N by brute force.

Units: degC, W, K/W, m3/s. With phi the clock as a share of full clock,

    v(phi)    = max(v_min, 1 - s (1 - phi))
    P(T, phi) = P0 + v(phi)^2 (L0 exp(beta (T - T0)) + D phi)
    T         = T_b + R P(T, phi)

For a clock the chip settles at the lowest root T of the last line, if there is one. The governor
takes the highest clock whose lowest root exists and lies within the temperature limit and the
power limit. This file searches that clock directly: bisection on "allowed or not", each time with
the root by Brent's method below the fold, the hottest temperature at which heat can still escape
faster than leakage grows.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import optimize


@dataclass(frozen=True)
class Chip:
    """Power law and limits of one GPU."""

    constant: float  # P0, W
    leakage: float  # L0 at the reference temperature and full voltage, W
    dynamic: float  # D at full clock and voltage, W
    power_limit: float  # W
    temperature_limit: float  # degC
    shutdown: float  # degC
    reference: float = 65.0  # T0, degC
    growth: float = 0.020  # beta, 1/K
    voltage_floor: float = 0.72
    voltage_slope: float = 0.80
    clock_floor: float = 0.20

    def voltage(self, clock: float) -> float:
        """Normalised voltage at a clock."""
        return max(self.voltage_floor, 1.0 - self.voltage_slope * (1.0 - clock))

    def power(self, temperature: float, clock: float) -> float:
        """Power at a junction temperature and clock."""
        leaking = self.leakage * math.exp(self.growth * (temperature - self.reference))
        return self.constant + self.voltage(clock) ** 2 * (leaking + self.dynamic * clock)


@dataclass(frozen=True)
class Medium:
    """What cooling supplies."""

    base: float  # T_b, degC
    resistance: float  # R, K/W


@dataclass(frozen=True)
class Point:
    """Where one GPU settles."""

    clock: float
    temperature: float
    power: float
    status: str


def chip(tdp: float, cap: float, limit: float = 87.0, shutdown: float = 95.0) -> Chip:
    """A GPU with the default shares: idle 7 %, memory 8 %, leakage 10 %, dynamic 85 % of TDP."""
    return Chip(0.15 * tdp, 0.10 * tdp, 0.85 * tdp, cap, limit, shutdown)


def fold(part: Chip, medium: Medium, clock: float) -> float:
    """Temperature above which leakage grows faster than heat escapes: R dP/dT = 1."""
    slope = medium.resistance * part.growth * part.leakage * part.voltage(clock) ** 2
    return part.reference - math.log(slope) / part.growth if slope > 0 else math.inf


def settled(part: Chip, medium: Medium, clock: float, below: float) -> float | None:
    """Lowest temperature under `below` at which heat balances, None if there is none."""

    def excess(temperature: float) -> float:
        heat = medium.resistance * part.power(temperature, clock)
        return temperature - medium.base - heat

    top = min(below, fold(part, medium, clock))
    if top <= medium.base or excess(top) < 0:
        return None
    return float(optimize.brentq(excess, medium.base, top, xtol=1e-13, rtol=1e-15, maxiter=500))


def governed(part: Chip, medium: Medium) -> Point:
    """The point that the clock governor finds, with the status ladder of the design."""
    by_power = medium.base + medium.resistance * part.power_limit
    ceiling = min(part.temperature_limit, by_power)
    if settled(part, medium, part.clock_floor, ceiling) is None:
        return _below_the_floor(part, medium)
    clock = _highest_clock(part, medium, ceiling)
    temperature = settled(part, medium, clock, ceiling)
    assert temperature is not None
    status = "power" if by_power <= part.temperature_limit else "thermal"
    if clock == 1.0:
        status = "none"
    elif fold(part, medium, clock) < ceiling:
        status, temperature = "runaway", fold(part, medium, clock)
    return Point(clock, temperature, (temperature - medium.base) / medium.resistance, status)


def _highest_clock(part: Chip, medium: Medium, ceiling: float) -> float:
    if settled(part, medium, 1.0, ceiling) is not None:
        return 1.0
    allowed, refused = part.clock_floor, 1.0
    while True:
        middle = 0.5 * (allowed + refused)
        if middle in (allowed, refused):
            return allowed
        if settled(part, medium, middle, ceiling) is None:
            refused = middle
        else:
            allowed = middle


def _below_the_floor(part: Chip, medium: Medium) -> Point:
    clock = part.clock_floor
    temperature = settled(part, medium, clock, part.shutdown)
    if temperature is None or temperature >= part.shutdown:
        return Point(clock, math.nan, math.nan, "trip")
    return Point(clock, temperature, part.power(temperature, clock), "floor")


@dataclass(frozen=True)
class Plate:
    """A single-phase cold plate; `flow` and `reference_flow` in m3/s."""

    supply: float
    flow: float
    package: float = 0.008
    interface: float = 0.007
    plate: float = 0.012
    reference_flow: float = 2.5e-5
    exponent: float = 0.5
    heat_capacity: float = 1007.2 * 3980.6  # J/(m3 K)


def single_phase(loop: Plate) -> Medium:
    """Inlet temperature and R_pkg + R_tim + 1 / (eps C), eps = 1 - exp(-1 / (R_cp C))."""
    stream = loop.heat_capacity * loop.flow
    convection = loop.plate * (loop.flow / loop.reference_flow) ** -loop.exponent
    effectiveness = 1.0 - math.exp(-1.0 / (convection * stream))
    return Medium(loop.supply, loop.package + loop.interface + 1.0 / (effectiveness * stream))


@dataclass(frozen=True)
class Air:
    """An air-cooled rack at its airflow ceiling; `airflow` of the rack in m3/s."""

    supply: float
    gpus: float
    other_power: float  # W per GPU
    airflow: float = 1.678172
    heat_capacity: float = 1191.772933
    heatsink: float = 0.045
    nominal_gpus: float = 32.0
    density_exponent: float = 0.6
    preheat: float = 0.4


def air(rack: Air) -> Medium:
    """T_supply + kappa P_other / C and R_hs (n / n0)^n_a + kappa / C, C = rho c_p V / n."""
    stream = rack.heat_capacity * rack.airflow / rack.gpus
    heatsink = rack.heatsink * (rack.gpus / rack.nominal_gpus) ** rack.density_exponent
    base = rack.supply + rack.preheat * rack.other_power / stream
    return Medium(base, heatsink + rack.preheat / stream)


@dataclass(frozen=True)
class Spreads:
    """Deviations between the parts of one cluster."""

    resistance: float = 0.08
    leakage: float = 0.20
    dynamic: float = 0.03
    inlet: float = 1.0
    flow: float = 0.07


def plate_part(loop: Plate, spreads: Spreads, scores: NDArray[np.float64]) -> Plate:
    """One part's cold plate: resistances times exp(s_R z), flow times exp(s_V z), inlet + s_T z."""
    worse = math.exp(spreads.resistance * scores[0])
    return replace(
        loop,
        supply=loop.supply + spreads.inlet * scores[3],
        flow=loop.flow * math.exp(spreads.flow * scores[4]),
        package=loop.package * worse,
        interface=loop.interface * worse,
        plate=loop.plate * worse,
    )


def air_part(rack: Air, spreads: Spreads, scores: NDArray[np.float64]) -> Air:
    """One part's share of an air-cooled rack.

    As for a plate, the flow of a part acts on its stream and on its convection: a part with a
    larger flow stands as if fewer GPUs shared the rack's air.
    """
    return replace(
        rack,
        supply=rack.supply + spreads.inlet * scores[3],
        gpus=rack.gpus / math.exp(spreads.flow * scores[4]),
        heatsink=rack.heatsink * math.exp(spreads.resistance * scores[0]),
    )


def chip_part(part: Chip, spreads: Spreads, scores: NDArray[np.float64]) -> Chip:
    """One part's power law; the leakage has the stated value as its mean."""
    leaking = math.exp(spreads.leakage * scores[1] - 0.5 * spreads.leakage**2)
    return replace(
        part,
        leakage=part.leakage * leaking,
        dynamic=part.dynamic * (1.0 + spreads.dynamic * scores[2]),
    )


def part_of(
    part: Chip, cooling: Plate | Air, spreads: Spreads, scores: NDArray[np.float64]
) -> tuple[Chip, Medium]:
    """A part of the population and its medium; scores are (R, leakage, D, T, flow)."""
    if isinstance(cooling, Plate):
        return chip_part(part, spreads, scores), single_phase(plate_part(cooling, spreads, scores))
    return chip_part(part, spreads, scores), air(air_part(cooling, spreads, scores))


def slowest_clocks(
    part: Chip, cooling: Plate | Air, spreads: Spreads, scores: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Clock of the slowest part of each cluster: scores[cluster, part, 5].

    Every part is solved in one vectorised bisection on the clock, with heat balance read at the
    hottest allowed temperature; ``governed`` solves a few of the same parts one by one in the
    reference's own test.
    """
    return clocks(part, cooling, spreads, scores.reshape(-1, 5)).reshape(scores.shape[:2]).min(1)


def clocks(
    part: Chip, cooling: Plate | Air, spreads: Spreads, scores: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Clock of each part, scores[part, 5], by 40 halvings."""
    made = [part_of(part, cooling, spreads, row) for row in scores]
    leakage = np.array([one.leakage for one, _ in made])
    dynamic = np.array([one.dynamic for one, _ in made])
    base = np.array([medium.base for _, medium in made])
    resistance = np.array([medium.resistance for _, medium in made])
    ceiling = np.minimum(part.temperature_limit, base + resistance * part.power_limit)
    low, high = np.full(len(made), part.clock_floor), np.ones(len(made))
    for halving in range(41):
        clock = high if halving == 0 else 0.5 * (low + high)
        square = np.maximum(part.voltage_floor, 1 - part.voltage_slope * (1 - clock)) ** 2
        turn = part.reference - np.log(resistance * part.growth * leakage * square) / part.growth
        hottest = np.clip(turn, base, np.maximum(base, ceiling))
        leaking = leakage * np.exp(part.growth * (hottest - part.reference))
        heat = resistance * (part.constant + square * (leaking + dynamic * clock))
        allowed = hottest - base - heat >= 0
        low, high = np.where(allowed, clock, low), np.where(allowed, high, clock)
    return low
