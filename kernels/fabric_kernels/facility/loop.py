"""Annual means of one water loop of a building with dry coolers and trim chillers."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.polynomial.hermite_e import hermegauss

from fabric_kernels.inputs import Climate, Plant
from fabric_kernels.maths.normal import log_survival

_MONTHS = np.cos(2 * np.pi * ((np.arange(12) + 0.5) / 12 - 0.55))
_HOURS = np.cos(2 * np.pi * np.arange(13) / 24)  # of the hottest hour, then both sides of it
_HOUR_WEIGHTS = np.array([1.0] + [2.0] * 11 + [1.0]) / 24
_NODES, _WEIGHTS = hermegauss(21)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_SCALE, _OFFSET = 273.15, 12.0  # degC to K; condenser over outside air, K
_EVAPORATOR = 3.0  # evaporator below facility water, K
_COEFFICIENTS = (2.0, 12.0)  # least and greatest coefficient of performance


class Water(NamedTuple):
    """What one loop demands."""

    temperature: Array  # facility water to the racks, degC
    rise: Array  # K


class Year(NamedTuple):
    """Annual means per unit of heat of the loop."""

    chiller: Array
    fans: Array
    chiller_time: Array  # share of the year in which outside air alone is too warm


def year(water: Water, climate: Climate, plant: Plant, *, always: bool) -> Year:
    """Chiller and fan power of a loop over a typical year.

        need = T_air + approach - T_water,   x = clip(need / rise, 0, 1), the chiller's share
        chiller = x / COP,   COP = clip(fraction T_evaporator / (T_condenser - T_evaporator), 2, 12)
        fans = k (1 + chiller) clip((approach / (T_water - T_air))^3, least, 1), 1 where need > 0

    T_air in 12 months x 24 hours, with normal weather about each by 21-point Gauss-Hermite; the
    time that chillers run is the closed form of the same law. `always`: the chiller carries all.
    Water of 3 K over the evaporator, outside air 12 K below the condenser.
    """
    dtype = climate.ambient_temperature.dtype
    months, hours = jnp.asarray(_MONTHS, dtype), jnp.asarray(_HOURS, dtype)
    weights = jnp.asarray(_HOUR_WEIGHTS / 12, dtype)

    def add(number: Array, total: Year) -> Year:
        month, hour = months[number // 13], hours[number % 13]
        weight = weights[number % 13]
        mean = climate.ambient_temperature + climate.ambient_season * month
        mean = mean + climate.ambient_day * hour
        chiller, fans = jnp.zeros_like(total.fans), jnp.zeros_like(total.fans)
        for node, share in zip(_NODES, _WEIGHTS, strict=True):
            air = mean + float(node) * climate.ambient_deviation
            cold, blown = _moment(water, air, plant, always=always)
            chiller, fans = chiller + float(share) * cold, fans + float(share) * blown
        over = water.temperature - plant.dry_cooler_approach - mean
        warm = jnp.exp(log_survival(over / climate.ambient_deviation))
        return Year(
            total.chiller + weight * chiller,
            total.fans + weight * fans,
            total.chiller_time + weight * warm,
        )

    shape = jnp.broadcast_shapes(*(x.shape for x in jax.tree.leaves((water, climate, plant))))
    zero = jnp.zeros(shape, dtype)
    return jax.lax.fori_loop(0, 12 * 13, add, Year(zero, zero, zero))


def _moment(water: Water, air: Array, plant: Plant, *, always: bool) -> tuple[Array, Array]:
    """Chiller and fans per unit of heat at one temperature of the outside air."""
    need = air + plant.dry_cooler_approach - water.temperature
    share = jnp.ones_like(need) if always else jnp.clip(need / water.rise, 0.0, 1.0)
    evaporator = water.temperature - _EVAPORATOR + _SCALE
    lift = jnp.maximum(air + _OFFSET + _SCALE - evaporator, 1.0)
    performance = jnp.clip(plant.chiller_carnot_fraction * evaporator / lift, *_COEFFICIENTS)
    chiller = share / performance
    warm = need > 0
    ratio = plant.dry_cooler_approach / jnp.where(warm, 1.0, water.temperature - air)
    speed = jnp.clip(ratio * ratio * ratio, plant.dry_cooler_least_fan, 1.0)
    fans = plant.dry_cooler_fan_share * (1.0 + chiller) * jnp.where(warm, 1.0, speed)
    return chiller, fans
