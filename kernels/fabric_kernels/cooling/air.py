"""Air cooling at a rack's airflow ceiling."""

from typing import Annotated

import jax.numpy as jnp
from jax import Array

from fabric_kernels.cooling import Cooling
from fabric_kernels.cooling.answer import answer
from fabric_kernels.cooling.chip import Medium
from fabric_kernels.cooling.deviation import Sensitivity
from fabric_kernels.inputs import AirRack, Gpu, Job, Population, Rack
from fabric_kernels.uniform import Uniform


def air(
    job: Job,
    gpu: Gpu,
    air: AirRack,
    rack: Rack,
    population: Population,
    slowest: Annotated[Uniform, "slowest"],
    bad_part: Annotated[Uniform, "bad_part"],
) -> Cooling:
    """Heatsinks that share the largest airflow of a rack; a large `slowest` gives a slow GPU.

        C = c V_rack / n,   R = R_heatsink (n / n_nominal)^m + kappa / C
        T_b = supply + kappa P_other / C

    Enthalpy balance of the rack's air; a dense rack throttles instead of being forbidden. The
    airflow ceiling, the preheat share kappa and the exponent m are assumptions. A GPU's own flow
    acts on C and, as the share n of it would, on its heatsink.
    """
    return answer(job, gpu, population, slowest, bad_part, lambda r, f: heatsink(air, rack, r, f))


def heatsink(
    air: AirRack, rack: Rack, resistance: Array | float, flow: Array | float
) -> tuple[Medium, Sensitivity]:
    """Medium of a heatsink with e^resistance and e^flow times the median's resistance and flow.

    The deviation of resistance does not act on what the air of the rack has been warmed by.
    """
    exponent = air.heatsink_density_exponent
    density = jnp.log(rack.gpus_per_rack / air.nominal_gpus_per_rack)
    sink = air.heatsink_resistance * jnp.exp(exponent * density)
    capacity = air.air_heat_capacity * air.rack_airflow / rack.gpus_per_rack
    warmed = air.preheat_share / capacity * jnp.exp(-flow)
    solid = sink * jnp.exp(resistance - exponent * flow)
    before = warmed * rack.other_power
    medium = Medium(air.air_supply_temperature + before, solid + warmed)
    return medium, Sensitivity(solid, -exponent * solid - warmed, -before)
