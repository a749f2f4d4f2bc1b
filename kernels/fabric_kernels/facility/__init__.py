"""Facility: what does the building add?"""

from jax import Array

from fabric_kernels.quantity import quantity, record


@record
class Facility:
    """What does the building add? Annual means; no water is evaporated."""

    pue: Array = quantity("1", "power of the building over power of its IT", bounds=(1, 10))
    tue: Array = quantity(
        "1", "power of the building over power of its IT without the servers' fans", bounds=(1, 20)
    )
    electrical_loss: Array = quantity(
        "1", "losses of transformer, supply and distribution, of IT power", bounds=(0, 10)
    )
    chiller_power_share: Array = quantity("1", "chillers, of IT power", bounds=(0, 10))
    cooler_fan_share: Array = quantity("1", "dry cooler fans, of IT power", bounds=(0, 10))
    pump_power_share: Array = quantity("1", "pumps of both loops, of IT power", bounds=(0, 10))
    air_handler_power_share: Array = quantity(
        "1", "fans of the hall's air handlers, of IT power", bounds=(0, 10)
    )
    chiller_time_share: Array = quantity(
        "1", "share of the year in which chillers of the liquid loop run", bounds=(0, 1)
    )
    air_chiller_time_share: Array = quantity(
        "1", "share of the year in which chillers of the air loop run", bounds=(0, 1)
    )
    rack_liquid_flow: Array = quantity(
        "m3 s-1", "coolant of one rack at the loop's temperature rise", bounds=(0, 1e3)
    )
    rack_air_flow: Array = quantity("m3 s-1", "air of one rack at 15 K of rise", bounds=(0, 1e5))
