"""Hop noise that is uniform between two ends."""

import jax.numpy as jnp
from jax import Array

from fabric_kernels.maths.order_statistics import GREATEST, SMALLEST, Level
from fabric_kernels.noise import Body, HopNoise
from fabric_kernels.quantity import quantity, record


@record
class UniformNoise(HopNoise):
    """Uniform: minimum + width * F."""

    uniform_noise_minimum: Array = quantity(
        "s", "least value of uniform hop noise", bounds=(0, 1), default=0, source="[A]"
    )
    uniform_noise_width: Array = quantity(
        "s",
        "greatest less least value of uniform hop noise",
        bounds=(1e-12, 1),
        default=200e-9,
        source="[A]",
    )

    def quantile(self, level: Level) -> Array:
        """Minimum + width * F, from the nearer end."""
        share = jnp.where(level.upper, 1.0 - level.distance, level.distance)
        return self.uniform_noise_minimum + self.uniform_noise_width * share

    def exponent(self, value: Array) -> Array:
        """-log((value - minimum) / width)."""
        below = (value - self.uniform_noise_minimum) / self.uniform_noise_width
        above = 1.0 - below
        near = -jnp.log1p(-jnp.clip(above, 0.0, 0.5))
        far = -jnp.log(jnp.clip(below, SMALLEST, 1.0))
        return jnp.clip(jnp.where(above < 0.5, near, far), SMALLEST, GREATEST)

    def moments(self) -> tuple[Array, Array]:
        """Minimum + width / 2 and width / sqrt(12)."""
        width = self.uniform_noise_width
        return self.uniform_noise_minimum + 0.5 * width, width * (12.0**-0.5)

    def body(self) -> Body:
        """Uniform."""
        width = self.uniform_noise_width
        return Body("uniform", jnp.zeros_like(width), width * (12.0**-0.5))

    def largest_moments(self, count: Array) -> tuple[Array, Array]:
        """Minimum + width N / (N + 1) and width sqrt(N / (N + 2)) / (N + 1), closed forms."""
        width, next_count = self.uniform_noise_width, count + 1.0
        deviation = jnp.sqrt(count / (count + 2.0)) / next_count
        return self.uniform_noise_minimum + width * (count / next_count), width * deviation


def uniform(noise: UniformNoise) -> HopNoise:
    """Hop noise is uniform between two ends: a poll, a slot, a timer out of step."""
    return noise
