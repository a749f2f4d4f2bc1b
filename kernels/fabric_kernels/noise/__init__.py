"""Noise: what law does the random part of one hop follow?"""

import abc

from jax import Array


class HopNoise(abc.ABC):
    """The law of the random part of one hop across the fabric, in s.

    Each law is a record of its parameters; hop cost = floor + noise, and the noise holds the mean.
    """

    @abc.abstractmethod
    def largest(self, count: Array, exponential: Array) -> Array:
        """Quantile of the largest of `count` draws where the exponential variate is `exponential`.

        With E ~ Exp(1), exp(-E) is uniform and the largest has P(M <= x) = F(x)^count = exp(-E).
        """

    @abc.abstractmethod
    def largest_moments(self, count: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of the largest of `count` draws (s)."""
