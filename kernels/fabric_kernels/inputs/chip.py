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
    memory_temperature_limit: Array = quantity(
        "degC",
        "temperature of the memory stacks at which the clock governor slows down",
        bounds=(40, 150),
        default=95,
        source="A100, H100 driver output [M]; HBM3e and HBM4 without a figure, so as these [A]",
    )
    memory_own_resistance: Array = quantity(
        "K W-1",
        "rise of the memory over the medium per watt of its own",
        bounds=(0, 10),
        default=0.1,
        source="placeholder, no public figure [A]",
    )
    memory_cross_resistance: Array = quantity(
        "K W-1",
        "rise of the memory over the medium per watt of the GPU",
        bounds=(0, 10),
        default=0.02,
        source="placeholder: memory is not the limit of a nominal part at 45 degC supply [A]",
    )


@record
class OffCompute:
    """What one GPU draws in the parts of a step in which it does not compute."""

    wait_power: Array = quantity(
        "W", "power of a GPU that waits for the slowest or for its pipeline", bounds=(0, 1e4)
    )
    communication_power: Array = quantity(
        "W", "power of a GPU in exchange that compute does not hide", bounds=(0, 1e4)
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
    common_temperature_share: Array = quantity(
        "1",
        "share of the inlet temperature's variance that a group of GPUs has in common",
        bounds=(0, 1),
        default=0,
        source="all of it apart [A]",
    )
    common_flow_share: Array = quantity(
        "1",
        "share of the flow's variance that a group of GPUs has in common",
        bounds=(0, 1),
        default=0,
        source="all of it apart [A]",
    )
    common_group: Array = quantity(
        "1",
        "GPUs of a group with one manifold, or one cold aisle",
        bounds=(1, 2**20),
        default=72,
        source="one NVL72 rack [A]",
    )
    screening_limit: Array = quantity(
        "1",
        "parts are screened so that no deviation exceeds this many standard deviations",
        bounds=(1, 10),
        default=10,
        source="no screening [A]",
    )
    bad_part_probability: Array = quantity(
        "1",
        "probability that a GPU is a bad part, slower than its deviations explain",
        bounds=(0, 0.1),
        default=0,
        source="burnt-in fleet; 1e-4 without [A]",
    )
    bad_part_least_slowdown: Array = quantity(
        "1",
        "clock of the median over that of the best bad part",
        bounds=(1, 10),
        default=1.1,
        source="[A]",
    )
    bad_part_greatest_slowdown: Array = quantity(
        "1",
        "clock of the median over that of the worst bad part",
        bounds=(1, 10),
        default=1.5,
        source="outliers of Sinha et al. SC'22 [M]",
    )
