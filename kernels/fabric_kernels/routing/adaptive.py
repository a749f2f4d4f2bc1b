"""Adaptive routing: switches send a packet by the emptiest port."""

from fabric_kernels.inputs import Flows, ScaleOut
from fabric_kernels.routing import Routing


def adaptive(scale_out: ScaleOut, flows: Flows) -> Routing:
    """Flows spread evenly up to a given share of the capacity.

        collision_efficiency = routing_efficiency
        flows_per_link = oversubscription flows_per_port

    Vendors give 0.95 to 0.98. The same in every step: how it varies is not published.
    """
    return Routing(
        collision_efficiency=scale_out.routing_efficiency,
        flows_per_link=scale_out.oversubscription * flows.flows_per_port,
    )
