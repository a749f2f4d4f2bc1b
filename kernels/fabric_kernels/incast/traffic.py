"""Who meets at the fullest link, read off the pattern of the exchange and the routing."""

import jax.numpy as jnp
from jax import Array

from fabric_kernels.collective import Collective
from fabric_kernels.incast import Incast
from fabric_kernels.inputs import Contention, Flows
from fabric_kernels.path import Path
from fabric_kernels.pattern import Barrier, Pattern, Tree
from fabric_kernels.routing import Routing
from fabric_kernels.workload import Workload

_CHILDREN = 2.0


def traffic(
    workload: Workload,
    collective: Collective,
    routing: Routing,
    path: Path,
    flows: Flows,
    contention: Contention,
) -> Incast:
    """The fuller of a receiver's own link and the fullest link between switches.

        senders_per_receiver = most senders of any pattern of the data exchange (`senders`)
        flows_per_bottleneck = max(senders flows_per_port, flows_per_link) + background_flows
        (without flows_per_link where switch_hops = 1)

    A job whose messages all stay behind their leaf switches passes no uplink, however few there
    are. Routing counts the flows that collide on an uplink, the pattern those that aim at one port.
    The two are not added: a message is held up most by the fuller of the two. How much of a link
    each flow gets is in the rate of the path; this only says how long the queue is.
    """
    ranks = workload.data_parallel
    most = jnp.ones_like(routing.flows_per_link * ranks)
    for sent in collective.traffic:
        for pattern in sent.patterns:
            runs = pattern.repeats > 0
            most = jnp.maximum(most, jnp.where(runs, senders(pattern, ranks, contention), 1.0))
    aimed = most * flows.flows_per_port
    climbs = path.switch_hops > 1.0
    meeting = jnp.where(climbs, jnp.maximum(aimed, routing.flows_per_link), aimed)
    return Incast(
        senders_per_receiver=most,
        flows_per_bottleneck=meeting + contention.background_flows,
    )


def senders(pattern: Pattern, ranks: Array, contention: Contention) -> Array:
    """Ranks that send to one rank at once.

    A rank of a ring, of pairs or of a line hears one other; one of a tree hears both children; in
    a round of messages between all it hears its share, as far as so many are sent at once.
    """
    match pattern:
        case Barrier():
            share = jnp.maximum(pattern.messages / ranks, 1.0)
            return jnp.minimum(share, contention.concurrent_peers)
        case Tree():
            return jnp.clip(pattern.ranks - 1.0, 1.0, _CHILDREN)
        case _:
            return jnp.ones_like(ranks)
