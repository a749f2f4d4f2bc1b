"""The ways of messages through a network: how far up they go, what they cost, what rate is left."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from fabric_kernels.inputs import ScaleOut, UpperTiers
from fabric_kernels.path import SECONDS_PER_METRE
from fabric_kernels.path.clos import Clos
from fabric_kernels.placement import JobPlacement
from fabric_kernels.routing import Routing


class Ways(NamedTuple):
    """Shares of the hops that leave the leaf, the pod and the group of pods."""

    mean: tuple[Array, ...]  # by the placement
    longest: tuple[Array, ...]  # 1 where the job reaches further, else 0


def ways(network: Clos, members: Array, neighbours: Array, placement: JobPlacement) -> Ways:
    """How many of the hops between `members` ports go over each tier.

        packed = min(1, n / B),  scattered = (N - B) / (N - n)

    leave a group of B ports of N, where n ports belong to one sender's NVLink domain: of B / n
    domains in a row one has its next outside, and of the N - n ports outside a domain N - B lie
    outside the group.
    """
    mean, longest = [], []
    for number, block in enumerate(network.blocks, start=1):
        further = defined(network)
        further = jnp.where((network.tiers <= number) | (members <= block), 0.0, further)
        in_a_row = jnp.minimum(neighbours / block, 1.0)
        anywhere = (members - block) / jnp.maximum(members - neighbours, 1.0)
        anywhere = jnp.clip(anywhere, 0.0, 1.0)
        loose = 1.0 - placement.scattered_share * (1.0 - anywhere)
        share = loose - placement.packed_share * (loose - in_a_row)
        mean.append(further * share)
        longest.append(further)
    return Ways(tuple(mean), tuple(longest))


def defined(network: Clos) -> Array:
    """1 where there is such a network, else NaN."""
    return jnp.where(jnp.isnan(network.tiers), network.tiers, jnp.ones_like(network.tiers))


def cable_lengths(beyond: tuple[Array, ...], scale_out: ScaleOut, upper: UpperTiers) -> Array:
    """Cable that a message passes, up and down: 2 (l_1 + sum of shares l_i), l_i growing (m)."""
    length, total = scale_out.cable_length, scale_out.cable_length
    for share in beyond:
        length = length * upper.cable_length_growth
        total = total + share * length
    return 2.0 * total


def switches_passed(beyond: tuple[Array, ...]) -> Array:
    """One leaf, and two switches more for each tier that a message goes further up."""
    return 1.0 + 2.0 * (beyond[0] + beyond[1] + beyond[2])


def floor_of_hop(beyond: tuple[Array, ...], scale_out: ScaleOut, upper: UpperTiers) -> Array:
    """adapters + cable x 4.9 ns/m + links error_correction + switches switch_latency (s).

    With empty queues; serialisation belongs to the transfer. A message passes one link more than
    switches.
    """
    switches = switches_passed(beyond)
    return (
        scale_out.adapter_latency
        + cable_lengths(beyond, scale_out, upper) * SECONDS_PER_METRE
        + (switches + 1.0) * scale_out.error_correction_latency
        + switches * scale_out.switch_latency
    )


def path_fraction(network: Clos, found: Ways, routing: Routing) -> Array:
    """Share of its port's rate that a GPU has: collisions over the scarcest tier.

        collision_efficiency / max(1, s_1 o_1, s_2 o_1 o_2, s_3 o_1 o_2 o_3)

    s_i is the share of the hops that leave tier i, o_i the oversubscription there: of the ports
    below 1 / (o_1 ... o_i) go up. With every hop over the top, 1 / (o_1 o_2 o_3). Behind one leaf
    there is no uplink and no choice of ways: 1.
    """
    demand = ratio = jnp.ones_like(network.tiers)
    for share, oversubscription in zip(found.mean, network.oversubscriptions, strict=True):
        ratio = ratio * oversubscription
        demand = jnp.maximum(demand, share * ratio)
    return jnp.where(found.longest[0] > 0.5, routing.collision_efficiency, 1.0) / demand


def bisection_fraction(network: Clos, found: Ways) -> Array:
    """1 / (o_1 o_2 o_3) of the tiers that the job reaches beyond.

    The maximum flow between two halves of the job, each filling its groups of switches: exact for
    full networks. Of a partly filled one it is what its ports allow; where the uplinks of a group
    do not divide among the switches above, cables lie unevenly and up to a quarter less may pass.
    """
    share = defined(network)
    for further, oversubscription in zip(found.longest, network.oversubscriptions, strict=True):
        share = share / jnp.where(further > 0.5, oversubscription, 1.0)
    return share
