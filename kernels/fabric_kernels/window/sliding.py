"""A window of fixed size that slides with what is acknowledged."""

import jax.numpy as jnp

from fabric_kernels.inputs import ScaleOut
from fabric_kernels.inputs.loss import Transport
from fabric_kernels.path import Path
from fabric_kernels.window import Window


def sliding(path: Path, scale_out: ScaleOut, transport: Transport) -> Window:
    """At most `send_window` bytes of a flow are on their way.

        window_share = min(1, W / (R + 1)),  W = send_window / packet_payload,
        R = 2 hop_latency x gpu_rate / packet_payload

    Bertsekas and Gallager, Data Networks, 2.4. A flow below its bandwidth-delay product is
    allowed and flagged; selective repeat needs about two products. Empty queues: a standing queue
    makes the round trip longer.
    """
    window = transport.send_window / scale_out.packet_payload
    slots = 2 * path.hop_latency * path.gpu_rate / scale_out.packet_payload
    limited = window < slots + 1
    return Window(
        window_packets=window,
        window_share=jnp.minimum(1.0, window / (slots + 1)),
        window_limited=jnp.where(limited, 1.0, 0.0).astype(window.dtype),
    )
