"""Racks and what cools them."""

from jax import Array

from fabric_kernels.quantity import quantity, record


@record
class Rack:
    """What is in a rack besides the GPUs' own chips."""

    gpus_per_rack: Array = quantity("1", "GPUs in one rack", bounds=(1, 1024), integer=True)
    other_power: Array = quantity(
        "W", "power per GPU of everything else in the rack", bounds=(0, 1e4)
    )


@record
class LiquidLoop:
    """A single-phase cold-plate loop, per GPU."""

    coolant_supply_temperature: Array = quantity(
        "degC", "temperature of the coolant that enters the cold plate", bounds=(0, 70)
    )
    coolant_flow: Array = quantity(
        "m3 s-1", "coolant flow through one GPU's cold plate", bounds=(1e-7, 1e-3)
    )
    coolant_heat_capacity: Array = quantity(
        "J m-3 K-1",
        "volumetric heat capacity of the coolant",
        bounds=(1e5, 1e7),
        default=1007.2 * 3980.6,
        source="PG25 at 45 degC, 1007.2 kg m-3 and 3980.6 J kg-1 K-1, CoolProp [C]",
    )
    package_resistance: Array = quantity(
        "K W-1", "junction to lid", bounds=(0, 1), default=0.008, source="plate spec and CFD [S]"
    )
    interface_resistance: Array = quantity(
        "K W-1",
        "lid to cold plate (thermal interface material)",
        bounds=(0, 1),
        default=0.007,
        source="plate spec and CFD [S]",
    )
    plate_resistance: Array = quantity(
        "K W-1",
        "cold plate at the reference flow",
        bounds=(1e-6, 1),
        default=0.012,
        source="plate spec and CFD [S]",
    )
    plate_reference_flow: Array = quantity(
        "m3 s-1",
        "flow at which the plate resistance holds",
        bounds=(1e-7, 1e-3),
        default=2.5e-5,
        source="1.5 L min-1 [S]",
    )
    plate_flow_exponent: Array = quantity(
        "1", "fall of plate resistance with flow", bounds=(0, 1), default=0.5, source="0.33-0.8 [A]"
    )


@record
class AirRack:
    """An air-cooled rack at its airflow ceiling."""

    air_supply_temperature: Array = quantity(
        "degC", "temperature of the air that enters the rack", bounds=(0, 60)
    )
    rack_airflow: Array = quantity(
        "m3 s-1",
        "largest airflow through one rack",
        bounds=(0.01, 50),
        default=1.678172,
        source="3556 CFM: 40 kW at 20 K [C]",
    )
    air_heat_capacity: Array = quantity(
        "J m-3 K-1",
        "volumetric heat capacity of the air",
        bounds=(500, 2000),
        default=1191.772933,
        source="sea level, 20 degC [C]",
    )
    heatsink_resistance: Array = quantity(
        "K W-1",
        "junction to air at the nominal density",
        bounds=(1e-4, 2),
        default=0.045,
        source="derived from H100 air 0.058 K W-1 [A]",
    )
    nominal_gpus_per_rack: Array = quantity(
        "1",
        "GPUs per rack at which the heatsink resistance holds",
        bounds=(1, 1024),
        default=32,
        source="[A]",
    )
    heatsink_density_exponent: Array = quantity(
        "1",
        "growth of heatsink resistance with GPUs per rack",
        bounds=(0, 2),
        default=0.6,
        source="[A]",
    )
    preheat_share: Array = quantity(
        "1",
        "share of the rack's heat that has warmed the air before a GPU",
        bounds=(0, 1),
        default=0.4,
        source="[A]",
    )
