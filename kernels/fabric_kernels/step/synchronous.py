"""One synchronous training step: slowest compute, then every exchange."""

from fabric_kernels.collective import Collective
from fabric_kernels.cooling import Cooling
from fabric_kernels.exchange import Exchange
from fabric_kernels.exchange.parts import data_part, expert_part, pipeline_part, tensor_part
from fabric_kernels.expert import Expert
from fabric_kernels.inputs import Gpu, Job
from fabric_kernels.jitter import Jitter
from fabric_kernels.loss import Loss
from fabric_kernels.pipeline import Pipeline
from fabric_kernels.step import Step
from fabric_kernels.step.parts import compute_of, flop_utilisation
from fabric_kernels.tensor import Tensor
from fabric_kernels.workload import Workload


def synchronous(
    job: Job,
    gpu: Gpu,
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
    """A step in which nothing overlaps: all wait for the slowest GPU, then all exchange.

        compute_time = t0 (1 + kappa (1 - phi) / phi),  phi the slowest clock fraction
        bubble = bubble_share compute_time
        step_time = compute_time + bubble + data + tensor + expert + pipeline exchange

    The parts telescope in the fixed order compute, pipeline, bandwidth, latency, thermal,
    congestion, jitter, loss: each is what its effect adds to a step that has all before it, so
    they are at least 0 and sum to the step time (within rounding, and unless one of the times is
    given from outside). An upper bound of the joint law: the slowest GPU need not hold up the
    slowest exchange. A clock of 0 never ends its step: the time is infinite, not undefined.
    """
    compute = compute_of(job, workload, cooling.slowest_clock_fraction)
    communication = (
        exchange.allreduce_time
        + exchange.tensor_exchange_time
        + exchange.expert_exchange_time
        + exchange.pipeline_exchange_time
    )
    clean = (data_part(collective), tensor_part(tensor), expert_part(expert))
    stages = pipeline_part(pipeline)
    step_time = compute.slowest + compute.bubble + communication
    tokens_per_second = workload.tokens_per_step / step_time
    return Step(
        compute_time=compute.slowest,
        bubble=compute.bubble,
        exposed_communication_time=communication,
        step_time=step_time,
        step_time_compute=compute.full_clock,
        step_time_pipeline=compute.full_clock * compute.bubble_share,
        step_time_bandwidth=sum((c.transfer for c in clean), stages.transfer),
        step_time_latency=sum((c.latency for c in clean), stages.latency),
        step_time_thermal=compute.thermal,
        step_time_congestion=exchange.congestion_delay,
        step_time_jitter=jitter.jitter_stall,
        step_time_loss=loss.loss_stall,
        scaling_efficiency=compute.full_clock / step_time,
        model_flop_utilisation=flop_utilisation(job, gpu, workload, tokens_per_second),
        tokens_per_second=tokens_per_second,
    )
