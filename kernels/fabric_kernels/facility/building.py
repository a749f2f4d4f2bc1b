"""From the loops of a building to its power usage effectiveness."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from fabric_kernels.facility import Facility
from fabric_kernels.facility.loop import Year
from fabric_kernels.inputs import Plant, Rack

PG25 = 1007.2 * 3980.6
"""Volumetric heat capacity (J m-3 K-1) of PG25 at 45 degC, CoolProp 8.0.0, in both loops."""

AIR = 1.1843 * 1006.31
"""Volumetric heat capacity (J m-3 K-1) of air at 25 degC, CoolProp 8.0.0."""

AIR_RISE = 15.0
"""Rise (K) of the air through a rack."""


class Loops(NamedTuple):
    """Heat and year of the liquid and of the air loop."""

    liquid_share: Array  # of IT heat
    liquid: Year
    air: Year


def volume_flow(heat: Array, heat_capacity: Array | float, rise: Array | float) -> Array:
    """Flow (m3 s-1) that takes a heat (W) away: Q / (rho c_p dT)."""
    return heat / (heat_capacity * rise)


def building(loops: Loops, plant: Plant, rack: Rack, rack_power: Array) -> Facility:
    """Power usage effectiveness and its parts.

        pue = 1 / (n_tr n_ups n_dist) + (chillers + fans + pumps + air handlers + misc)
                                        / (n_tr n_dist)

    Electrical supply, pumps and shares by definition; every part per unit of IT power. Fans inside
    the servers count as IT: `tue` counts them with the building.
    """
    wet, dry = loops.liquid_share, 1.0 - loops.liquid_share
    chillers = wet * loops.liquid.chiller + dry * loops.air.chiller
    fans = wet * loops.liquid.fans + dry * loops.air.fans
    per_head = wet / (PG25 * plant.water_temperature_rise)
    in_air = dry / (PG25 * plant.air_loop_temperature_rise)
    pumps = per_head * (plant.rack_loop_pump_head + plant.facility_pump_head)
    pumps = pumps + in_air * plant.facility_pump_head
    handlers = plant.air_handler_share * dry
    grid = plant.transformer_efficiency * plant.distribution_efficiency
    # of products near 1: exact at no loss
    loss = (1.0 - grid * plant.ups_efficiency) / (grid * plant.ups_efficiency)
    mechanical = chillers + fans + pumps + handlers + plant.miscellaneous_share
    pue = 1.0 + loss + mechanical / grid
    zero = jnp.zeros_like(pue)
    return Facility(
        pue=pue,
        tue=pue / (1.0 - rack.server_fan_share),
        electrical_loss=loss + zero,
        chiller_power_share=chillers + zero,
        cooler_fan_share=fans + zero,
        pump_power_share=pumps + zero,
        air_handler_power_share=handlers + zero,
        chiller_time_share=jnp.where(wet > 0, loops.liquid.chiller_time, 0.0) + zero,
        air_chiller_time_share=jnp.where(dry > 0, loops.air.chiller_time, 0.0) + zero,
        rack_liquid_flow=volume_flow(wet * rack_power, PG25, plant.water_temperature_rise) + zero,
        rack_air_flow=volume_flow(dry * rack_power, AIR, AIR_RISE) + zero,
    )
