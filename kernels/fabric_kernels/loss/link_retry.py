"""Link retry: the port repeats a broken frame, and nothing is lost end to end."""

from typing import Annotated

from fabric_kernels.collective import Collective
from fabric_kernels.inputs import LinkRetry, LossProcess, ScaleOut
from fabric_kernels.loss import Loss
from fabric_kernels.loss.rings import losses, rings_of, stall
from fabric_kernels.path import SECONDS_PER_METRE
from fabric_kernels.uniform import Uniform
from fabric_kernels.workload import Workload


def link_retry(
    workload: Workload,
    collective: Collective,
    scale_out: ScaleOut,
    loss_process: LossProcess,
    retry: LinkRetry,
    lost: Annotated[Uniform, "data.lost"],
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
    rings = rings_of(workload, collective, scale_out)
    cable = 2 * scale_out.cable_length * SECONDS_PER_METRE
    frames = 2 * scale_out.packet_payload / scale_out.link_rate
    broken = losses(rings.messages * rings.packets, loss_process)
    return Loss(loss_stall=stall(cable + retry.link_turnaround + frames, broken, rings, lost))
