"""Hop noise that follows a Weibull law."""

import jax.numpy as jnp
from jax import Array
from jax.lax import lgamma

from fabric_kernels.maths.order_statistics import SMALLEST, Level, complement
from fabric_kernels.noise import Body, HopNoise
from fabric_kernels.quantity import quantity, record


@record
class WeibullNoise(HopNoise):
    """Weibull: scale * hazard^(1 / shape); a shape below 1 has a stretched tail."""

    weibull_noise_scale: Array = quantity(
        "s", "scale of Weibull hop noise", bounds=(1e-12, 1), default=100e-9, source="[A]"
    )
    weibull_noise_shape: Array = quantity(
        "1", "shape of Weibull hop noise", bounds=(0.3, 10), default=0.8, source="[A]"
    )

    def quantile(self, level: Level) -> Array:
        """Scale * hazard^(1 / shape)."""
        return self.weibull_noise_scale * jnp.exp(jnp.log(level.hazard) / self.weibull_noise_shape)

    def exponent(self, value: Array) -> Array:
        """-log(1 - exp(-(value / scale)^shape))."""
        hazard = jnp.exp(self.weibull_noise_shape * jnp.log(value / self.weibull_noise_scale))
        return complement(jnp.maximum(hazard, SMALLEST))

    def moments(self) -> tuple[Array, Array]:
        """Scale Gamma(1 + 1/k), and the deviation from Gamma(1 + 2/k)."""
        inverse = 1.0 / self.weibull_noise_shape
        first, second = lgamma(1.0 + inverse), lgamma(1.0 + 2.0 * inverse)
        mean = self.weibull_noise_scale * jnp.exp(first)
        return mean, mean * jnp.sqrt(jnp.expm1(second - 2.0 * first))

    def body(self) -> Body:
        """Weibull; smooth in the logarithm of its shape."""
        return Body("weibull", jnp.log(self.weibull_noise_shape), self.moments()[1])


def weibull(noise: WeibullNoise) -> HopNoise:
    """Hop noise follows a Weibull law: between exponential and heavy-tailed by one shape."""
    return noise
