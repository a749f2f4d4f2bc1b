"""Importance sampling by mixtures: rare ends of some uniforms drawn often, and weighed back."""

from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array

from fabric_kernels.maths.importance import emphasised
from fabric_kernels.uniform import Uniform
from fabricarlo.sweep import Tail


def weighed(
    uniforms: Sequence[Uniform], streams: Sequence[str], tails: Sequence[Tail]
) -> tuple[list[Uniform], Array]:
    """The uniforms with more points in their tails, and the weight of every sample.

        density of v = share / probability in the tail + 1 - share everywhere
        weight = 1 / density, multiplied over the tails

    The defensive mixture: no weight is above 1 / (1 - share) a tail, so nothing outside the tails
    is lost (T. Hesterberg, Technometrics 37, 185-194, 1995). v is drawn as a monotone function of
    the point u, by which scrambled Sobol' points stay as even as they are; a tail whose stream is
    not drawn here weighs nothing.
    """
    found, weight = list(uniforms), jnp.ones((1, 1), jnp.float32)
    for tail in tails:
        if tail.stream not in streams:
            continue
        k = streams.index(tail.stream)
        u = uniforms[k]
        mirrored = Uniform(u.upper if tail.upper else ~u.upper, u.distance)
        probability, points = (jnp.float32(p) for p in (tail.probability, tail.points))
        moved, factor = emphasised(mirrored, probability, points)
        upper = moved.upper if tail.upper else ~moved.upper
        found[k] = type(u)(upper, moved.distance)
        weight = weight * factor
    return found, weight
