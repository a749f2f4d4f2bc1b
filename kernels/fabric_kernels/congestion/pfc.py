"""Priority flow control alone, with a receiver that admits only so much."""

import dataclasses

import jax.numpy as jnp

from fabric_kernels.congestion import Congestion
from fabric_kernels.congestion.bottleneck import bottleneck, queued, quiet, regime
from fabric_kernels.congestion.dcqcn import headroom_of
from fabric_kernels.incast import Incast
from fabric_kernels.inputs import Contention, Flows, PauseControl, ScaleOut
from fabric_kernels.path import Path


def pfc(
    path: Path,
    incast: Incast,
    flows: Flows,
    scale_out: ScaleOut,
    contention: Contention,
    pause_control: PauseControl,
) -> Congestion:
    """No reaction to marks: what a receiver admits is what stands in the network.

        admitted = N admission_window,  pipe = C RTT
        efficiency = min(1, admitted / pipe),  queue = admitted - pipe, from 0 to the buffer
        pause_fraction = (admitted - pipe - buffer) / admitted, at most 1 - 1 / N, of N ports

    The way of Meta's clusters (Gangidi et al., SIGCOMM'24: DCQCN off, the collective library has
    the receiver ask for data). Without admission, a window without end, N links into a full switch
    are held 1 - 1 / N of the time, and flows bound for elsewhere with them (`queued`). Bytes that
    find no room wait one hop up for (admitted - pipe - buffer) / C of each admitted / C.
    needed_buffer has the headroom of one port and priority: times ports and lossless priorities
    for a switch.
    """
    link = bottleneck(path, incast, flows, scale_out, contention)
    admitted = link.ports * pause_control.admission_window
    pipe = jnp.maximum(link.rate * link.round_trip, 1.0)
    filled = jnp.clip(admitted / pipe, 1e-3, 1.0)
    over = jnp.maximum(admitted - pipe, 0.0)
    waiting = jnp.maximum(over - link.buffer, 0.0) / admitted
    standing = jnp.minimum(over, link.buffer)
    limited = jnp.where(filled < 1, regime("admission_limited"), regime("window_controlled"))
    calm = quiet(jnp.ones_like(link.rate))
    busy = dataclasses.replace(
        calm,
        congestion_efficiency=filled,
        congestion_regime=limited,
        standing_queue=standing,
        largest_queue=over,
        needed_buffer=over,
        pause_fraction=jnp.minimum(waiting, 1.0 - 1.0 / link.ports),
    )
    found = queued(link, busy, headroom_of(link, scale_out, pause_control))
    alone = jnp.where(filled < 1, regime("admission_limited"), regime("quiet"))
    return dataclasses.replace(
        found,
        congestion_efficiency=jnp.where(link.contended, found.congestion_efficiency, filled),
        congestion_regime=jnp.where(link.contended, found.congestion_regime, alone),
    )
