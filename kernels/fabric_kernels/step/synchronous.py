"""One synchronous training step: slowest compute, then the exchange."""

import jax.numpy as jnp
from jax import Array

from fabric_kernels.collective import Collective
from fabric_kernels.cooling import Cooling
from fabric_kernels.exchange import DataExchange
from fabric_kernels.inputs import Gpu, Job
from fabric_kernels.jitter import Jitter
from fabric_kernels.loss import Loss
from fabric_kernels.step import Step
from fabric_kernels.workload import Workload


def synchronous(
    job: Job,
    gpu: Gpu,
    workload: Workload,
    cooling: Cooling,
    collective: Collective,
    exchange: DataExchange,
    jitter: Jitter,
    loss: Loss,
) -> Step:
    """A step in which nothing overlaps: all wait for the slowest GPU, then all exchange.

        compute_time = t0 (1 + kappa (1 - phi) / phi),  phi the slowest clock fraction
        bubble = bubble_share compute_time
        step_time = compute_time + bubble + allreduce_time

    The parts telescope in the fixed order compute, pipeline, bandwidth, latency, thermal,
    congestion, jitter, loss: each is what its effect adds to a step that has all before it, so
    they are at least 0 and sum to the step time (within rounding, and unless one of the times is
    given from outside). An upper bound of the joint law: the slowest GPU need not hold up the
    slowest exchange. A clock of 0 never ends its step: the time is infinite, not undefined.
    """
    full_clock, share = workload.full_clock_compute_time, workload.bubble_share
    waiting = full_clock * _slowdown(job.compute_bound_share, cooling.slowest_clock_fraction)
    compute_time = full_clock + waiting
    # no bubble, even where the compute never ends
    bubble = jnp.where(share > 0, share * compute_time, 0.0)
    step_time = compute_time + bubble + exchange.allreduce_time
    tokens_per_second = workload.tokens_per_step / step_time
    return Step(
        compute_time=compute_time,
        bubble=bubble,
        exposed_communication_time=exchange.allreduce_time,
        step_time=step_time,
        step_time_compute=full_clock,
        step_time_pipeline=full_clock * share,
        step_time_bandwidth=collective.nvlink_transfer_time + collective.fabric_transfer_time,
        step_time_latency=collective.exchange_latency,
        # not a difference of totals, which rounds below 0
        step_time_thermal=waiting * (1 + share),
        step_time_congestion=exchange.congestion_delay,
        step_time_jitter=jitter.jitter_stall,
        step_time_loss=loss.loss_stall,
        scaling_efficiency=full_clock / step_time,
        model_flop_utilisation=6 * job.parameters / (job.gpus * gpu.peak_flops) * tokens_per_second,
        tokens_per_second=tokens_per_second,
    )


def _slowdown(compute_bound_share: Array, clock_fraction: Array) -> Array:
    """Relative growth of compute time at a lower clock: kappa (1 - phi) / phi."""
    stopped = clock_fraction <= 0
    running = jnp.where(stopped, 1.0, clock_fraction)
    return jnp.where(stopped, jnp.inf, compute_bound_share * (1 - running) / running)
