"""The largest hop noise over two groups of hops with their own laws."""

import jax.numpy as jnp
from jax import Array

from fabric_kernels.maths.order_statistics import SMALLEST
from fabric_kernels.maths.root import increasing_root
from fabric_kernels.noise import HopNoise

STEPS = 14


def largest_of_groups(
    first: tuple[Array, HopNoise], second: tuple[Array, HopNoise], exponential: Array
) -> Array:
    """Quantile of the largest noise of two independent groups (count, law), from one exponential.

    Root x of n_1 log F_1(x) + n_2 log F_2(x) = -E, exact for groups that share no hop. It lies
    between the larger of the single groups' quantiles at E and at E / 2.
    """
    (n_first, law_first), (n_second, law_second) = first, second
    low = jnp.maximum(
        law_first.largest(n_first, exponential), law_second.largest(n_second, exponential)
    )
    half = 0.5 * exponential
    high = jnp.maximum(law_first.largest(n_first, half), law_second.largest(n_second, half))

    def excess(value: Array) -> Array:
        total = n_first * law_first.exponent(value) + n_second * law_second.exponent(value)
        return jnp.log(exponential) - jnp.log(jnp.maximum(total, SMALLEST))

    return increasing_root(excess, (low, high), low, STEPS)
