"""Go-back-N by a receiver that reports a lost packet once."""

from typing import Annotated

from fabric_kernels.collective import Collective
from fabric_kernels.errors import Errors
from fabric_kernels.expert import Expert
from fabric_kernels.inputs import Retransmission, ScaleOut
from fabric_kernels.inputs.loss import LossBursts, Transport
from fabric_kernels.loss import Loss
from fabric_kernels.loss.laws.schemes import go_back_n_single_nak_repair
from fabric_kernels.loss.recovery import Exchanges, flow_over, recovered
from fabric_kernels.path import Path
from fabric_kernels.pipeline import Pipeline
from fabric_kernels.uniform import Uniform


def go_back_n_single_nak(
    path: Path,
    collective: Collective,
    expert: Expert,
    pipeline: Pipeline,
    scale_out: ScaleOut,
    errors: Errors,
    bursts: LossBursts,
    transport: Transport,
    retransmission: Retransmission,
    lost: Annotated[Uniform, "data.lost"],
    timed_out: Annotated[Uniform, "data.timed_out"],
    expert_lost: Annotated[Uniform, "expert.lost"],
    expert_timed_out: Annotated[Uniform, "expert.timed_out"],
    pipeline_lost: Annotated[Uniform, "pipeline.lost"],
    pipeline_timed_out: Annotated[Uniform, "pipeline.timed_out"],
    chain: Annotated[Uniform, "chain"],
) -> Loss:
    """Stall of the exchanges by losses, each packet being reported once.

        told:   R + 2 packet times,   timed: retransmission_timeout
        timers: every lost last packet of a message, and M p^2 / (1 - p) losses of a resent packet

    A receiver that stays silent until the packet comes leaves a second loss of it to the timer,
    which dominates once p x timer > round trip: at p = 1e-2 and a timer of 20,000 packet times a
    message of 8,790 packets takes 38,000 packet times, not 20,500. Both classes have a count and a
    chain of their own (`loss.laws`); their sum bounds the slowest group from above. True while
    stalls of one message do not share a repair, p (R + 2) << 1, for the window flagged as open.
    Checked packet by packet (`event_level.go_back_n_run`).
    """
    flow = flow_over(path, scale_out, transport, retransmission.retransmission_timeout)
    uniforms = (
        (lost, timed_out),
        (expert_lost, expert_timed_out),
        (pipeline_lost, pipeline_timed_out),
    )
    exchanges = Exchanges(collective, expert, pipeline, uniforms, chain)
    return recovered(go_back_n_single_nak_repair, flow, errors, bursts, transport, exchanges)
