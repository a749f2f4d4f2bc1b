"""What every step has, whether or not its exchanges hide."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from fabric_kernels.inputs import Gpu, Job
from fabric_kernels.step import Step
from fabric_kernels.workload import Workload


class Compute(NamedTuple):
    """The compute of a step (s)."""

    full_clock: Array
    waiting: Array  # what the slowest GPU adds
    bubble_share: Array

    @property
    def slowest(self) -> Array:
        """Compute of the slowest GPU."""
        return self.full_clock + self.waiting

    @property
    def bubble(self) -> Array:
        """Pipeline bubble of the slowest; none, even where the compute never ends, without one."""
        return jnp.where(self.bubble_share > 0, self.bubble_share * self.slowest, 0.0)

    @property
    def thermal(self) -> Array:
        """What the slowest GPU adds to compute and bubble."""
        # not a difference of totals, which rounds below 0
        return self.waiting * (1 + self.bubble_share)


def compute_of(job: Job, workload: Workload, slowest_clock_fraction: Array) -> Compute:
    """t0 and what the slowest clock phi adds: t0 kappa (1 - phi) / phi."""
    full_clock = workload.full_clock_compute_time
    waiting = full_clock * _slowdown(job.compute_bound_share, slowest_clock_fraction)
    return Compute(full_clock, waiting, workload.bubble_share)


def _slowdown(compute_bound_share: Array, clock_fraction: Array) -> Array:
    """Relative growth of compute time at a lower clock: kappa (1 - phi) / phi."""
    stopped = clock_fraction <= 0
    running = jnp.where(stopped, 1.0, clock_fraction)
    return jnp.where(stopped, jnp.inf, compute_bound_share * (1 - running) / running)


class Communication(NamedTuple):
    """What compute does not hide, and what each effect adds to it, in their order (s)."""

    exposed: Array
    bandwidth: Array
    latency: Array
    congestion: Array
    jitter: Array
    loss: Array


def step_of(
    job: Job, gpu: Gpu, workload: Workload, compute: Compute, communication: Communication
) -> Step:
    """The step of this compute and communication.

    model_flop_utilisation = 6 active_parameters tokens / (gpus peak_flops step_time)
    """
    step_time = compute.slowest + compute.bubble + communication.exposed
    tokens_per_second = workload.tokens_per_step / step_time
    per_token = 6 * workload.active_parameters / (job.gpus * gpu.peak_flops)
    return Step(
        compute_time=compute.slowest,
        bubble=compute.bubble,
        exposed_communication_time=communication.exposed,
        step_time=step_time,
        step_time_compute=compute.full_clock,
        step_time_pipeline=compute.full_clock * compute.bubble_share,
        step_time_bandwidth=communication.bandwidth,
        step_time_latency=communication.latency,
        step_time_thermal=compute.thermal,
        step_time_congestion=communication.congestion,
        step_time_jitter=communication.jitter,
        step_time_loss=communication.loss,
        scaling_efficiency=compute.full_clock / step_time,
        model_flop_utilisation=per_token * tokens_per_second,
        tokens_per_second=tokens_per_second,
    )
