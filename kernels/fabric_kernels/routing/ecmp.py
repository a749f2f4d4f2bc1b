"""Equal-cost multipath: a hash of its header binds each flow to one uplink."""

from typing import Annotated

import jax.numpy as jnp
from jax import Array

from fabric_kernels.inputs import Flows, Job, Planes, ScaleOut
from fabric_kernels.maths.occupancy import largest_load
from fabric_kernels.maths.poisson import largest_of
from fabric_kernels.maths.switch_ports import quotient_above, split_ports
from fabric_kernels.routing import Routing
from fabric_kernels.uniform import Uniform


def ecmp(
    job: Job,
    scale_out: ScaleOut,
    planes: Planes,
    flows: Flows,
    collisions: Annotated[Uniform, "collisions"],
) -> Routing:
    """Flows are hashed anew in every step, and all wait for the fullest uplink of all leaves.

        F = down flows_per_port flows on M = up uplinks of each leaf
        flows_per_link = largest of F balls in M boxes, of gpus / down such leaves and all planes
        collision_efficiency = (F / M) / flows_per_link

    All flows of a leaf's GPUs leave it, as they do where neighbours are scattered; those of a
    packed ring meet less. Only the way up at the leaf is counted: a second choice at the spine,
    and flows that meet on the way down, lose more. Behind one switch nothing is chosen: 1.

    The rate of a GPU is then link_rate flows_per_port / flows_per_link: the fair share of the
    fullest link is in it, and a model of congestion that takes its number of flows from
    flows_per_link must not divide by it again.
    """
    radix = scale_out.switch_radix * planes.planes
    down, up = split_ports(radix, scale_out.oversubscription)
    leaves = jnp.maximum(quotient_above(job.gpus, down), 1.0) * planes.planes
    sent = down * flows.flows_per_port
    load = largest_load(sent, up, largest_of(leaves, collisions))
    alone = job.gpus <= radix
    efficiency = jnp.where(alone, 1.0, _share_of_slowest(sent, up, load))
    return Routing(
        collision_efficiency=efficiency,
        flows_per_link=jnp.where(alone, jnp.broadcast_to(flows.flows_per_port, load.shape), load),
    )


def ecmp_efficiency(flows: Array, links: Array, uniform: Uniform) -> Array:
    """What the slowest of F equal flows gets of its fair share when all are hashed on M links.

        max(F / M, 1) / largest load

    A flow sends M / F of a link where F >= M, else a whole one, and the links are shared evenly;
    a collective ends with its slowest flow. At the quantile 1 - u: a large u is a full link. See
    `maths.occupancy.largest_load` for the law.
    """
    return _share_of_slowest(flows, links, largest_load(flows, links, uniform))


def _share_of_slowest(flows: Array, links: Array, load: Array) -> Array:
    return jnp.minimum(jnp.maximum(flows / links, 1.0) / load, 1.0)
