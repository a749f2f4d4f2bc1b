"""From what a cooling technology supplies to the answer of the question."""

from fabric_kernels.cooling import Cooling
from fabric_kernels.cooling.chip import chip_of, limits_of
from fabric_kernels.cooling.electrothermal import operating_point
from fabric_kernels.cooling.slowest import Supply, slowest_clock
from fabric_kernels.inputs import Gpu, Job, Population
from fabric_kernels.maths.order_statistics import exponential_variate, level_of_largest
from fabric_kernels.uniform import Uniform


def answer(job: Job, gpu: Gpu, population: Population, slowest: Uniform, supply: Supply) -> Cooling:
    """Operating point of the nominal GPU and clock of the slowest of the job's GPUs."""
    chip, limits = chip_of(gpu), limits_of(gpu)
    median = supply(0.0, 0.0)
    medium, _ = median
    point = operating_point(chip, limits, medium)
    # a large uniform gives the largest deviation, hence the slowest GPU
    score = level_of_largest(job.gpus, exponential_variate(slowest)).normal_score
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
