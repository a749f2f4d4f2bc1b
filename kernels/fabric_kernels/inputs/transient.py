"""What stores heat, and what keeps coolant moving when a pump fails."""

from jax import Array

from fabric_kernels.quantity import quantity, record


@record
class ThermalMass:
    """Heat capacities of a GPU with its plate, and of its coolant loop."""

    die_heat_capacity: Array = quantity(
        "J K-1", "GPU die and lid", bounds=(1, 1e4), default=50, source="[A]"
    )
    plate_heat_capacity: Array = quantity(
        "J K-1",
        "cold plate or heatsink with what it holds",
        bounds=(1, 1e5),
        default=500,
        source="200-800, set to shutdowns within 20 s of lost flow [S]",
    )
    parasitic_conductance: Array = quantity(
        "W K-1",
        "heat that leaves the plate without flow, per kelvin over the medium",
        bounds=(0, 100),
        default=0.5,
        source="[A]",
    )
    loop_heat_capacity: Array = quantity(
        "J K-1",
        "coolant and metal of one rack's loop",
        bounds=(1e3, 1e9),
        default=300555.6192,
        source="60 L of PG25 and 60 kJ/K of metal, placeholder [A]",
    )
    loop_temperature_margin: Array = quantity(
        "K",
        "rise of the loop that is allowed when its heat is not rejected",
        bounds=(0, 60),
        default=10,
        source="[A]",
    )


@record
class Pumps:
    """Pumps of a coolant distribution unit with one in reserve."""

    pumps_needed: Array = quantity(
        "1", "pumps that carry the full flow", bounds=(1, 64), default=2, source="[A]", integer=True
    )
    pump_unavailability: Array = quantity(
        "1",
        "share of time that a pump is out of order",
        bounds=(0, 0.5),
        default=1e-3,
        source="[A]",
    )
    pump_switchover_time: Array = quantity(
        "s",
        "time without flow until the reserve carries it",
        bounds=(0, 3600),
        default=3,
        source="[A]",
    )


@record
class PowerCycle:
    """The periodic power of a GPU that computes and exchanges in turn."""

    cycle_period: Array = quantity(
        "s", "compute and exchange together", bounds=(1e-4, 1e4), default=1, source="[A]"
    )
    cycle_compute_share: Array = quantity(
        "1", "share of compute in the cycle", bounds=(0, 1), default=0.7, source="[A]"
    )
