"""Where the ranks of a data-parallel group stand."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from fabric_kernels.inputs import Job, ScaleUp
from fabric_kernels.workload import Workload


class Placement(NamedTuple):
    """One data-parallel group over the NVLink domains."""

    domains: Array  # NVLink domains that the group touches
    ranks: Array  # its ranks in the domain that holds fewest


def placement(job: Job, workload: Workload, scale_up: ScaleUp) -> Placement:
    """Spread one data-parallel group over as few NVLink domains as hold it.

    Tensor parallelism fills a domain first; floor(nvlink_domain / tensor_parallel) ranks of the
    group fit in what is left, at least 1 and at most all of them. Where the domains do not come
    out full, the ranks are spread evenly, and the domain that holds fewest counts.
    """
    ranks = workload.data_parallel
    # half a GPU keeps floor and ceil right where a division is not exact
    room = jnp.floor((scale_up.nvlink_domain + 0.5) / job.tensor_parallel)
    room = jnp.maximum(room, 1.0)
    domains = jnp.floor((ranks + room - 0.5) / room)
    return Placement(domains, jnp.floor((ranks + 0.5) / domains))
