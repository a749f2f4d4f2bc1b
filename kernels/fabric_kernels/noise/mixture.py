"""Hop noise that is one of two lognormal laws: a short and a long way."""

import jax.numpy as jnp
from jax import Array
from jax.scipy.special import erfc

from fabric_kernels.maths.order_statistics import (
    SMALLEST,
    Level,
    moments_of_largest,
)
from fabric_kernels.maths.root import increasing_root
from fabric_kernels.noise import Body, HopNoise, Rare
from fabric_kernels.noise.lognormal import LognormalNoise
from fabric_kernels.quantity import quantity, record

STEPS = 24


@record
class MixedNoise(HopNoise):
    """Mixture: one lognormal law, and with a probability up to 1/2 another."""

    mixed_noise_median: Array = quantity(
        "s", "median of the usual hop noise", bounds=(1e-12, 1), default=100e-9, source="[A]"
    )
    mixed_noise_sigma: Array = quantity(
        "1",
        "standard deviation of the logarithm of the usual hop noise",
        bounds=(0.02, 2),
        default=0.25,
        source="[A]",
    )
    mixed_noise_probability: Array = quantity(
        "1", "share of hops that take the other way", bounds=(0, 0.5), default=0.05, source="[A]"
    )
    mixed_noise_other_median: Array = quantity(
        "s", "median of the other hop noise", bounds=(1e-12, 1), default=600e-9, source="[A]"
    )
    mixed_noise_other_sigma: Array = quantity(
        "1",
        "standard deviation of the logarithm of the other hop noise",
        bounds=(0.02, 2),
        default=0.5,
        source="[A]",
    )

    def quantile(self, level: Level) -> Array:
        """Root of the mixture's tail on the nearer side, between the quantiles of its parts."""
        offset = jnp.log(self.mixed_noise_other_median / self.mixed_noise_median)
        one = self.mixed_noise_sigma * level.normal_score
        other = offset + self.mixed_noise_other_sigma * level.normal_score
        low, high = jnp.minimum(one, other), jnp.maximum(one, other)

        def excess(position: Array) -> Array:
            log_tail = self._log_tail(level.upper, position)
            return jnp.where(level.upper, -(log_tail + level.hazard), log_tail + level.exponent)

        root = increasing_root(excess, (low, high), one, STEPS)
        return self.mixed_noise_median * jnp.exp(root)

    def exponent(self, value: Array) -> Array:
        """-log of (1 - eps) F_1 + eps F_2."""
        position = jnp.log(jnp.maximum(value / self.mixed_noise_median, 1e-30))
        below = -self._log_tail(jnp.zeros_like(position, dtype=bool), position)
        above = jnp.exp(self._log_tail(jnp.ones_like(position, dtype=bool), position))
        return jnp.where(above < 0.5, -jnp.log1p(-jnp.minimum(above, 0.5)), below)

    def moments(self) -> tuple[Array, Array]:
        """Of the mixture: the parts' means, and their variances and distance."""
        share = self.mixed_noise_probability
        one, spread = _lognormal(self.mixed_noise_median, self.mixed_noise_sigma)
        other, far = _lognormal(self.mixed_noise_other_median, self.mixed_noise_other_sigma)
        gap = other - one
        variance = (1.0 - share) * spread * spread + share * (far * far + (1.0 - share) * gap * gap)
        return one + share * gap, jnp.sqrt(variance)

    def body(self) -> Body:
        """The usual law."""
        _, spread = _lognormal(self.mixed_noise_median, self.mixed_noise_sigma)
        return Body("lognormal", self.mixed_noise_sigma, spread)

    def rare(self) -> Rare:
        """The other law, as spikes of its mean length above the usual one."""
        one, _ = _lognormal(self.mixed_noise_median, self.mixed_noise_sigma)
        other, far = _lognormal(self.mixed_noise_other_median, self.mixed_noise_other_sigma)
        length = jnp.maximum(other - one, 0.0)
        memory = jnp.minimum(far / jnp.maximum(length, 1e-18), 1.0)
        return Rare(self.mixed_noise_probability, length, memory)

    def usual(self) -> HopNoise:
        """The usual law."""
        return LognormalNoise(
            lognormal_noise_median=self.mixed_noise_median,
            lognormal_noise_sigma=self.mixed_noise_sigma,
        )

    def largest_moments(self, count: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of the largest of `count` draws, by quadrature.

        One draw is exact. Of several, within 2 % of the mean where the two laws overlap; the
        quantile of parts far from each other has a step, which eight nodes smear out.
        """
        mean, deviation = moments_of_largest(
            lambda exponential: self.largest(count, exponential), count, unrolled=False
        )
        single = self.moments()
        several = count > 1
        return jnp.where(several, mean, single[0]), jnp.where(several, deviation, single[1])

    def _log_tail(self, upper: Array, position: Array) -> Array:
        """log of 1 - F where `upper`, else log F, at t = log(x / usual median)."""
        offset = jnp.log(self.mixed_noise_other_median / self.mixed_noise_median)
        one = position / self.mixed_noise_sigma
        other = (position - offset) / self.mixed_noise_other_sigma
        share = self.mixed_noise_probability
        tail = (1.0 - share) * _side(upper, one) + share * _side(upper, other)
        return jnp.log(jnp.maximum(tail, SMALLEST))


def _side(upper: Array, score: Array) -> Array:
    return 0.5 * erfc(jnp.where(upper, score, -score) * 0.7071067811865476)


def _lognormal(median: Array, sigma: Array) -> tuple[Array, Array]:
    """Mean and deviation of a lognormal law."""
    square = sigma * sigma
    mean = median * jnp.exp(0.5 * square)
    return mean, mean * jnp.sqrt(jnp.expm1(square))


def mixture(noise: MixedNoise) -> HopNoise:
    """Hop noise is a mixture of two lognormal laws: a path or a retry that is longer."""
    return noise
