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
    rack_power_limit: Array = quantity(
        "W",
        "rack power that the chosen cooling is built for",
        bounds=(1e3, 1e7),
        default=140e3,
        source="OCP ORv3 high-power rack [V]",
    )
    liquid_heat_share: Array = quantity(
        "1",
        "share of the rack's heat that goes into liquid, the rest into air",
        bounds=(0, 1),
        default=0.87,
        source="GB200 NVL72 115 of 132 kW from memory [A]",
    )
    server_fan_share: Array = quantity(
        "1",
        "fans inside the servers as a share of rack power",
        bounds=(0, 0.5),
        default=0.02,
        source="liquid-cooled; 0.08-0.15 in air-cooled racks [A]",
    )


@record
class LiquidLoop:
    """A single-phase cold-plate loop, per GPU."""

    coolant_supply_temperature: Array = quantity(
        "degC", "temperature of the coolant that enters the cold plate", bounds=(0, 70)
    )
    coolant_flow: Array = quantity(
        "m3 s-1", "coolant flow through one GPU's cold plate", bounds=(0, 1e-3)
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
    upstream_plates: Array = quantity(
        "1",
        "like plates that the coolant has passed before (plates in series)",
        bounds=(0, 16),
        default=0,
        source="plates in parallel [A]",
    )


@record
class TwoPhaseLoop:
    """A pumped two-phase loop, per GPU: a dielectric that boils in the cold plate."""

    condenser_approach: Array = quantity(
        "K",
        "saturation temperature over that of the water that condenses the vapour",
        bounds=(0, 40),
        default=6,
        source="[A]",
    )
    manifold_pressure_drop: Array = quantity(
        "Pa",
        "vapour pressure at the plate over that at the condenser",
        bounds=(0, 1e5),
        default=0,
        source="[A]",
    )
    boiling_resistance: Array = quantity(
        "K W-1",
        "cold plate to saturated liquid",
        bounds=(1e-5, 1),
        default=0.008,
        source="0.007 to 0.025 on other sources [V], this package [A]",
    )
    latent_heat: Array = quantity(
        "J kg-1",
        "heat of evaporation of the coolant",
        bounds=(1e4, 3e6),
        default=177540,
        source="R1233zd(E) at 50 degC and 2.94 bar, CoolProp 8.0.0 [C]",
    )
    liquid_heat_capacity: Array = quantity(
        "J kg-1 K-1",
        "specific heat of the liquid coolant",
        bounds=(100, 1e4),
        default=1243,
        source="R1233zd(E) at 50 degC, CoolProp 8.0.0 [C]",
    )
    subcooling: Array = quantity(
        "K",
        "liquid at the inlet of the plate below saturation",
        bounds=(0, 50),
        default=5,
        source="[A]",
    )
    design_exit_quality: Array = quantity(
        "1",
        "vapour share at the outlet, at thermal design power and design flow",
        bounds=(0.05, 1),
        default=0.5,
        source="[A]",
    )
    critical_quality: Array = quantity(
        "1",
        "vapour share at the outlet at which the plate dries out",
        bounds=(0.05, 1),
        default=0.7,
        source="[A]",
    )
    refrigerant_flow_share: Array = quantity(
        "1",
        "coolant flow as a share of design flow",
        bounds=(1e-3, 10),
        default=1,
        source="[A]",
    )
    critical_heat_flow: Array = quantity(
        "W",
        "power at which the critical heat flux of the plate is reached",
        bounds=(1, 1e6),
        default=6080,
        source="380 W cm-2 on a small vehicle [M] over 16 cm2; falls with the area",
    )
    dry_out_trips: Array = quantity(
        "1",
        "what a GPU does at dry-out",
        bounds=(0, 1),
        default=0,
        source="the governor holds the power below it, optimistic [A]",
        flags=("cap", "trip"),
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
