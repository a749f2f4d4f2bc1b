"""Air-cooled racks: all heat into the air of the hall."""

import jax.numpy as jnp

from fabric_kernels.facility import Facility
from fabric_kernels.facility.building import Loops, building
from fabric_kernels.facility.loop import Water, year
from fabric_kernels.inputs import AirRack, Climate, Plant, Rack
from fabric_kernels.power import Power


def air_handlers(
    air: AirRack, rack: Rack, climate: Climate, plant: Plant, power: Power
) -> Facility:
    """Air handlers whose water is cooled by dry coolers with trim chillers.

        T_water = air supply - coil approach - unit approach

    `liquid_heat_share` does not enter: there is no liquid at the racks.
    """
    supply = air.air_supply_temperature - plant.air_coil_approach - plant.unit_approach
    found = year(Water(supply, plant.air_loop_temperature_rise), climate, plant, always=False)
    none = jnp.zeros_like(supply)
    return building(Loops(none, found, found), plant, rack, power.rack_power)
