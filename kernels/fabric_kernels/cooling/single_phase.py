"""Single-phase direct-to-chip liquid cooling."""

from typing import Annotated

import jax.numpy as jnp
from jax import Array

from fabric_kernels.cooling import Cooling
from fabric_kernels.cooling.answer import answer
from fabric_kernels.cooling.chip import Medium
from fabric_kernels.cooling.deviation import Sensitivity
from fabric_kernels.inputs import Gpu, Job, LiquidLoop, Population
from fabric_kernels.uniform import Uniform

_WARMEST = 60.0  # degC of supply
_STANDING = 1e-8  # m3 s-1: less is refused, and a plate is never divided by its flow of 0


def single_phase(
    job: Job,
    gpu: Gpu,
    loop: LiquidLoop,
    population: Population,
    slowest: Annotated[Uniform, "slowest"],
    bad_part: Annotated[Uniform, "bad_part"],
) -> Cooling:
    """Cold plate fed at the coolant supply temperature; a large `slowest` gives a slow GPU.

        C = c V,   R_plate = R_0 (V / V_0)^-n,   NTU = 1 / (R_plate C),   effectiveness = 1 - e^-NTU
        T_b = supply,   R = R_package + R_interface + 1 / (effectiveness C) + upstream_plates / C

    Kays and London, Compact Heat Exchangers, 1984, for a wall of one temperature. R stays above
    1 / C, so the outlet never gets hotter than the plate. Plates in series: every plate that the
    coolant has passed before has warmed it by P / C, taken at the power of the GPU itself. Stops
    being true without flow (the transient then matters) and above about 100 degC at the plate.
    """
    return answer(job, gpu, population, slowest, bad_part, lambda r, f: cold_plate(loop, r, f))


def cold_plate(
    loop: LiquidLoop, resistance: Array | float, flow: Array | float
) -> tuple[Medium, Sensitivity]:
    """Medium of a plate whose resistances and flow are e^resistance and e^flow times the median's.

    The deviation of resistance multiplies package, interface and plate, not 1 / C.
    """
    moving = jnp.maximum(loop.coolant_flow, _STANDING)
    capacity = loop.coolant_heat_capacity * moving * jnp.exp(flow)
    exponent = loop.plate_flow_exponent
    log_flow = jnp.log(moving / loop.plate_reference_flow) + flow
    plate = loop.plate_resistance * jnp.exp(resistance - exponent * log_flow)
    solid = (loop.package_resistance + loop.interface_resistance) * jnp.exp(resistance)
    units = 1.0 / (plate * capacity)
    effectiveness = -jnp.expm1(-units)
    fluid = 1.0 / (effectiveness * capacity)
    wall = units * (1.0 / effectiveness - 1.0) * fluid
    upstream = loop.upstream_plates / capacity
    by_flow = wall * (1.0 - exponent) - fluid - upstream
    sensitivity = Sensitivity(solid + wall, by_flow, jnp.zeros_like(fluid))
    return Medium(loop.coolant_supply_temperature, solid + fluid + upstream), sensitivity


def flow_refusal(loop: LiquidLoop) -> str | None:
    """Why a cold plate has no steady state, for a record of plain numbers; None where it has."""
    flow = float(loop.coolant_flow)
    if flow * 6e4 < 0.02:
        return (
            f"coolant_flow is {flow * 6e4:.3g} L/min: a steady state needs more than 0.02 L/min; "
            "what a plate does that loses its flow is the question transient (time_to_throttle), "
            "asked at the flow it had before."
        )
    return supply_refusal(loop)


def supply_refusal(loop: LiquidLoop) -> str | None:
    """Why a plate has no steady state at its supply, for a record of plain numbers."""
    supply = float(loop.coolant_supply_temperature)
    if supply <= _WARMEST:
        return None
    return (
        f"coolant_supply_temperature is {supply:.4g} degC: at most {_WARMEST:g} degC is allowed, "
        "where the plate's law holds; set a colder supply."
    )
