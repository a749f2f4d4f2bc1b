"""Errors: how often is a packet lost on its way?"""

from typing import NamedTuple

from jax import Array

from fabric_kernels.quantity import quantity, record, structure


class MarginalPaths(NamedTuple):
    """Paths with a link near the edge of what error correction repairs."""

    rate: Array  # probability that a packet is lost on such a path
    number: Array  # marginal links that carry a flow of the job


@record
class Errors:
    """How often is a packet lost on its way?"""

    path_loss_rate: Array = quantity(
        "1", "probability that a packet is lost on an ordinary path", bounds=(0, 0.9)
    )
    marginal_path_loss_rate: Array = quantity(
        "1", "probability that a packet is lost on a path with a marginal link", bounds=(0, 0.9)
    )
    marginal_links: Array = quantity(
        "1", "marginal links that carry a flow of the job", bounds=(0, 1e8)
    )
    marginal: tuple[MarginalPaths, ...] = structure()
