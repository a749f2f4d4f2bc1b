"""Noise: what law does the random part of one hop follow?"""

import abc

from jax import Array

from fabric_kernels.maths.order_statistics import Level, level_of_largest, moments_of_largest
from fabric_kernels.quantity import record


@record
class HopNoise(abc.ABC):
    """The law of the random part of one hop across the fabric, in s.

    Each law is a record of its parameters; hop cost = floor + noise, and the noise holds the mean.
    Every law has a finite variance within the bounds of its parameters.
    """

    @abc.abstractmethod
    def quantile(self, level: Level) -> Array:
        """Quantile at a level (s), accurate in both tails."""

    @abc.abstractmethod
    def exponent(self, value: Array) -> Array:
        """-log F(value): the inverse of `quantile`, as the exponent of the level."""

    @abc.abstractmethod
    def moments(self) -> tuple[Array, Array]:
        """Mean and standard deviation of one draw (s)."""

    def largest(self, count: Array, exponential: Array) -> Array:
        """Quantile of the largest of `count` draws where the exponential variate is `exponential`.

        With E ~ Exp(1), exp(-E) is uniform and the largest has P(M <= x) = F(x)^count = exp(-E).
        """
        return self.quantile(level_of_largest(count, exponential))

    def largest_moments(self, count: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of the largest of `count` draws (s)."""
        return moments_of_largest(lambda exponential: self.largest(count, exponential), count)
