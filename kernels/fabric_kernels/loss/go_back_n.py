"""Go-back-N: the network adapter sends again everything after a lost packet."""

from typing import Annotated

import jax.numpy as jnp
from jax import Array

from fabric_kernels.collective import Collective
from fabric_kernels.expert import Expert
from fabric_kernels.inputs import LossProcess, Retransmission, ScaleOut
from fabric_kernels.loss import Loss
from fabric_kernels.loss.answer import Uniforms, stalled
from fabric_kernels.loss.rings import losses, rings_of, stall
from fabric_kernels.path import Path
from fabric_kernels.pattern import Traffic
from fabric_kernels.pipeline import Pipeline
from fabric_kernels.uniform import Uniform


def go_back_n(
    path: Path,
    collective: Collective,
    expert: Expert,
    pipeline: Pipeline,
    scale_out: ScaleOut,
    loss_process: LossProcess,
    retransmission: Retransmission,
    lost: Annotated[Uniform, "data.lost"],
    timed_out: Annotated[Uniform, "data.timed_out"],
    expert_lost: Annotated[Uniform, "expert.lost"],
    expert_timed_out: Annotated[Uniform, "expert.timed_out"],
    pipeline_lost: Annotated[Uniform, "pipeline.lost"],
    pipeline_timed_out: Annotated[Uniform, "pipeline.timed_out"],
) -> Loss:
    """Stall of the exchange by isolated losses, the receiver reporting each at once.

        loss_stall = D_fast C(n_fast) + D_timer C(n_timer)
        D_fast = 2 hop_latency + 2 packet_payload / gpu_rate,  D_timer = retransmission_timeout

    n_fast counts lost packets that others follow: such a one costs R + 2 packet times, R the
    feedback delay. n_timer counts lost last packets of a message, which only the timer repairs.
    Both are Poisson, the largest over all rings of all concurrent groups; C is the mean length of
    the chain of n stalls on a ring. Derivation: go-back-N as a sum of geometric counts, checked
    against packet simulation; mean W p / (1 - p) per packet as in Bertsekas and Gallager, Data
    Networks, 2.4.2.

    The light regime: true while p (R + 2) << 1, in packets, so that a resent packet is not lost
    again and two losses do not share a repair. Adapters that report a loss once only wait for the
    timer when a resent packet is lost too, p^2 a packet, which dominates once p timeout > round
    trip. The sum of two maxima is an upper bound of the maximum of the sums. Bursts hit go-back-N
    once each: give their rate, not that of their packets.
    """
    packet_time = scale_out.packet_payload / path.gpu_rate

    def law(traffic: Traffic, drawn: Uniforms) -> Array:
        total = jnp.zeros_like(traffic.groups)
        for rings in rings_of(traffic, scale_out):
            followed = losses(rings.messages * (rings.packets - 1), loss_process)
            last = losses(rings.messages, loss_process)
            fast = stall(2 * path.hop_latency + 2 * packet_time, followed, rings, drawn[0])
            slow = stall(retransmission.retransmission_timeout, last, rings, drawn[1])
            total = total + fast + slow
        return total

    uniforms = (
        (lost, timed_out),
        (expert_lost, expert_timed_out),
        (pipeline_lost, pipeline_timed_out),
    )
    return stalled(law, collective, expert, pipeline, uniforms)
