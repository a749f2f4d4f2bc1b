"""Transient: how fast does it get hot when something stops or changes?"""

from jax import Array

from fabric_kernels.quantity import quantity, record

HORIZON = 3600.0
"""The longest time (s) that is told apart: later is reported as this."""

OUTCOMES = ("rides_through", "throttles", "trips")
"""What a GPU does while a reserve pump takes over."""


@record
class Transient:
    """How fast does it get hot when something stops or changes?"""

    time_to_throttle: Array = quantity(
        "s", "from lost flow to the governor's temperature limit, at most 1 h", bounds=(0, HORIZON)
    )
    time_to_shutdown: Array = quantity(
        "s", "from lost flow to the shutdown temperature, at most 1 h", bounds=(0, HORIZON)
    )
    pump_failure_outcome: Array = quantity(
        "1", "what a GPU does while a reserve pump takes over", bounds=(0, 2), flags=OUTCOMES
    )
    flow_unavailability: Array = quantity(
        "1", "share of time in which more pumps are out than the reserve replaces", bounds=(0, 1)
    )
    loop_ride_through_time: Array = quantity(
        "s", "from lost heat rejection, pumps running, to the loop's margin", bounds=(0, 1e9)
    )
    cycle_mean_temperature: Array = quantity(
        "degC", "mean junction temperature of the power cycle", bounds=(-20, 1e4)
    )
    cycle_temperature_swing: Array = quantity(
        "K", "hottest less coldest junction temperature of the power cycle", bounds=(0, 1e4)
    )
