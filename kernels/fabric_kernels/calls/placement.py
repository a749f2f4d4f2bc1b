"""Where the ranks of a group stand."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from fabric_kernels.inputs import ScaleUp


class Placement(NamedTuple):
    """One group over the NVLink domains."""

    domains: Array  # NVLink domains that the group touches
    ranks: Array  # its ranks in the domain that holds fewest


def placement(ranks: Array, spacing: Array, scale_up: ScaleUp) -> Placement:
    """Spread one group over as few NVLink domains as hold it.

    The GPUs of `spacing` - 1 other groups stand between two neighbours (those of tensor
    parallelism, and of experts for their replicas); floor(nvlink_domain / spacing) ranks of the
    group fit in a domain, at least 1 and at most all of them. Where the domains do not come out
    full, the ranks are spread evenly, and the domain that holds fewest counts.
    """
    # half a GPU keeps floor and ceil right where a division is not exact
    room = jnp.floor((scale_up.nvlink_domain + 0.5) / spacing)
    room = jnp.maximum(room, 1.0)
    domains = jnp.floor((ranks + room - 0.5) / room)
    return Placement(domains, jnp.floor((ranks + 0.5) / domains))
