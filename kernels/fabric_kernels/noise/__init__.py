"""Noise: what law does the random part of one hop follow?"""

import abc
from typing import NamedTuple

from jax import Array

from fabric_kernels.maths.order_statistics import Level, level_of_largest, moments_of_largest
from fabric_kernels.quantity import record


class Body(NamedTuple):
    """What many hops of a law share: a member of a family whose waits are tabulated."""

    family: str  # exponential, normal, uniform, gamma, weibull, lognormal or pareto
    coordinate: Array  # of the member in its family, where constants are smooth
    unit: Array  # s, in which they are counted: the standard deviation, of a power tail its scale


class Rare(NamedTuple):
    """What a few hops meet instead: spikes."""

    share: Array  # of the hops, up to 1/2
    length: Array  # s, mean of a spike above the mean of the body
    memory: Array  # 0: all alike, 1: exponential lengths; their deviation over their mean


@record
class HopNoise(abc.ABC):
    """The law of the random part of one hop across the fabric, in s.

    Each law is a record of its parameters; hop cost = floor + noise, and the noise holds the mean.
    The mean is finite within the bounds of the parameters; the variance of a power tail is not
    from a tail index of 1/2 on.
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

    @abc.abstractmethod
    def body(self) -> Body:
        """The tabulated law that most hops follow, exactly or nearly."""

    def rare(self) -> Rare | None:
        """The spikes of a mixture; None for a law without."""
        return None

    def usual(self) -> "HopNoise":
        """The law of hops that meet no spike; itself for a law without."""
        return self

    def largest(self, count: Array, exponential: Array) -> Array:
        """Quantile of the largest of `count` draws where the exponential variate is `exponential`.

        With E ~ Exp(1), exp(-E) is uniform and the largest has P(M <= x) = F(x)^count = exp(-E).
        """
        return self.quantile(level_of_largest(count, exponential))

    def largest_moments(self, count: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of the largest of `count` draws (s)."""
        return moments_of_largest(lambda exponential: self.largest(count, exponential), count)
