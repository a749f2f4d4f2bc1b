"""Spraying: the adapter sends each packet of a flow another way."""

from fabric_kernels.inputs import Flows, ScaleOut, Spraying
from fabric_kernels.routing import Routing


def spraying(scale_out: ScaleOut, flows: Flows, spraying: Spraying) -> Routing:
    """Every flow uses every uplink, so that no two flows meet more than others do.

        collision_efficiency = spraying_efficiency
        flows_per_link = oversubscription flows_per_port

    Needs a receiver that takes packets out of order (UEC, MRC). flows_per_link counts whole flows:
    packets of all flows pass each uplink, at the rate of so many.
    """
    return Routing(
        collision_efficiency=spraying.spraying_efficiency,
        flows_per_link=scale_out.oversubscription * flows.flows_per_port,
    )
