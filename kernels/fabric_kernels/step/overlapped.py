"""One training step whose exchanges may hide behind compute."""

from itertools import pairwise
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from fabric_kernels.calls.clean import (
    Clean,
    data_part,
    expert_part,
    pipeline_part,
    tensor_part,
)
from fabric_kernels.collective import Collective
from fabric_kernels.cooling import Cooling
from fabric_kernels.exchange import Exchange
from fabric_kernels.expert import Expert
from fabric_kernels.inputs import Gpu, Job, Overlap
from fabric_kernels.jitter import Jitter
from fabric_kernels.loss import Loss
from fabric_kernels.pipeline import Pipeline
from fabric_kernels.step import Step
from fabric_kernels.step.parts import Communication, compute_of, step_of
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
    clean = (data_part(collective), expert_part(expert), pipeline_part(pipeline))
    effects = list(zip(_congestion(exchange), _jitter(jitter), _loss(loss), strict=True))
    windows = _windows(overlap, compute.full_clock)
    hidden = [
        _Hidden(part, *effect, *window)
        for part, effect, window in zip(clean, effects, windows, strict=True)
    ]
    at = [e.exposed() for e in hidden]
    sums = [at[0][k] + at[1][k] + at[2][k] for k in range(5)]
    # a difference of totals may round below 0
    grown = [jnp.maximum(b - a, 0.0) for a, b in pairwise(sums)]
    layer = tensor_part(tensor)
    communication = Communication(
        sums[-1] + layer.time,
        sums[0] + layer.transfer,
        grown[0] + layer.latency,
        *grown[1:],
    )
    return step_of(job, gpu, workload, compute, communication)


def _windows(overlap: Overlap, full_clock: Array) -> list[tuple[Array, Array]]:
    """Window (s) and buckets of the data, expert and pipeline exchange."""
    shares = (
        overlap.overlap_window_data,
        overlap.overlap_window_expert,
        overlap.overlap_window_pipeline,
    )
    fits = shares[0] + shares[1] + shares[2] <= 1.0 + 1e-6
    buckets = (overlap.buckets_data, overlap.buckets_expert, overlap.buckets_pipeline)
    return [
        (jnp.where(fits, share, jnp.nan) * full_clock, parts)
        for share, parts in zip(shares, buckets, strict=True)
    ]


def _congestion(exchange: Exchange) -> tuple[Array, Array, Array]:
    return (
        exchange.data_congestion_delay,
        exchange.expert_congestion_delay,
        exchange.pipeline_congestion_delay,
    )


def _jitter(jitter: Jitter) -> tuple[Array, Array, Array]:
    return jitter.data_jitter_stall, jitter.expert_jitter_stall, jitter.pipeline_jitter_stall


def _loss(loss: Loss) -> tuple[Array, Array, Array]:
    return loss.data_loss_stall, loss.expert_loss_stall, loss.pipeline_loss_stall


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
