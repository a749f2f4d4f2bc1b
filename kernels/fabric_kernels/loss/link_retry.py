"""Link retry: the port repeats a broken frame, and nothing is lost end to end."""

from typing import Annotated

import jax.numpy as jnp
from jax import Array

from fabric_kernels.collective import Collective
from fabric_kernels.expert import Expert
from fabric_kernels.inputs import LinkRetry, LossProcess, ScaleOut
from fabric_kernels.loss import Loss
from fabric_kernels.loss.answer import Uniforms, stalled
from fabric_kernels.loss.rings import losses, rings_of, stall
from fabric_kernels.path import SECONDS_PER_METRE
from fabric_kernels.pattern import Traffic
from fabric_kernels.pipeline import Pipeline
from fabric_kernels.uniform import Uniform


def link_retry(
    collective: Collective,
    expert: Expert,
    pipeline: Pipeline,
    scale_out: ScaleOut,
    loss_process: LossProcess,
    retry: LinkRetry,
    lost: Annotated[Uniform, "data.lost"],
    expert_lost: Annotated[Uniform, "expert.lost"],
    pipeline_lost: Annotated[Uniform, "pipeline.lost"],
) -> Loss:
    """Stall of the exchange by frames that a link repeats.

        loss_stall = D C(n)
        D = 2 cable_length x 4.9 ns/m + link_turnaround + 2 packet_payload / link_rate

    Each event holds up its link for one loop and the frame; InfiniBand, Ultra Ethernet and some
    switches work so. n is the largest Poisson count over all rings of all concurrent groups, C
    the mean length of the chain of n stalls on a ring. packet_loss_rate is then the chance that a
    frame is broken anywhere on its way. True while that chance times the frames in one loop is
    far below 1, and for errors on the wire: no link retry repairs a packet that a full queue
    dropped.
    """
    cable = 2 * scale_out.cable_length * SECONDS_PER_METRE
    frames = 2 * scale_out.packet_payload / scale_out.link_rate

    def law(traffic: Traffic, drawn: Uniforms) -> Array:
        total = jnp.zeros_like(traffic.groups)
        for rings in rings_of(traffic, scale_out):
            broken = losses(rings.messages * rings.packets, loss_process)
            total = total + stall(cable + retry.link_turnaround + frames, broken, rings, drawn[0])
        return total

    return stalled(law, collective, expert, pipeline, ((lost,), (expert_lost,), (pipeline_lost,)))
