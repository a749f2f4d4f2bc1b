"""Two-phase direct-to-chip cooling: a pumped dielectric boils in the cold plate."""

import dataclasses
from typing import Annotated

import jax.numpy as jnp
from jax import Array

from fabric_kernels.cooling import Cooling
from fabric_kernels.cooling.answer import answer
from fabric_kernels.cooling.chip import CODE, Medium
from fabric_kernels.cooling.deviation import Sensitivity
from fabric_kernels.cooling.fluids import r1233zd_warming
from fabric_kernels.inputs import Gpu, Job, LiquidLoop, Population, TwoPhaseLoop
from fabric_kernels.maths.order_statistics import exponential_variate, level_of_largest
from fabric_kernels.uniform import Uniform

_UNLIMITED = 1e9  # W


def two_phase(
    job: Job,
    gpu: Gpu,
    loop: LiquidLoop,
    boiling: TwoPhaseLoop,
    population: Population,
    slowest: Annotated[Uniform, "slowest"],
    bad_part: Annotated[Uniform, "bad_part"],
) -> Cooling:
    """Boiling plates whose condenser is fed at the coolant supply temperature.

        T_b = T_saturation = supply + condenser_approach + warming by the manifold's pressure
        R = R_package + R_interface + R_boiling
        P_dry = min(m (x_critical h_fg + c_p dT_subcooling), critical_heat_flow)
        m = flow_share TDP / (x_design h_fg + c_p dT_subcooling)

    Heat balance of the plate. At dry-out the governor holds P_dry, or the GPU is lost where
    `dry_out_trips` is set: then also the slowest GPU, if the poorest flow of the job dries out. A
    GPU that dries out at its lowest clock is lost in any case. R is taken as linear. No public
    curve of resistance, critical heat flux or dry-out of a package above 1 kW was found: the
    weakest part of the model.
    """
    trips = boiling.dry_out_trips > 0.5
    cooling = answer(
        job, gpu, population, slowest, bad_part,
        lambda r, f: boiling_plate(gpu, loop, boiling, r, f, trips),
    )  # fmt: skip
    score = level_of_largest(job.gpus, exponential_variate(slowest)).normal_score
    score = jnp.minimum(score, population.screening_limit)
    dry = dry_out_power(gpu, boiling, 0.0)
    poorest = dry_out_power(gpu, boiling, -jnp.maximum(score, 0.0) * population.flow_spread)
    # a GPU that dries its plate out at its lowest clock is lost whatever its governor does
    lowest_dries = cooling.limiting_reason == CODE["floor"]
    lost = (trips | lowest_dries) & (cooling.gpu_power > dry)
    one_lost = trips & (cooling.gpu_power > poorest)
    lowest, code = gpu.minimum_clock_fraction, CODE["trip"]
    return dataclasses.replace(
        cooling,
        clock_fraction=jnp.where(lost, lowest, cooling.clock_fraction),
        slowest_clock_fraction=jnp.where(one_lost, lowest, cooling.slowest_clock_fraction),
        junction_temperature=jnp.where(
            lost, gpu.shutdown_temperature, cooling.junction_temperature
        ),
        gpu_power=jnp.where(lost, dry, cooling.gpu_power),
        limiting_reason=jnp.where(lost, code, cooling.limiting_reason),
    )


def refrigerant_flow(gpu: Gpu, boiling: TwoPhaseLoop) -> Array:
    """Mass flow (kg s-1) of one GPU's plate."""
    heat = boiling.design_exit_quality * boiling.latent_heat
    heat = heat + boiling.liquid_heat_capacity * boiling.subcooling
    return boiling.refrigerant_flow_share * gpu.thermal_design_power / heat


def exit_quality(flow: Array, power: Array, boiling: TwoPhaseLoop) -> Array:
    """Vapour share at the outlet: (P / m - c_p dT_subcooling) / h_fg, 0 where nothing boils."""
    boiled = power / flow - boiling.liquid_heat_capacity * boiling.subcooling
    return jnp.maximum(boiled, 0.0) / boiling.latent_heat


def dry_out_power(gpu: Gpu, boiling: TwoPhaseLoop, flow: Array | float) -> Array:
    """Power (W) at which a plate with e^flow times the nominal flow dries out."""
    heat = boiling.critical_quality * boiling.latent_heat
    heat = heat + boiling.liquid_heat_capacity * boiling.subcooling
    by_flow = refrigerant_flow(gpu, boiling) * jnp.exp(flow) * heat
    return jnp.minimum(by_flow, boiling.critical_heat_flow)


def boiling_plate(
    gpu: Gpu,
    loop: LiquidLoop,
    boiling: TwoPhaseLoop,
    resistance: Array | float,
    flow: Array | float,
    trips: Array,
) -> tuple[Medium, Sensitivity]:
    """Medium of a plate whose resistances and flow are e^resistance and e^flow times the median's.

    Where `trips` holds the medium does not limit the power.
    """
    saturation = loop.coolant_supply_temperature + boiling.condenser_approach
    saturation = saturation + r1233zd_warming(saturation, boiling.manifold_pressure_drop)
    solid = loop.package_resistance + loop.interface_resistance + boiling.boiling_resistance
    solid = solid * jnp.exp(resistance)
    dry = dry_out_power(gpu, boiling, flow)
    by_flow = jnp.where(trips | (dry >= boiling.critical_heat_flow), 0.0, dry)
    zero = jnp.zeros_like(solid)
    dry = jnp.where(trips, _UNLIMITED, dry)
    return Medium(saturation, solid), Sensitivity(solid, zero, zero, dry, by_flow)
