"""Hop noise that is normal about zero: spread only."""

import jax.numpy as jnp
from jax import Array

from fabric_kernels.maths.normal import log_survival
from fabric_kernels.maths.order_statistics import Level
from fabric_kernels.noise import Body, HopNoise
from fabric_kernels.quantity import quantity, record


@record
class NormalNoise(HopNoise):
    """Normal with mean 0: the mean of the hop is in its floor. Negative half of the time."""

    normal_noise_deviation: Array = quantity(
        "s",
        "standard deviation of normal hop noise",
        bounds=(1e-12, 1),
        default=50e-9,
        source="[A]",
    )

    def quantile(self, level: Level) -> Array:
        """Deviation * z, z the normal score of the level."""
        return self.normal_noise_deviation * level.normal_score

    def exponent(self, value: Array) -> Array:
        """-log Phi(value / deviation)."""
        return -log_survival(-value / self.normal_noise_deviation)

    def moments(self) -> tuple[Array, Array]:
        """Mean 0 and the deviation."""
        return jnp.zeros_like(self.normal_noise_deviation), self.normal_noise_deviation

    def body(self) -> Body:
        """Normal."""
        deviation = self.normal_noise_deviation
        return Body("normal", jnp.zeros_like(deviation), deviation)


def normal(noise: NormalNoise) -> HopNoise:
    """Hop noise is normal about zero, for measurements that report a spread only."""
    return noise
