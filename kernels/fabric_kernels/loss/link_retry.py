"""Link retry: the port repeats a broken frame, and nothing is lost end to end."""

from typing import Annotated

from fabric_kernels.collective import Collective
from fabric_kernels.errors import Errors
from fabric_kernels.expert import Expert
from fabric_kernels.inputs import LinkRetry, ScaleOut
from fabric_kernels.inputs.loss import LossBursts, Transport
from fabric_kernels.loss import Loss
from fabric_kernels.loss.laws.schemes import link_retry_repair
from fabric_kernels.loss.recovery import Exchanges, flow_over, no_timer, recovered
from fabric_kernels.path import SECONDS_PER_METRE, Path
from fabric_kernels.pipeline import Pipeline
from fabric_kernels.uniform import Uniform


def link_retry(
    path: Path,
    collective: Collective,
    expert: Expert,
    pipeline: Pipeline,
    scale_out: ScaleOut,
    errors: Errors,
    bursts: LossBursts,
    transport: Transport,
    retry: LinkRetry,
    lost: Annotated[Uniform, "data.lost"],
    expert_lost: Annotated[Uniform, "expert.lost"],
    pipeline_lost: Annotated[Uniform, "pipeline.lost"],
    chain: Annotated[Uniform, "chain"],
) -> Loss:
    """Stall of the exchanges by frames that a link repeats.

        told: 2 cable_length x 4.9 ns/m + link_turnaround + 2 packet_payload / link_rate;  no timer

    Each event holds up its link for one loop and the frame; InfiniBand, Ultra Ethernet and some
    switches work so. The loss rate of a path is then the chance that a frame is broken anywhere on
    it. True while that chance times the frames in one loop is far below 1, and for errors on the
    wire: no link retry repairs a packet that a full queue dropped.
    """
    cable = 2 * scale_out.cable_length * SECONDS_PER_METRE
    flow = flow_over(path, scale_out, transport, no_timer(path.hop_latency))
    # a frame is repeated on its link, at the rate of its line, whatever the share of the path
    flow = flow._replace(
        round_trip=cable + retry.link_turnaround,
        packet_time=scale_out.packet_payload / scale_out.link_rate,
    )
    uniforms = (
        (lost, lost),
        (expert_lost, expert_lost),
        (pipeline_lost, pipeline_lost),
    )
    exchanges = Exchanges(collective, expert, pipeline, uniforms, chain)
    return recovered(link_retry_repair, flow, errors, bursts, transport, exchanges)
