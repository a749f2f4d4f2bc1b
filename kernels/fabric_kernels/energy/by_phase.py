"""Energy of a step, phase by phase."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from fabric_kernels.cooling import Cooling
from fabric_kernels.energy import Energy
from fabric_kernels.facility import Facility
from fabric_kernels.inputs import Job, OffCompute, Rack
from fabric_kernels.optics import Optics
from fabric_kernels.step import Step

_INSTANT = 1e-9  # s: a step is not shorter
_NOTHING = 1e-3  # W: a cluster that draws less draws nothing


class Phases(NamedTuple):
    """Times (s) of one step and powers (W) of one GPU in them."""

    slowest: Array  # compute of the slowest GPU
    mean: Array  # mean compute of the GPUs
    bubble: Array
    exposed: Array
    compute_energy: Array  # J, mean over the GPUs of power times compute time
    wait_power: Array
    communication_power: Array


def by_phase(
    job: Job,
    step: Step,
    cooling: Cooling,
    rack: Rack,
    off_compute: OffCompute,
    optics: Optics,
    facility: Facility,
) -> Energy:
    """Energy of a step that bills every second of every GPU once.

        E = PUE [N E(P_i t_i) + N P_wait (t_slowest - E t_i + bubble) + N P_comm exposed
                 + (N P_other + P_network) step_time]
        t_i = t0 (1 - kappa + kappa / phi_i)

    Means are over the GPUs, not the median's. Exchange that compute hides is inside P_i.
    `power_swing` is what all GPUs do together at the end of compute, at the rate of steps: grids
    mind 0.1 to 20 Hz (Choukse et al., arXiv:2508.14318) [M].
    """
    share, full = job.compute_bound_share, step.step_time_compute
    fixed = 1.0 - share
    stretched = share * cooling.mean_slowness
    phases = Phases(
        slowest=step.compute_time,
        mean=full * (fixed + stretched),
        bubble=step.bubble,
        exposed=step.exposed_communication_time,
        compute_energy=full
        * (fixed * cooling.mean_gpu_power + stretched * cooling.mean_compute_power),
        wait_power=off_compute.wait_power,
        communication_power=off_compute.communication_power,
    )
    rest = job.gpus * rack.other_power + optics.network_power
    of_it = job.gpus * energy_of_gpu(phases) + rest * step.step_time
    energy = facility.pue * of_it
    power = energy / jnp.maximum(step.step_time, _INSTANT)
    return Energy(
        energy_per_step=energy,
        tokens_per_joule=step.tokens_per_second / jnp.maximum(power, _NOTHING),
        mean_facility_power=power,
        energy_without_fans=energy * (facility.tue / facility.pue),
        power_swing=power_swing(job.gpus, cooling.mean_gpu_power, off_compute.communication_power),
    )


def energy_of_gpu(phases: Phases) -> Array:
    """Mean energy (J) of one GPU in a step."""
    # the slowest of few GPUs may be drawn faster than their mean: then none waits
    waiting = jnp.maximum(phases.slowest - phases.mean, 0.0) + phases.bubble
    exchanging = phases.communication_power * phases.exposed
    return phases.compute_energy + phases.wait_power * waiting + exchanging


def power_swing(gpus: Array, compute_power: Array, communication_power: Array) -> Array:
    """Change of power (W) when all GPUs leave compute for exchange together."""
    return gpus * (compute_power - communication_power)
