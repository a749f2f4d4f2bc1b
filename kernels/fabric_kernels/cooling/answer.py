"""From what a cooling technology supplies to the answer of the question."""

import jax.numpy as jnp
from jax import Array

from fabric_kernels.cooling import Cooling
from fabric_kernels.cooling.chip import chip_of, limits_of
from fabric_kernels.cooling.electrothermal import operating_point
from fabric_kernels.cooling.slowest import Supply, slowest_clock
from fabric_kernels.inputs import Gpu, Job, Population
from fabric_kernels.maths.normal import normal_score_of_tail
from fabric_kernels.uniform import Uniform


def answer(job: Job, gpu: Gpu, population: Population, slowest: Uniform, supply: Supply) -> Cooling:
    """Operating point of the median GPU and clock of the slowest of the job's GPUs."""
    chip, limits = chip_of(gpu), limits_of(gpu)
    median = supply(0.0, 0.0)
    medium, _ = median
    point = operating_point(chip, limits, medium)
    score = slowest_score(job.gpus, slowest)
    clock = slowest_clock(chip, limits, supply, median, population, score, point.clock)
    return Cooling(
        clock_fraction=point.clock,
        slowest_clock_fraction=clock,
        junction_temperature=point.temperature,
        gpu_power=point.power,
        limiting_reason=point.reason,
        thermal_resistance=medium.resistance,
        medium_temperature=medium.temperature,
    )


def slowest_score(gpus: Array, slowest: Uniform) -> Array:
    """Normal score of the largest of `gpus` deviations: Phi^-1(u^(1/N)), from the survival side."""
    h = slowest.distance
    waiting = jnp.where(slowest.upper, -jnp.log1p(-h), -jnp.log(h))
    each = waiting / gpus
    tail = -jnp.expm1(-each)
    above = tail < 0.5
    score = normal_score_of_tail(jnp.where(above, tail, jnp.exp(-each)))
    return jnp.where(above, score, -score)
