"""One training step whose exchanges may hide behind compute."""

from itertools import pairwise
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from fabric_kernels.collective import Collective
from fabric_kernels.cooling import Cooling
from fabric_kernels.exchange import Exchange
from fabric_kernels.exchange.parts import (
    Clean,
    data_part,
    expert_part,
    pipeline_part,
    tensor_part,
)
from fabric_kernels.expert import Expert
from fabric_kernels.inputs import Gpu, Job, Overlap
from fabric_kernels.jitter import Jitter
from fabric_kernels.loss import Loss
from fabric_kernels.pipeline import Pipeline
from fabric_kernels.step import Step
from fabric_kernels.step.parts import compute_of, flop_utilisation
from fabric_kernels.tensor import Tensor
from fabric_kernels.workload import Workload


class _Hidden(NamedTuple):
    """One exchange that may hide: its effects in order, its window (s) and its buckets."""

    clean: Clean
    congestion: Array
    jitter: Array
    loss: Array
    window: Array
    buckets: Array

    def exposed(self) -> list[Array]:
        """What compute does not hide with the first 1, 2 ... 5 effects on."""
        total, exposed = jnp.zeros_like(self.window), []
        effects = (self.clean.transfer, self.clean.latency, self.congestion, self.jitter, self.loss)
        for effect in effects:
            total = total + effect
            exposed.append(jnp.maximum(total - self.window, total / self.buckets))
        return exposed


def overlapped(
    job: Job,
    gpu: Gpu,
    overlap: Overlap,
    workload: Workload,
    cooling: Cooling,
    collective: Collective,
    tensor: Tensor,
    expert: Expert,
    pipeline: Pipeline,
    exchange: Exchange,
    jitter: Jitter,
    loss: Loss,
) -> Step:
    """A step whose exchanges hide behind compute as far as their windows go.

        exposed = max(time - window t0, time / buckets)      for data, expert and pipeline
        step_time = compute_time + bubble + tensor + sum of exposed

    The last of the buckets cannot hide: its gradients are ready when compute ends. Windows are
    shares of compute at full clock, disjoint, so their sum is at most 1 (more: NaN). Tensor
    exchanges never hide. Parts telescope in the order of `synchronous`, each the growth of what is
    exposed when its effect joins; they depend on that order. Compute is that of the slowest GPU.
    """
    compute = compute_of(job, workload, cooling.slowest_clock_fraction)
    windows = (
        overlap.overlap_window_data,
        overlap.overlap_window_expert,
        overlap.overlap_window_pipeline,
    )
    fits = windows[0] + windows[1] + windows[2] <= 1.0 + 1e-6
    windows = [jnp.where(fits, w, jnp.nan) * compute.full_clock for w in windows]
    hidden = _exchanges(
        overlap, (data_part(collective), expert_part(expert), pipeline_part(pipeline)),
        exchange, jitter, loss, windows,
    )  # fmt: skip
    layer = tensor_part(tensor)
    at = [e.exposed() for e in hidden]
    sums = [at[0][k] + at[1][k] + at[2][k] for k in range(5)]
    # a difference of totals may round below 0
    grown = [jnp.maximum(b - a, 0.0) for a, b in pairwise(sums)]
    communication = sums[-1] + layer.time
    step_time = compute.slowest + compute.bubble + communication
    tokens_per_second = workload.tokens_per_step / step_time
    return Step(
        compute_time=compute.slowest,
        bubble=compute.bubble,
        exposed_communication_time=communication,
        step_time=step_time,
        step_time_compute=compute.full_clock,
        step_time_pipeline=compute.full_clock * compute.bubble_share,
        step_time_bandwidth=sums[0] + layer.transfer,
        step_time_latency=grown[0] + layer.latency,
        step_time_thermal=compute.thermal,
        step_time_congestion=grown[1],
        step_time_jitter=grown[2],
        step_time_loss=grown[3],
        scaling_efficiency=compute.full_clock / step_time,
        model_flop_utilisation=flop_utilisation(job, gpu, workload, tokens_per_second),
        tokens_per_second=tokens_per_second,
    )


def _exchanges(
    overlap: Overlap,
    clean: tuple[Clean, Clean, Clean],
    exchange: Exchange,
    jitter: Jitter,
    loss: Loss,
    windows: list[Array],
) -> list[_Hidden]:
    congestion = (
        exchange.data_congestion_delay,
        exchange.expert_congestion_delay,
        exchange.pipeline_congestion_delay,
    )
    noise = (jitter.data_jitter_stall, jitter.expert_jitter_stall, jitter.pipeline_jitter_stall)
    lost = (loss.data_loss_stall, loss.expert_loss_stall, loss.pipeline_loss_stall)
    buckets = (overlap.buckets_data, overlap.buckets_expert, overlap.buckets_pipeline)
    return [
        _Hidden(*parts)
        for parts in zip(clean, congestion, noise, lost, windows, buckets, strict=True)
    ]


def overlapped_refusal(overlap: Overlap) -> str | None:
    """Why these windows cannot be; None where they can."""
    windows = [
        float(overlap.overlap_window_data),
        float(overlap.overlap_window_expert),
        float(overlap.overlap_window_pipeline),
    ]
    if sum(windows) <= 1 + 1e-6:
        return None
    return (
        f"overlap windows sum to {sum(windows):g} of full-clock compute: they are disjoint, at "
        "most 1 is allowed; lower overlap_window_data, _expert or _pipeline."
    )
