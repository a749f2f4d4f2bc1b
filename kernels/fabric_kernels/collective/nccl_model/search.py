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
        across = min(library_network_share x node_rate / channels, multicast g / (g - 1))
        inside = multicast on one node, else min(multicast, across)

    nvlink_rate is one GPU's, node_rate that of all network ports of a node, g the GPUs of a node. A
    channel passes every GPU and leaves a node at one, whose NVLinks it does not use: with the exits
    spread evenly, all channels together carry no more than g / (g - 1) of the NVLinks of one GPU,
    and a node of one GPU has no NVLink to pass. Trees of two nodes may be up to twice as fast
    inside, which is left out. True where ports and NVLinks divide evenly among the channels: NCCL
    rounds to a list of rates and may find fewer channels.
    """
    channels = library.library_channels
    multicast = library.library_nvlink_share * nvlink_rate / channels
    network = library.library_network_share * node_rate / channels
    staying = 1.0 - 1.0 / group.gpus_per_node  # share of the channels that go on by NVLink
    alone = staying < 0.25
    passing = multicast / jnp.where(alone, 1.0, staying)
    across = jnp.where(alone, network, jnp.minimum(network, passing))
    within = jnp.where(alone, across, jnp.minimum(multicast, across))
    return Channels(jnp.where(group.nodes > 1.5, within, multicast), across, multicast)
