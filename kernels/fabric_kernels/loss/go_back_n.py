"""Go-back-N: the network adapter sends again everything after a lost packet."""

from typing import Annotated

from fabric_kernels.collective import Collective
from fabric_kernels.errors import Errors
from fabric_kernels.expert import Expert
from fabric_kernels.inputs import Retransmission, ScaleOut
from fabric_kernels.inputs.loss import LossBursts, Transport
from fabric_kernels.loss import Loss
from fabric_kernels.loss.laws.schemes import go_back_n_repair
from fabric_kernels.loss.recovery import Exchanges, flow_over, recovered
from fabric_kernels.path import Path
from fabric_kernels.pipeline import Pipeline
from fabric_kernels.uniform import Uniform


def go_back_n(
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
    """Stall of the exchanges by losses, the receiver reporting each as often as it happens.

        told:   D (R + 2) packet times for a lost packet that others follow
        timed:  the timer for a lost last packet of a message

    Told and timed losses are two classes of Poisson counts, each with a chain on the critical path
    of its pattern (`laws.exchange`, `laws.critical`); the sum of their largest is an upper bound.
    Derivation: go-back-N as a sum of geometric counts, mean W p / (1 - p) per packet as in
    Bertsekas and Gallager, Data Networks, 2.4.2; checked packet by packet
    (`event_level.go_back_n_run`). Bursts hit go-back-N once each. For windows of R + 2 and more.
    """
    flow = flow_over(path, scale_out, transport, retransmission.retransmission_timeout)
    uniforms = (
        (lost, timed_out),
        (expert_lost, expert_timed_out),
        (pipeline_lost, pipeline_timed_out),
    )
    exchanges = Exchanges(collective, expert, pipeline, uniforms, chain)
    return recovered(go_back_n_repair, flow, errors, bursts, transport, exchanges)
