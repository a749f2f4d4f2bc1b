"""Hop noise that is lognormal."""

import jax.numpy as jnp
from jax import Array

from fabric_kernels.maths.normal import log_survival
from fabric_kernels.maths.order_statistics import Level
from fabric_kernels.noise import Body, HopNoise
from fabric_kernels.quantity import quantity, record


@record
class LognormalNoise(HopNoise):
    """Lognormal: median * exp(sigma Z), Z standard normal."""

    lognormal_noise_median: Array = quantity(
        "s",
        "median of the lognormal noise of one hop",
        bounds=(1e-12, 1),
        default=100e-9,
        source="[A]",
    )
    lognormal_noise_sigma: Array = quantity(
        "1",
        "standard deviation of the logarithm of lognormal hop noise",
        bounds=(1e-3, 2),
        default=0.5,
        source="[A]",
    )

    def quantile(self, level: Level) -> Array:
        """Median * exp(sigma z), z the normal score of the level."""
        return self.lognormal_noise_median * jnp.exp(
            self.lognormal_noise_sigma * level.normal_score
        )

    def exponent(self, value: Array) -> Array:
        """-log Phi(log(value / median) / sigma)."""
        score = jnp.log(value / self.lognormal_noise_median) / self.lognormal_noise_sigma
        return -log_survival(-score)

    def moments(self) -> tuple[Array, Array]:
        """Mean = median exp(sigma^2 / 2), deviation = mean sqrt(exp(sigma^2) - 1)."""
        square = self.lognormal_noise_sigma * self.lognormal_noise_sigma
        mean = self.lognormal_noise_median * jnp.exp(0.5 * square)
        return mean, mean * jnp.sqrt(jnp.expm1(square))

    def body(self) -> Body:
        """Lognormal; smooth in its sigma, 0 being the normal law."""
        return Body("lognormal", self.lognormal_noise_sigma, self.moments()[1])


def lognormal(noise: LognormalNoise) -> HopNoise:
    """Hop noise is lognormal: a product of many small effects; the default."""
    return noise
