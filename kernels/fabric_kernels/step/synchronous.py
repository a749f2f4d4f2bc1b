"""One synchronous training step: slowest compute, then every exchange."""

from fabric_kernels.calls.clean import data_part, expert_part, pipeline_part, tensor_part
from fabric_kernels.collective import Collective
from fabric_kernels.cooling import Cooling
from fabric_kernels.exchange import Exchange
from fabric_kernels.expert import Expert
from fabric_kernels.inputs import Gpu, Job
from fabric_kernels.jitter import Jitter
from fabric_kernels.loss import Loss
from fabric_kernels.pipeline import Pipeline
from fabric_kernels.step import Step
from fabric_kernels.step.parts import Communication, compute_of, step_of
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
    exposed = (
        exchange.allreduce_time
        + exchange.tensor_exchange_time
        + exchange.expert_exchange_time
        + exchange.pipeline_exchange_time
    )
    clean = (tensor_part(tensor), expert_part(expert), pipeline_part(pipeline))
    data = data_part(collective)
    communication = Communication(
        exposed,
        sum((c.transfer for c in clean), data.transfer),
        sum((c.latency for c in clean), data.latency),
        exchange.congestion_delay,
        jitter.jitter_stall,
        loss.loss_stall,
    )
    return step_of(job, gpu, workload, compute, communication)
