"""What NCCL's search for rings and trees finds on a regular machine."""

import jax.numpy as jnp
from jax import Array

from fabric_kernels.collective.nccl_model.group import Channels, Group
from fabric_kernels.inputs import CollectiveLibrary


def channels_of(
    library: CollectiveLibrary, group: Group, nvlink_rate: Array, node_rate: Array
) -> Channels:
    """Rates of one channel from the rates of the links, B/s.

        multicast = library_nvlink_share x nvlink_rate / channels
        across = min(library_network_share x node_rate / channels, multicast)
        inside = multicast on one node, else across

    nvlink_rate is one GPU's, node_rate that of all network ports of a node. Every channel passes
    through every GPU, so that all of them together carry no more than the NVLinks of one GPU nor
    than the ports of a node; a node of one GPU has no NVLink to pass. NCCL searches rings with one
    rate inside and outside; its trees of two nodes may be up to twice as fast inside, which is left
    out, and so are the g / (g - 1) of rings that enter and leave a node at different GPUs. True
    where ports and NVLinks divide evenly among the channels: NCCL rounds to a list of rates and may
    find fewer channels.
    """
    channels = library.library_channels
    multicast = library.library_nvlink_share * nvlink_rate / channels
    network = library.library_network_share * node_rate / channels
    alone = group.gpus_per_node < 1.5
    across = jnp.where(alone, network, jnp.minimum(network, multicast))
    inside = jnp.where(group.nodes > 1.5, across, multicast)
    return Channels(inside, across, multicast)
