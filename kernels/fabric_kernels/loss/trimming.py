"""Trimming: a full queue forwards headers, and payloads are asked for again."""

from typing import Annotated

from fabric_kernels.collective import Collective
from fabric_kernels.errors import Errors
from fabric_kernels.expert import Expert
from fabric_kernels.inputs import ScaleOut
from fabric_kernels.inputs.loss import LossBursts, Transport
from fabric_kernels.loss import Loss
from fabric_kernels.loss.laws.schemes import trimming_repair
from fabric_kernels.loss.recovery import Exchanges, flow_over, no_timer, recovered
from fabric_kernels.path import Path
from fabric_kernels.pipeline import Pipeline
from fabric_kernels.uniform import Uniform


def trimming(
    path: Path,
    collective: Collective,
    expert: Expert,
    pipeline: Pipeline,
    scale_out: ScaleOut,
    errors: Errors,
    bursts: LossBursts,
    transport: Transport,
    lost: Annotated[Uniform, "data.lost"],
    expert_lost: Annotated[Uniform, "expert.lost"],
    pipeline_lost: Annotated[Uniform, "pipeline.lost"],
    chain: Annotated[Uniform, "chain"],
) -> Loss:
    """Stall of the exchanges by packets that full queues trim.

        told: R + lost payload / rate;  no timer

    Handley et al., SIGCOMM'17 (NDP); optional in Ultra Ethernet 1.0. The receiver knows of every
    loss at once, so that a drop costs about a round trip, also at the end of a message. True for
    packets that queues drop; a packet that the wire destroys leaves no header, and waits as in
    `selective_repeat`.
    """
    flow = flow_over(path, scale_out, transport, no_timer(path.hop_latency))
    uniforms = (
        (lost, lost),
        (expert_lost, expert_lost),
        (pipeline_lost, pipeline_lost),
    )
    exchanges = Exchanges(collective, expert, pipeline, uniforms, chain)
    return recovered(trimming_repair, flow, errors, bursts, transport, exchanges)
