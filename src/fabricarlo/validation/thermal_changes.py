"""Worked cases of what changes: lost flow, power cycles, and the slowest of many GPUs."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import log_ndtr, ndtri

from fabric_kernels.cooling.air import air
from fabric_kernels.cooling.chip import Limits, Medium
from fabric_kernels.cooling.single_phase import single_phase
from fabric_kernels.cooling.slowest import Part
from fabric_kernels.inputs import AirRack, Job, LiquidLoop, Population, Rack
from fabric_kernels.inputs.power_law import chip_of
from fabric_kernels.transient.network import (
    Nodes,
    duty_cycle,
    steady,
    time_to,
    time_to_with_leakage,
)
from fabric_kernels.uniform import Uniform
from fabricarlo.validation.thermal_points import (
    HORIZON,
    NO_MEMORY,
    PLATE,
    SPREADS,
    Found,
    Given,
    gpu_of,
    named,
    record,
    solved_point,
)


def _nodes(given: Given, conductance: float) -> Nodes:
    values = (given["C1_J_K"], given["C2_J_K"], given["R12"], conductance, given["T_in_C"])
    return Nodes(*(jnp.asarray(float(x)) for x in values))


_constant = jax.jit(time_to)
_leaking = jax.jit(time_to_with_leakage)


def pump_loss_two_node(given: Given, asked: tuple[str, ...]) -> Found:
    """Heating after lost flow, at constant power or with leakage at a held clock."""
    flowing = _nodes(given, 1.0 / (float(given["R_ji"]) - float(given["R12"])))
    lost = _nodes(given, float(given["G_par"]))
    targets = {key: float(key.split("_")[2]) for key in asked if key.startswith("t_to_")}
    horizon = jnp.asarray(HORIZON)
    if "P_W" in given:
        drawn = jnp.asarray(float(given["P_W"]))
        start = steady(flowing, drawn)
        times = {k: _constant(lost, start, drawn, jnp.asarray(t), horizon)
                 for k, t in targets.items()}  # fmt: skip
    else:
        gpu = gpu_of(given)
        medium = Medium(flowing.medium, jnp.asarray(float(given["R_ji"])))
        clock = jnp.asarray(float(given["phi"]))
        held = chip_of(gpu)._replace(minimum_clock=clock)
        # at its lowest clock with limits out of reach: the balance at the held clock
        free = Limits(*(jnp.asarray(x) for x in (0.0, -100.0, 1e4)))
        balance = solved_point(Part(held, free, NO_MEMORY), medium)
        start = steady(flowing, jnp.asarray(balance["P_W"]))
        times = {k: _leaking(held, clock, lost, start, jnp.asarray(t), horizon)
                 for k, t in targets.items()}  # fmt: skip
    found: Found = {key: float(time) for key, time in times.items()}
    return found | {"T1_0": float(start.die), "T2_0": float(start.plate)}


def duty_cycle_two_node(given: Given) -> Found:
    """Periodic steady state of a power that switches."""
    nodes = _nodes(given, 1.0 / (float(given["R_ji"]) - float(given["R12"])))
    powers = tuple(jnp.asarray(float(given[k])) for k in ("P_hi", "P_lo"))
    period, share = (jnp.asarray(float(given[k])) for k in ("period_s", "duty"))
    cycle = duty_cycle(nodes, (powers[0], powers[1]), period, share)
    return {
        "T_mean_C": float(cycle.mean),
        "T_min_C": float(cycle.coldest),
        "T_max_C": float(cycle.hottest),
    }


_slowest_on_plate: Callable[..., Any] = jax.jit(single_phase)
_slowest_in_air: Callable[..., Any] = jax.jit(air)


def _expected_uniform(count: Array) -> Uniform:
    """The uniform at the usual approximation of the mean of the largest of N normal scores."""
    score = ndtri((count - jnp.pi / 8) / (count - jnp.pi / 4 + 1.0))
    log_uniform = count * log_ndtr(score)
    upper = log_uniform > -jnp.log(2.0)
    return Uniform(upper, jnp.where(upper, -jnp.expm1(log_uniform), jnp.exp(log_uniform)))


def slowest_of_n(given: Given, asked: tuple[str, ...]) -> Found:
    """Clock of the slowest of N at the mean of the largest normal score."""
    gpu = gpu_of(given)
    population = record(Population, named(given, SPREADS))
    plate = {"T_in": "coolant_supply_temperature", "V": "coolant_flow"} | PLATE
    found: Found = {}
    for key in asked:
        count = jnp.asarray(float(key.removeprefix("phi_N")))
        job, uniform = record(Job, {"gpus": float(count)}), _expected_uniform(count)
        if given.get("air"):
            sink = {
                "air_supply_temperature": float(given["T_in"]),
                "heatsink_resistance": float(given.get("R_ji_K_per_W", 0.058)),
                "preheat_share": 0.0,
            }
            rack = record(Rack, {"gpus_per_rack": 32.0, "other_power": 0.0})
            cooling = _slowest_in_air(
                job, gpu, record(AirRack, sink), rack, population, uniform, uniform
            )
        else:
            loop = record(LiquidLoop, named(given, plate))
            cooling = _slowest_on_plate(job, gpu, loop, population, uniform, uniform)
        found[key] = float(cooling.slowest_clock_fraction)
    return found
