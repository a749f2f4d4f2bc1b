"""A building over a year by plain quadrature, bin by bin, and a two-node heating by small steps."""

import math

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy import integrate, optimize


def coolant_year(
    water: float, rise: float, climate: tuple[float, float, float, float], *, always: bool = False
) -> tuple[float, float, float]:
    """(chiller, fans, share of chiller time) per unit of heat of a loop with a dry cooler.

    12 months x 24 hours x 21 Gauss-Hermite nodes, one by one; approach 8 K, Carnot share 0.5,
    fans 0.012 of the heat at full speed and at least 3 % of that.
    """
    mean, season, day, weather = climate
    nodes, weights = hermegauss(21)
    weights = weights / weights.sum()
    chiller = fans = time = 0.0
    for month in range(12):
        for hour in range(24):
            centre = mean + season * math.cos(2 * math.pi * ((month + 0.5) / 12 - 0.55))
            centre += day * math.cos(2 * math.pi * (hour - 15) / 24)
            time += 0.5 * math.erfc((water - 8 - centre) / weather / math.sqrt(2)) / 288
            for node, weight in zip(nodes, weights, strict=True):
                air = centre + weather * node
                need = air + 8 - water
                share = 1.0 if always else min(max(need / rise, 0.0), 1.0)
                cold = water - 3 + 273.15
                lift = max(air + 12 + 273.15 - cold, 1.0)
                one = share / min(max(0.5 * cold / lift, 2.0), 12.0)
                speed = 1.0 if need > 0 else min(max((8 / (water - air)) ** 3, 0.03), 1.0)
                chiller += one * weight / 288
                fans += 0.012 * (1 + one) * speed * weight / 288
    return chiller, fans, time


def effectiveness(
    share: float,
    supply: float,
    hall: float,
    climate: tuple[float, float, float, float],
    *,
    always: bool = False,
) -> float:
    """Power usage effectiveness with `share` of the heat in liquid."""
    total = 0.004 + 0.03 * (1 - share)
    heat = 1007.2 * 3980.6
    if share > 0:
        chiller, fans, _ = coolant_year(supply - 4, 10.0, climate, always=always)
        pumps = 150e3 / (heat * 10 * 0.55) + 200e3 / (heat * 10 * 0.65)
        total += share * (chiller + fans + pumps)
    if share < 1:
        chiller, fans, _ = coolant_year(hall - 3 - 4, 12.0, climate)
        total += (1 - share) * (chiller + fans + 200e3 / (heat * 12 * 0.65))
    return 1 / (0.993 * 0.985 * 0.993) + total / (0.993 * 0.993)


def heating(
    power: object, start: tuple[float, float], nodes: tuple[float, float, float, float, float]
) -> object:
    """Solution of the two-node network, `power` a function of the die's temperature.

    nodes: C1, C2, R12, G, T_medium.
    """
    die, plate, resistance, conductance, medium = nodes

    def slope(_: float, state: np.ndarray) -> list[float]:
        flow = (state[0] - state[1]) / resistance
        heat = power(state[0])  # type: ignore[operator]
        return [(heat - flow) / die, (flow - conductance * (state[1] - medium)) / plate]

    return integrate.solve_ivp(
        slope, (0, 200), start, method="DOP853", rtol=1e-11, atol=1e-11, dense_output=True
    ).sol


def time_to(solution: object, target: float) -> float:
    """When the die has the target temperature."""
    return float(optimize.brentq(lambda t: solution(t)[0] - target, 0, 200))  # type: ignore[operator]
