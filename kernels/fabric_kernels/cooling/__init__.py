"""Cooling: how hot does it get, and what clock survives?"""

from jax import Array

from fabric_kernels.quantity import quantity, record

LIMITS = ("none", "power", "thermal", "hbm", "dry_out", "runaway", "floor", "trip")
"""Why the clock is where it is, in the order of the status ladder."""


@record
class Cooling:
    """How hot does it get, and what clock survives?"""

    clock_fraction: Array = quantity(
        "1", "clock of a GPU with nominal parts as a share of full clock", bounds=(0, 1)
    )
    slowest_clock_fraction: Array = quantity(
        "1", "clock of the slowest GPU as a share of full clock", bounds=(0, 1)
    )
    junction_temperature: Array = quantity(
        "degC", "junction temperature of a GPU with nominal parts", bounds=(0, 200)
    )
    gpu_power: Array = quantity("W", "power of a GPU with nominal parts", bounds=(0, 1e5))
    limiting_reason: Array = quantity(
        "1", "what limits the clock of a GPU with nominal parts", bounds=(0, 7), flags=LIMITS
    )
    thermal_resistance: Array = quantity(
        "K W-1", "junction to medium, GPU with nominal parts", bounds=(0, 10)
    )
    medium_temperature: Array = quantity(
        "degC", "base temperature of the medium at the GPU with nominal parts", bounds=(-20, 100)
    )
    mean_gpu_power: Array = quantity(
        "W", "mean power over the GPUs of the population", bounds=(0, 1e5)
    )
    mean_slowness: Array = quantity(
        "1", "mean of full clock over clock, over the GPUs of the population", bounds=(1, 100)
    )
    mean_compute_power: Array = quantity(
        "W",
        "mean power over the GPUs, each weighted by full clock over its clock",
        bounds=(0, 1e5),
    )
