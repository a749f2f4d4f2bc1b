"""Worked cases of racks, buildings and networks."""

import jax
import jax.numpy as jnp

from fabric_kernels.energy.by_phase import power_swing
from fabric_kernels.facility.building import Loops, building, volume_flow
from fabric_kernels.facility.loop import Water, year
from fabric_kernels.inputs import Climate, Plant, Rack
from fabric_kernels.optics.ports import fat_tree_switches, network_power
from fabric_kernels.transient.two_node import ride_through
from fabricarlo.validation.thermal_points import Found, Given, named, record

CUBIC_FOOT_PER_MINUTE = 0.3048**3 / 60
HOURS = 8760.0

PLANT = {
    "ATD": "unit_approach",
    "A_dc": "dry_cooler_approach",
    "dT": "water_temperature_rise",
    "dT_air": "air_loop_temperature_rise",
    "k_dc": "dry_cooler_fan_share",
    "f_min": "dry_cooler_least_fan",
    "eta_c": "chiller_carnot_fraction",
    "eta_tr": "transformer_efficiency",
    "eta_ups": "ups_efficiency",
    "eta_dist": "distribution_efficiency",
    "misc": "miscellaneous_share",
    "crah": "air_handler_share",
}
"""Parameters of a building in the tables, and what they are called here."""


def rack_flow(given: Given) -> Found:
    """Coolant of a heat at a rise."""
    heat = jnp.asarray(float(given["Q_kW"]) * 1e3)
    flow = float(volume_flow(heat, float(given["rho"]) * float(given["cp"]), given["dT_K"]))
    litres = flow * 6e4
    return {"V_lpm": litres, "lpm_per_kW": litres / float(given["Q_kW"])}


def rack_airflow(given: Given) -> Found:
    """Air of a heat at a rise."""
    heat = jnp.asarray(float(given["Q_kW"]) * 1e3)
    flow = float(volume_flow(heat, float(given["rho"]) * float(given["cp"]), given["dT_K"]))
    return {
        "V_m3_s": flow,
        "cfm": flow / CUBIC_FOOT_PER_MINUTE,
        "m_kg_s": flow * float(given["rho"]),
    }


_year = jax.jit(year, static_argnames="always")


def pue_annual(given: Given) -> Found:
    """A building over a year: `f_liq` of the heat in liquid, the rest in the air of the hall."""
    climate = Climate(*(), **dict(zip(
        ("ambient_temperature", "ambient_season", "ambient_day", "ambient_deviation"),
        (jnp.asarray(float(x)) for x in given["climate"]), strict=True,
    )))  # fmt: skip
    plant = record(Plant, named(given, PLANT))
    share = jnp.asarray(float(given["f_liq"]))
    supply = jnp.asarray(float(given.get("T_tcs", 45.0)))
    hall = jnp.asarray(float(given.get("T_air", 25.0)))
    liquid = _year(
        Water(supply - plant.unit_approach, plant.water_temperature_rise),
        climate, plant, always=bool(given.get("always_chill", False)),
    )  # fmt: skip
    in_air = hall - plant.air_coil_approach - plant.unit_approach
    air = _year(Water(in_air, plant.air_loop_temperature_rise), climate, plant, always=False)
    found = building(Loops(share, liquid, air), plant, record(Rack, {}), jnp.asarray(1e5))
    liquid_pump = float(share * plant.rack_loop_pump_head) / (1007.2 * 3980.6)
    rack_loop = liquid_pump / float(plant.water_temperature_rise)
    return {
        "pue": float(found.pue),
        "chiller": float(found.chiller_power_share),
        "fans": float(found.cooler_fan_share),
        "pump_tcs": rack_loop,
        "pump_fws": float(found.pump_power_share) - rack_loop,
        "crah": float(found.air_handler_power_share),
        "elec": float(found.electrical_loss),
        "misc": float(plant.miscellaneous_share),
        "hours_liq": HOURS * float(found.chiller_time_share),
        "hours_air": HOURS * float(found.air_chiller_time_share),
    }


def network_power_of_switches(given: Given) -> Found:
    """Switches of a fat tree, pluggable and co-packaged."""
    gpus, tiers, radix = (jnp.asarray(float(given[k])) for k in ("n_gpu", "tiers", "radix"))
    zero = jnp.zeros_like(gpus)
    switches = fat_tree_switches(gpus, tiers, radix)
    plug, packaged = (
        float(network_power(switches * radix, jnp.asarray(float(given[k])) / radix, gpus, zero))
        for k in ("P_switch_pluggable_W", "P_switch_cpo_W")
    )
    rest = float(gpus) * float(given["it_kW_per_gpu"]) * 1e3
    return {
        "n_switch": float(switches),
        "P_plug_MW": plug / 1e6,
        "P_cpo_MW": packaged / 1e6,
        "saved_MW": (plug - packaged) / 1e6,
        "share_plug": plug / (plug + rest),
        "share_cpo": packaged / (packaged + rest),
        "switch_saving_frac": 1.0 - packaged / plug,
    }


def optics_power(given: Given) -> Found:
    """Optics of a site, so many a GPU."""
    count = jnp.asarray(float(given["n_gpu"]) * float(given["optics_per_gpu"]))
    zero = jnp.zeros_like(count)
    plug, packaged = (
        float(network_power(zero, zero, count, jnp.asarray(float(given[k]))))
        for k in ("W_plug", "W_cpo")
    )
    return {"P_plug_MW": plug / 1e6, "P_cpo_MW": packaged / 1e6, "ratio": plug / packaged}


def swing(given: Given, asked: tuple[str, ...]) -> Found:
    """All GPUs leaving compute together."""
    gpus, busy, idle = (jnp.asarray(float(given[k])) for k in ("n_gpu", "P_compute_W", "P_comm_W"))
    found: Found = {"swing_MW": float(power_swing(gpus, busy, idle)) / 1e6}
    for key in asked:
        if key.startswith("mean_MW_duty"):
            digits = key.removeprefix("mean_MW_duty")
            duty = float(f"{digits[0]}.{digits[1:] or 0}")
            found[key] = float(gpus * (duty * busy + (1.0 - duty) * idle)) / 1e6
    return found


def loop_ride_through(given: Given) -> Found:
    """A loop whose heat is not rejected."""
    water = float(given["V_L"]) * 1e-3 * float(given["rho"]) * float(given["cp"])
    capacity = water + float(given["C_metal_J_K"])
    heat = float(given["Q_W"])
    time = ride_through(*(jnp.asarray(x) for x in (capacity, float(given["margin_K"]), heat)))
    return {"C_J_K": capacity, "dTdt_K_s": heat / capacity, "t_s": float(time)}
