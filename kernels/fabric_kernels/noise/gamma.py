"""Hop noise that follows a gamma law."""

import jax
import jax.numpy as jnp
from jax import Array

from fabric_kernels.maths.gamma_law import gamma_exponent, gamma_quantile
from fabric_kernels.maths.order_statistics import Level, moments_of_largest
from fabric_kernels.noise import Body, HopNoise
from fabric_kernels.quantity import quantity, record


@record
class GammaNoise(HopNoise):
    """Gamma: a sum of `shape` exponential waits of mean `scale`."""

    gamma_noise_scale: Array = quantity(
        "s", "scale of gamma hop noise", bounds=(1e-12, 1), default=50e-9, source="[A]"
    )
    gamma_noise_shape: Array = quantity(
        "1", "shape of gamma hop noise", bounds=(0.2, 50), default=2, source="[A]"
    )

    def quantile(self, level: Level) -> Array:
        """Scale * the standard gamma quantile."""
        return self.gamma_noise_scale * gamma_quantile(level, self.gamma_noise_shape)

    def exponent(self, value: Array) -> Array:
        """-log P(shape, value / scale), P the regularised incomplete gamma function."""
        return gamma_exponent(value / self.gamma_noise_scale, self.gamma_noise_shape)

    def moments(self) -> tuple[Array, Array]:
        """Scale * shape and scale * sqrt(shape)."""
        shape = self.gamma_noise_shape
        return self.gamma_noise_scale * shape, self.gamma_noise_scale * jnp.sqrt(shape)

    def body(self) -> Body:
        """Gamma; smooth in its relative deviation, 1 / sqrt(shape)."""
        relative = jax.lax.rsqrt(self.gamma_noise_shape)
        return Body("gamma", relative, self.moments()[1])

    def largest_moments(self, count: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of the largest of `count` draws, by quadrature."""
        return moments_of_largest(
            lambda exponential: self.largest(count, exponential), count, unrolled=False
        )


def gamma(noise: GammaNoise) -> HopNoise:
    """Hop noise follows a gamma law: a few queues in a row."""
    return noise
