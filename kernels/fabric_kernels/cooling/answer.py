"""From what a cooling technology supplies to the answer of the question."""

import jax.numpy as jnp
from jax import Array

from fabric_kernels.cooling import Cooling
from fabric_kernels.cooling.chip import CODE, Medium, limits_of, memory_of, memory_power
from fabric_kernels.cooling.deviation import Sensitivity, Supply
from fabric_kernels.cooling.electrothermal import OperatingPoint, operating_point
from fabric_kernels.cooling.population import population_means
from fabric_kernels.cooling.slowest import Part, slowest_clock
from fabric_kernels.inputs import Gpu, Job, Population
from fabric_kernels.inputs.power_law import Chip, chip_of
from fabric_kernels.maths.order_statistics import exponential_variate
from fabric_kernels.uniform import Uniform


def answer(
    job: Job,
    gpu: Gpu,
    population: Population,
    slowest: Uniform,
    bad_part: Uniform,
    supply: Supply,
) -> Cooling:
    """Operating points of the nominal GPU and of the population, clock of the slowest GPU."""
    part = Part(chip_of(gpu), limits_of(gpu), memory_of(gpu))
    median = supply(0.0, 0.0)
    medium, sensitivity = median

    def at(chip: Chip, medium: Medium, sensitivity: Sensitivity) -> OperatingPoint:
        return governed(part._replace(chip=chip), medium, sensitivity)

    point = governed(part, medium, sensitivity)
    # a large uniform gives the largest deviation, hence the slowest GPU
    exponential = exponential_variate(slowest)
    clock = slowest_clock(part, supply, median, population, exponential, job.gpus, point.clock)
    bad = point.clock / _worst_slowdown(population, job.gpus, exponential_variate(bad_part))
    clock = jnp.maximum(jnp.minimum(clock, bad), part.chip.minimum_clock)
    means = population_means(part.chip, supply, population, at)
    return Cooling(
        clock_fraction=point.clock,
        slowest_clock_fraction=clock,
        junction_temperature=point.temperature,
        gpu_power=point.power,
        limiting_reason=point.reason,
        thermal_resistance=medium.resistance,
        medium_temperature=medium.temperature,
        mean_gpu_power=means.power,
        mean_slowness=means.slowness,
        mean_compute_power=means.energy / means.slowness,
    )


def governed(part: Part, medium: Medium, sensitivity: Sensitivity) -> OperatingPoint:
    """Operating point under the power cap, the memory's limit and the medium's."""
    limits = part.limits
    by_memory = memory_power(part.memory, medium.temperature)
    power = jnp.minimum(limits.power, jnp.minimum(by_memory, sensitivity.dry_out_power))
    point = operating_point(part.chip, limits._replace(power=power), medium)
    cause = jnp.where(by_memory <= power, CODE["hbm"], CODE["dry_out"])
    cause = jnp.where(limits.power <= power, CODE["power"], cause)
    capped = point.reason == CODE["power"]
    return point._replace(reason=jnp.where(capped, cause, point.reason).astype(power.dtype))


def _worst_slowdown(population: Population, count: Array, exponential: Array) -> Array:
    """Slowdown of the worst bad part among `count` GPUs, 1 where there is none.

    The worst of a Poisson number of parts of mean count x probability, uniform in slowdown: it
    exceeds a share of the range with probability exp(-mean share). Against the binomial count the
    law's error is below 0.27 / count.
    """
    mean = count * population.bad_part_probability
    struck = exponential < mean
    # where there is none, no quotient either: its slope by the mean overflows
    share = exponential / jnp.where(struck, mean, 1.0)
    least = population.bad_part_least_slowdown
    most = jnp.maximum(population.bad_part_greatest_slowdown, least)
    return jnp.where(struck, most - (most - least) * share, 1.0)
