"""Worked cases of one GPU: its operating point, its transients, the slowest of many."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from fabric_kernels.cooling import LIMITS
from fabric_kernels.cooling.air import heatsink
from fabric_kernels.cooling.answer import governed
from fabric_kernels.cooling.chip import Limits, Medium, Memory, fold_temperature
from fabric_kernels.cooling.deviation import Sensitivity
from fabric_kernels.cooling.single_phase import cold_plate
from fabric_kernels.cooling.slowest import Part
from fabric_kernels.cooling.two_phase import dry_out_power, exit_quality, refrigerant_flow
from fabric_kernels.inputs import (
    AirRack,
    Gpu,
    LiquidLoop,
    Rack,
    TwoPhaseLoop,
)
from fabric_kernels.inputs.power_law import Chip, chip_of, power
from fabric_kernels.quantity import quantities

Given = Mapping[str, Any]
Found = dict[str, float | str | None]

LITRE_PER_MINUTE = 1e-3 / 60
PG25 = 1007.2 * 3980.6
HORIZON = 3600.0

NO_MEMORY = Memory(*(jnp.asarray(x) for x in (1e6, 0.0, 1.0)))


def record(kind: type, given: Mapping[str, float]) -> Any:
    """A record of float64 numbers: given, by default, or 1 where it does not enter."""
    values = {}
    for name, declared in quantities(kind).items():
        value = given.get(name, declared.default)
        values[name] = jnp.asarray(1.0 if value is None else value, float)
    return kind(**values)


GPU = {
    "tdp_W": "thermal_design_power",
    "P_cap_W": "power_cap",
    "T_lim_C": "junction_temperature_limit",
    "T_shut_C": "shutdown_temperature",
    "activity": "activity",
    "a_mem": "memory_activity",
    "p_idle": "idle_power_share",
    "p_hbm": "memory_power_share",
    "l0": "leakage_share",
    "T0_C": "leakage_reference_temperature",
    "beta": "leakage_temperature_coefficient",
    "d0": "dynamic_power_share",
    "v_min": "minimum_voltage_fraction",
    "s": "voltage_slope",
    "phi_min": "minimum_clock_fraction",
}
"""Parameters of a GPU in the tables, and what they are called here."""

PLATE = {
    "T_in_C": "coolant_supply_temperature",
    "V_lpm": "coolant_flow",
    "R_pkg": "package_resistance",
    "R_tim": "interface_resistance",
    "R_cp0": "plate_resistance",
    "V0_lpm": "plate_reference_flow",
    "n": "plate_flow_exponent",
    "n_upstream": "upstream_plates",
}

AIR = {
    "T_supply_C": "air_supply_temperature",
    "V_rack_max_m3_s": "rack_airflow",
    "rho_cp": "air_heat_capacity",
    "R_hs0_K_per_W": "heatsink_resistance",
    "n_gpu_nominal": "nominal_gpus_per_rack",
    "n_air": "heatsink_density_exponent",
    "kappa_preheat": "preheat_share",
}

SPREADS = {
    "sig_R": "resistance_spread",
    "sig_leak": "leakage_spread",
    "sig_D": "dynamic_power_spread",
    "sig_T": "inlet_temperature_spread",
    "sig_flow": "flow_spread",
}


def named(given: Given, names: Mapping[str, str]) -> dict[str, float]:
    """The parameters of these names, by ours; litres per minute in SI."""
    found = {ours: float(given[key]) for key, ours in names.items() if key in given}
    for flow in ("coolant_flow", "plate_reference_flow"):
        if flow in found:
            found[flow] *= LITRE_PER_MINUTE
    return found


def gpu_of(given: Given) -> Gpu:
    """The GPU of a case; its cap is its design power where it names none."""
    values = named(given, GPU)
    values.setdefault("power_cap", values["thermal_design_power"])
    return record(Gpu, values)


def _limits(gpu: Gpu) -> Limits:
    return Limits(gpu.power_cap, gpu.junction_temperature_limit, gpu.shutdown_temperature)


_governed = jax.jit(governed)


def solved_point(part: Part, medium: Medium, dry_out: float = 1e9) -> Found:
    """Operating point of a part in the names of the tables."""
    zero = jnp.asarray(0.0)
    sensitivity = Sensitivity(zero, zero, zero, jnp.asarray(dry_out))
    at = _governed(part, medium, sensitivity)
    status = LIMITS[int(at.reason)].replace("_", "").upper()
    tripped = status == "TRIP"
    return {
        "phi": float(at.clock),
        "T_j_C": None if tripped else float(at.temperature),
        "P_W": None if tripped else float(at.power),
        "status": status,
        "R_ji_K_per_W": float(medium.resistance),
        "T_fold_C": float(fold_temperature(part.chip, medium, at.clock)),
    }


def gpu_fixed_point(given: Given) -> Found:
    """A GPU on a cold plate or over a fixed resistance."""
    gpu = gpu_of(given)
    part = Part(chip_of(gpu), _limits(gpu), NO_MEMORY)
    if "V_lpm" not in given:
        fixed = Medium(*(jnp.asarray(float(given[k])) for k in ("T_in_C", "R_ji_K_per_W")))
        return solved_point(part, fixed)
    loop = record(LiquidLoop, named(given, PLATE))
    medium, _ = cold_plate(loop, 0.0, 0.0)
    capacity = loop.coolant_heat_capacity * loop.coolant_flow
    solid = loop.package_resistance + loop.interface_resistance
    upstream = loop.upstream_plates / capacity
    found = solved_point(part, medium)
    found["C_W_per_K"] = float(capacity)
    found["eps"] = float(1.0 / ((medium.resistance - solid - upstream) * capacity))
    if isinstance(drawn := found["P_W"], float):
        passed = float((1.0 + loop.upstream_plates) / capacity)
        found["T_out_C"] = float(medium.temperature) + drawn * passed
    return found


def gpu_fixed_point_raw(given: Given) -> Found:
    """A GPU whose power law is given in watts."""
    chip = _chip_in_watts(given)
    limits = Limits(*(jnp.asarray(float(given[k])) for k in ("P_cap_W", "T_lim_C", "T_shut_C")))
    medium = Medium(*(jnp.asarray(float(given[k])) for k in ("T_in_C", "R_ji_K_per_W")))
    return solved_point(Part(chip, limits, NO_MEMORY), medium)


def _chip_in_watts(given: Given) -> Chip:
    usual = chip_of(record(Gpu, {"thermal_design_power": 1.0} | named(given, GPU)))
    watts = {"idle_power": "P0_W", "leakage": "L0_W", "dynamic_power": "D_W"}
    return usual._replace(**{ours: jnp.asarray(float(given[k])) for ours, k in watts.items()})


def gpu_two_phase(given: Given) -> Found:
    """A GPU under a boiling plate."""
    gpu = gpu_of(given)
    names = {
        "R_boil": "boiling_resistance",
        "h_fg_J_kg": "latent_heat",
        "cp_l": "liquid_heat_capacity",
        "dT_sub_K": "subcooling",
        "x_crit": "critical_quality",
        "P_chf_W": "critical_heat_flow",
    }
    boiling = record(TwoPhaseLoop, {"critical_heat_flow": 1e6} | named(given, names))
    flow = jnp.asarray(float(given["mdot_kg_s"]))
    design = refrigerant_flow(gpu, boiling)
    boiling = record(
        TwoPhaseLoop,
        {"critical_heat_flow": 1e6} | named(given, names)
        | {"refrigerant_flow_share": float(flow / design)},
    )  # fmt: skip
    loop = record(LiquidLoop, named(given, PLATE))
    resistance = loop.package_resistance + loop.interface_resistance + boiling.boiling_resistance
    dry = float(dry_out_power(gpu, boiling, 0.0))
    part = Part(chip_of(gpu), _limits(gpu), NO_MEMORY)
    found = solved_point(part, Medium(jnp.asarray(float(given["T_sat_C"])), resistance), dry)
    found |= {"P_dry_W": dry, "R_js": float(resistance)}
    if isinstance(drawn := found["P_W"], float):
        found["x_out"] = float(exit_quality(flow, jnp.asarray(drawn), boiling))
    return found


def gpu_hbm_limit(given: Given) -> Found:
    """A GPU whose memory is the limit."""
    gpu, loop = gpu_of(given), record(LiquidLoop, named(given, PLATE))
    medium, _ = cold_plate(loop, 0.0, 0.0)
    limit, own = float(given["T_hbm_lim_C"]), float(given["R_hh"]) * float(given["P_hbm_W"])
    cross = float(given["R_hg"])
    memory = Memory(*(jnp.asarray(x) for x in (limit, own, cross)))
    found = solved_point(Part(chip_of(gpu), _limits(gpu), memory), medium)
    return found | {"P_hbm_lim_W": (limit - float(medium.temperature) - own) / cross}


def air_rack(given: Given) -> Found:
    """A GPU in an air-cooled rack at its airflow ceiling."""
    gpu, count = gpu_of(given), float(given["n_gpu"])
    other = float(given["P_other_W"])
    cooled = record(AirRack, named(given, AIR))
    rack = record(Rack, {"gpus_per_rack": count, "other_power": other})
    medium, _ = heatsink(cooled, rack, 0.0, 0.0)
    found = solved_point(Part(chip_of(gpu), _limits(gpu), NO_MEMORY), medium)
    found |= {"R_eff": float(medium.resistance), "T_base_C": float(medium.temperature)}
    if isinstance(drawn := found["P_W"], float):
        capacity = float(cooled.air_heat_capacity * cooled.rack_airflow) / count
        found["dT_air_K"] = (drawn + other) / capacity
        found["P_rack_kW"] = count * (drawn + other) / 1e3
    return found


def gpu_power(given: Given) -> Found:
    """Power at a temperature and a clock."""
    at = (jnp.asarray(float(given[k])) for k in ("T_C", "phi"))
    return {"P_W": float(power(_chip_in_watts(given), *at))}


def diurnal(given: Given) -> Found:
    """Clock of a GPU over a fixed resistance at two inlet temperatures."""
    rest = {k: v for k, v in given.items() if not k.startswith("T_in_")}
    low, high = (
        gpu_fixed_point({**rest, "T_in_C": given[k]})["phi"] for k in ("T_in_lo", "T_in_hi")
    )
    assert isinstance(low, float)
    assert isinstance(high, float)
    return {"phi_lo": low, "phi_hi": high, "throughput_change": high / low - 1.0}
