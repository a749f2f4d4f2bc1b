"""One GPU, and how much the GPUs of a cluster differ."""

from jax import Array

from fabric_kernels.quantity import quantity, record


@record
class Gpu:
    """One GPU: its speed, its power law and its temperature limits."""

    peak_flops: Array = quantity(
        "s-1", "dense peak of the precision at full clock", bounds=(1e9, 1e18)
    )
    thermal_design_power: Array = quantity("W", "thermal design power of one GPU", bounds=(10, 1e4))
    power_cap: Array = quantity("W", "power limit that the clock governor holds", bounds=(10, 1e4))
    junction_temperature_limit: Array = quantity(
        "degC",
        "junction temperature at which the clock governor slows down",
        bounds=(40, 150),
        default=87,
        source="H100 driver output [M]; Blackwell [A]",
    )
    shutdown_temperature: Array = quantity(
        "degC",
        "junction temperature at which the GPU shuts down",
        bounds=(40, 200),
        default=95,
        source="H100 driver output [M]; Blackwell [A]",
    )
    idle_power_share: Array = quantity(
        "1", "idle power as a share of TDP", bounds=(0, 1), default=0.07, source="H100 idle [M]"
    )
    memory_power_share: Array = quantity(
        "1", "memory power at full use as a share of TDP", bounds=(0, 1), default=0.08, source="[A]"
    )
    memory_activity: Array = quantity(
        "1", "share of full use of the memory", bounds=(0, 1), default=1, source="[A]"
    )
    leakage_share: Array = quantity(
        "1",
        "leakage at the reference temperature and full voltage as a share of TDP",
        bounds=(0, 1),
        default=0.10,
        source="bounded by the H100 idle dump [A]",
    )
    leakage_reference_temperature: Array = quantity(
        "degC",
        "temperature at which the leakage share holds",
        bounds=(0, 150),
        default=65,
        source="[A]",
    )
    leakage_temperature_coefficient: Array = quantity(
        "K-1", "relative growth of leakage per kelvin", bounds=(0, 0.1), default=0.020, source="[A]"
    )
    dynamic_power_share: Array = quantity(
        "1",
        "dynamic power at full clock and activity 1 as a share of TDP",
        bounds=(0, 2),
        default=0.85,
        source="[A]",
    )
    activity: Array = quantity(
        "1",
        "switching activity of the workload (1 = dense GEMM)",
        bounds=(0.01, 2),
        default=1,
        source="[A]",
    )
    minimum_voltage_fraction: Array = quantity(
        "1", "voltage floor as a share of full voltage", bounds=(0.1, 1), default=0.72, source="[A]"
    )
    voltage_slope: Array = quantity(
        "1",
        "relative voltage change per relative clock change",
        bounds=(0, 1),
        default=0.80,
        source="between two measured exponents [A]",
    )
    minimum_clock_fraction: Array = quantity(
        "1",
        "lowest clock of the governor as a share of full clock",
        bounds=(0.01, 1),
        default=0.20,
        source="[A]",
    )


@record
class Population:
    """How much the GPUs of one cluster differ from each other (standard deviations)."""

    resistance_spread: Array = quantity(
        "1",
        "deviation of the log of a part's thermal resistance",
        bounds=(0, 0.5),
        default=0.08,
        source="total anchored on Sinha et al. SC'22, split [A]",
    )
    leakage_spread: Array = quantity(
        "1", "deviation of the log of a part's leakage", bounds=(0, 1), default=0.20, source="[A]"
    )
    dynamic_power_spread: Array = quantity(
        "1",
        "relative deviation of a part's dynamic power",
        bounds=(0, 0.3),
        default=0.03,
        source="[A]",
    )
    inlet_temperature_spread: Array = quantity(
        "K",
        "deviation of the inlet temperature between GPUs",
        bounds=(0, 20),
        default=1.0,
        source="[A]",
    )
    flow_spread: Array = quantity(
        "1",
        "deviation of the log of a GPU's coolant flow",
        bounds=(0, 0.5),
        default=0.07,
        source="[A]",
    )
