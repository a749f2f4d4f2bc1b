"""Hop noise that is exponential above a minimum."""

import jax.numpy as jnp
from jax import Array

from fabric_kernels.maths.order_statistics import SMALLEST, Level, complement
from fabric_kernels.maths.power_tail import largest_of_exponential
from fabric_kernels.noise import Body, HopNoise
from fabric_kernels.quantity import quantity, record


@record
class ExponentialNoise(HopNoise):
    """Shifted exponential: minimum + scale * hazard."""

    exponential_noise_minimum: Array = quantity(
        "s", "least value of exponential hop noise", bounds=(0, 1), default=0, source="[A]"
    )
    exponential_noise_scale: Array = quantity(
        "s",
        "mean of exponential hop noise above its minimum",
        bounds=(1e-12, 1),
        default=100e-9,
        source="[A]",
    )

    def quantile(self, level: Level) -> Array:
        """Minimum + scale * hazard."""
        return self.exponential_noise_minimum + self.exponential_noise_scale * level.hazard

    def exponent(self, value: Array) -> Array:
        """-log(1 - exp(-(value - minimum) / scale)); 87 and more below the minimum."""
        hazard = (value - self.exponential_noise_minimum) / self.exponential_noise_scale
        return complement(jnp.maximum(hazard, SMALLEST))

    def moments(self) -> tuple[Array, Array]:
        """Minimum + scale, and the scale."""
        scale = self.exponential_noise_scale
        return self.exponential_noise_minimum + scale, scale

    def body(self) -> Body:
        """Exponential; the minimum is paid by every hop alike."""
        return Body(
            "exponential",
            jnp.zeros_like(self.exponential_noise_scale),
            self.exponential_noise_scale,
        )

    def largest_moments(self, count: Array) -> tuple[Array, Array]:
        """Minimum + scale H_N and scale sqrt(sum of 1 / n^2, n <= N), closed forms."""
        mean, deviation = largest_of_exponential(count)
        scale = self.exponential_noise_scale
        return self.exponential_noise_minimum + scale * mean, scale * deviation


def exponential(noise: ExponentialNoise) -> HopNoise:
    """Hop noise is exponential above a minimum: the wait in a lightly loaded queue."""
    return noise
