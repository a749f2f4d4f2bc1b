"""A GPU as two heat capacities, its loop as one."""

import jax.numpy as jnp
from jax import Array

from fabric_kernels.cooling import Cooling
from fabric_kernels.inputs import (
    Gpu,
    LiquidLoop,
    OffCompute,
    PowerCycle,
    Pumps,
    Rack,
    ThermalMass,
)
from fabric_kernels.inputs.power_law import chip_of
from fabric_kernels.power import Power
from fabric_kernels.transient import HORIZON, OUTCOMES, Transient
from fabric_kernels.transient.network import Nodes, duty_cycle, steady, time_to_with_leakage

_CODE = {name: float(code) for code, name in enumerate(OUTCOMES)}


def two_node(
    gpu: Gpu,
    loop: LiquidLoop,
    rack: Rack,
    cooling: Cooling,
    power: Power,
    mass: ThermalMass,
    pumps: Pumps,
    cycle: PowerCycle,
    off_compute: OffCompute,
) -> Transient:
    """Die and plate of the nominal GPU from its steady state, its clock held.

        R12 = R_package + R_interface,   G = 1 / (R - R12), parasitic once the flow is lost
        loop_ride_through_time = margin C_loop / (liquid_heat_share rack_power)
        flow_unavailability = P(two or more of n + 1 pumps are out)

    Held clock: the governor would slow the heating down. A reserve pump that carries the flow
    before the limit is met leaves the GPU at speed; before shutdown, slow; later, off. Direct
    liquid loops shut servers down within a minute of lost flow (InterPACK 2017) [M].
    """
    flowing = _nodes(loop, cooling, mass)
    state = steady(flowing, cooling.gpu_power)
    lost = flowing._replace(conductance=mass.parasitic_conductance)
    chip, clock = chip_of(gpu), cooling.clock_fraction
    throttle, shutdown = (
        time_to_with_leakage(chip, clock, lost, state, target, HORIZON)
        for target in (gpu.junction_temperature_limit, gpu.shutdown_temperature)
    )
    powers = cooling.gpu_power, off_compute.communication_power
    temperatures = duty_cycle(flowing, powers, cycle.cycle_period, cycle.cycle_compute_share)
    return Transient(
        time_to_throttle=throttle,
        time_to_shutdown=shutdown,
        pump_failure_outcome=_outcome(pumps.pump_switchover_time, throttle, shutdown),
        flow_unavailability=two_or_more_out(pumps.pumps_needed, pumps.pump_unavailability),
        loop_ride_through_time=ride_through(
            mass.loop_heat_capacity,
            mass.loop_temperature_margin,
            rack.liquid_heat_share * power.rack_power,
        ),
        cycle_mean_temperature=temperatures.mean,
        cycle_temperature_swing=jnp.abs(temperatures.swing),
    )


def _nodes(loop: LiquidLoop, cooling: Cooling, mass: ThermalMass) -> Nodes:
    """Die and plate while the coolant flows."""
    solid = jnp.minimum(
        loop.package_resistance + loop.interface_resistance, 0.9 * cooling.thermal_resistance
    )
    return Nodes(
        die=mass.die_heat_capacity,
        plate=mass.plate_heat_capacity,
        resistance=jnp.maximum(solid, 1e-6),
        conductance=1.0 / (jnp.maximum(cooling.thermal_resistance, 2e-6) - solid),
        medium=cooling.medium_temperature,
    )


def _outcome(away: Array, throttle: Array, shutdown: Array) -> Array:
    """Code of what a pump failure comes to, the flow being away for so long (all s)."""
    outcome = jnp.where(away < throttle, _CODE["rides_through"], _CODE["throttles"])
    return jnp.where(away < shutdown, outcome, _CODE["trips"]).astype(throttle.dtype)


def ride_through(heat_capacity: Array, margin: Array, heat: Array) -> Array:
    """Time (s) in which a heat (W) that is not rejected warms a loop (J K-1) by a margin (K)."""
    return heat_capacity * margin / jnp.maximum(heat, 1e-3)


def two_or_more_out(needed: Array, unavailability: Array) -> Array:
    """Probability that two or more of needed + 1 independent pumps are out.

    1 - (1 - q)^n (1 + n q), without the cancellation of its first two orders.
    """
    q = unavailability
    return -jnp.expm1(needed * _log1p_rest(-q) + _log1p_rest(needed * q))


def _log1p_rest(x: Array) -> Array:
    """log(1 + x) - x."""
    small = jnp.abs(x) < 0.05
    y = jnp.where(small, x, 0.0)
    series = (
        y
        * y
        * (-1 / 2 + y * (1 / 3 + y * (-1 / 4 + y * (1 / 5 + y * (-1 / 6 + y * (1 / 7 - y / 8))))))
    )
    far = jnp.where(small, 1.0, x)
    return jnp.where(small, series, jnp.log1p(far) - far)
