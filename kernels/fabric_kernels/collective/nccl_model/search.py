"""What NCCL's search for rings and trees finds on a regular machine."""

import jax.numpy as jnp
from jax import Array

from fabric_kernels.collective.nccl_model.group import Channels
from fabric_kernels.inputs import CollectiveLibrary


def channels_of(
    library: CollectiveLibrary, nodes: Array, nvlink_rate: Array, node_rate: Array
) -> Channels:
    """Rates of one channel from the rates of the links, B/s.

        multicast = library_nvlink_share x nvlink_rate / channels
        across = library_network_share x node_rate / channels
        inside = multicast on one node, else min(multicast, across)

    nvlink_rate is one GPU's, node_rate that of all network ports of a node. NCCL searches rings
    with one rate inside and outside; its trees of two nodes may be up to twice as fast inside,
    which is left out. True where ports and NVLinks divide evenly among the channels: NCCL rounds
    to a list of rates and may find fewer channels.
    """
    channels = library.library_channels
    multicast = library.library_nvlink_share * nvlink_rate / channels
    across = library.library_network_share * node_rate / channels
    inside = jnp.where(nodes > 1.5, jnp.minimum(multicast, across), multicast)
    return Channels(inside, across, multicast)
