"""Liquid-cooled racks whose heat goes into outside air by dry coolers."""

from fabric_kernels.facility import Facility
from fabric_kernels.facility.building import Loops, building
from fabric_kernels.facility.loop import Water, year
from fabric_kernels.inputs import Climate, LiquidLoop, Plant, Rack
from fabric_kernels.power import Power


def dry_cooler(
    loop: LiquidLoop, rack: Rack, climate: Climate, plant: Plant, power: Power
) -> Facility:
    """Dry coolers that a trim chiller helps by what they fall short of.

        T_water = coolant supply - unit_approach for the liquid, hall air - coil - unit_approach
        for the heat that stays in air

    Chillers carry only the shortfall, so they may run often and use little: at 45 degC supply, 100
    percent liquid, 0.2 % of IT power under the climate of Dallas. Published fleets: Meta 1.08,
    Google 1.10 [V].
    """
    return _liquid(loop, rack, climate, plant, power, always=False)


def chilled_water(
    loop: LiquidLoop, rack: Rack, climate: Climate, plant: Plant, power: Power
) -> Facility:
    """Chillers carry all heat of the liquid loop all year, as in a building for cold water.

    The condenser rejects to the same dry coolers. The heat that stays in air is as in `dry_cooler`.
    """
    return _liquid(loop, rack, climate, plant, power, always=True)


def _liquid(
    loop: LiquidLoop, rack: Rack, climate: Climate, plant: Plant, power: Power, *, always: bool
) -> Facility:
    supply = loop.coolant_supply_temperature - plant.unit_approach
    hall = plant.hall_air_temperature - plant.air_coil_approach - plant.unit_approach
    liquid = year(Water(supply, plant.water_temperature_rise), climate, plant, always=always)
    air = year(Water(hall, plant.air_loop_temperature_rise), climate, plant, always=False)
    loops = Loops(rack.liquid_heat_share, liquid, air)
    return building(loops, plant, rack, power.rack_power)
