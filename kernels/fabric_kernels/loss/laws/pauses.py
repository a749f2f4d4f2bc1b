"""Pauses of a link, as of priority flow control or missing credits: an alternating renewal."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from fabric_kernels.maths.normal import normal_quantile
from fabric_kernels.maths.order_statistics import exponential_variate
from fabric_kernels.maths.poisson import largest_of, poisson_quantile
from fabric_kernels.uniform import Uniform


class Pauses(NamedTuple):
    """A link runs for an exponential time, then pauses; pauses are alike and independent."""

    rate: Array  # s-1, pauses begun per second of running
    mean: Array  # s, of one pause
    variation: Array  # deviation of one pause over its mean: 1 for an exponential one


def paused_share(pauses: Pauses) -> Array:
    """Share of the time in which the link is paused: a E P / (1 + a E P)."""
    load = pauses.rate * pauses.mean
    return load / (1 + load)


def pause_moments(work: Array, pauses: Pauses) -> tuple[Array, Array]:
    """Mean and variance of the pauses that a transfer of `work` seconds meets, in sum (s, s2).

        mean = a X E P + r E P^2 / (2 E P),   variance = a X E P^2 + residual's

    N ~ Poisson(a X) pauses, and with the paused share r the rest of the one in which the transfer
    starts: a link that has run for long. For the rest of a pause the law is taken as gamma, so
    E P^3 = E P^3 (1 + v^2)(1 + 2 v^2). Cox, Renewal Theory, 1962, chapter 7. A transfer that
    ends within a fraction of a pause sees the same law; pauses that hit many links at once are
    common, and go after the maximum over links, not inside it.
    """
    square = pauses.mean * pauses.mean * (1 + pauses.variation * pauses.variation)
    number = work * pauses.rate
    share = paused_share(pauses)
    known = jnp.where(pauses.mean > 0, pauses.mean, 1.0)
    rest = square / (2 * known)
    rest_square = square * pauses.mean * (1 + 2 * pauses.variation * pauses.variation) / (3 * known)
    mean = number * pauses.mean + share * rest
    return mean, number * square + share * rest_square - share * share * rest * rest


def pause_quantile(
    work: Array, pauses: Pauses, links: Array, number: Uniform, length: Uniform
) -> Array:
    """Pauses in sum (s) of the worst of `links` independent links, each `work` seconds busy.

    The count is Poisson, with the stationary start as one pause more in the paused share; the sum
    of n pauses is gamma by two moments (Wilson and Hilferty, PNAS 17(12), 1931), exact for one
    exponential pause. The worst link is that with most pauses: for many short ones that is a
    bound from below of a few per cent of the spread.
    """
    expected = work * pauses.rate + paused_share(pauses)
    count = poisson_quantile(expected, largest_of(links, number))
    shape = jnp.maximum(count, 1.0) / jnp.maximum(pauses.variation * pauses.variation, 1e-6)
    # survival side: the large end of the sum is the large end of the uniform
    survival = Uniform(~length.upper, length.distance)
    exponential = exponential_variate(survival)
    score = normal_quantile(length)
    cube = 1 - 1 / (9 * shape) + score / (3 * jnp.sqrt(shape))
    gamma = jnp.maximum(cube, 0.0) * jnp.maximum(cube, 0.0) * jnp.maximum(cube, 0.0)
    one = (count <= 1) & (jnp.abs(pauses.variation - 1) < 1e-3)
    total = jnp.where(one, exponential, jnp.maximum(count, 1.0) * gamma)
    return jnp.where(count > 0, pauses.mean * total, 0.0)
