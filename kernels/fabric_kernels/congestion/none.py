"""No congestion at all."""

import jax.numpy as jnp

from fabric_kernels.congestion import Congestion
from fabric_kernels.congestion.bottleneck import quiet
from fabric_kernels.path import Path


def none(path: Path) -> Congestion:
    """Queues stay empty and the whole rate of the path is used.

    A bound, not a forecast: true where one exchange has the fabric for itself, every flow its own
    way, and nothing is sent by two to one. The path gives only the shape.
    """
    return quiet(jnp.ones_like(path.gpu_rate))
