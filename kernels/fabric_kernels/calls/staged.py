"""Calls that first go round the NVLink domain, then across the fabric on every rail."""

from fabric_kernels.calls import Call, Network, Part, PartOf, followed, no_message
from fabric_kernels.calls.across import doubling_across, ring_across, switch_across, tree_across
from fabric_kernels.calls.inside import nvls_inside, ring_inside
from fabric_kernels.calls.straight import rails
from fabric_kernels.operation import ALL_TO_ALL


def staged(inside: PartOf, across: PartOf) -> PartOf:
    """Inside the domain, then across the fabric."""

    def part(call: Call, network: Network) -> Part:
        no_message(call)
        return followed(inside(call, network), across(call, network))

    return part


def by_rails(call: Call, network: Network) -> Part:
    """One call of `hierarchical`, the only one that knows all-to-all."""
    if call.operation == ALL_TO_ALL:
        return rails(call, network)
    return staged(ring_inside, ring_across)(call, network)


STAGED: dict[str, PartOf] = {
    "hierarchical": by_rails,
    "hierarchical_tree": staged(ring_inside, tree_across),
    "hierarchical_halving_doubling": staged(ring_inside, doubling_across),
    "nvls": staged(nvls_inside, ring_across),
    "nvls_tree": staged(nvls_inside, tree_across),
    "sharp": staged(ring_inside, switch_across),
    "nvls_sharp": staged(nvls_inside, switch_across),
}
"""One call of each, by name."""
