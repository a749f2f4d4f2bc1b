"""Hop noise with a power tail."""

import jax.numpy as jnp
from jax import Array

from fabric_kernels.maths.order_statistics import SMALLEST, Level, complement
from fabric_kernels.maths.power_tail import largest_of_pareto
from fabric_kernels.noise import Body, HopNoise
from fabric_kernels.quantity import quantity, record

FINITE = 0.49
"""Tail index from which on the deviation, which has no end at 1/2, is kept."""


@record
class ParetoNoise(HopNoise):
    """Generalised Pareto: scale * (p^(-x) - 1) / x with tail index x and survival p.

    The variance is infinite from x = 1/2 on: a ring of N then waits for its few largest hops, of
    the order N^(2 x), and quantiles are all that can be said of a step. The mean ends at 1.
    """

    pareto_noise_scale: Array = quantity(
        "s", "scale of generalised Pareto hop noise", bounds=(1e-12, 1), default=100e-9,
        source="[A]",
    )  # fmt: skip
    pareto_noise_tail_index: Array = quantity(
        "1",
        "tail index of generalised Pareto hop noise (0 = exponential, below 0 = bounded; "
        "from 1 on such noise has no mean)",
        bounds=(-0.5, 0.95),
        default=0.2,
        source="[A]",
    )

    def quantile(self, level: Level) -> Array:
        """Scale * expm1(x * hazard) / x."""
        stretch = self.pareto_noise_tail_index * level.hazard
        flat = jnp.abs(stretch) < 1e-12
        safe = jnp.where(flat, 1.0, stretch)
        factor = jnp.where(flat, 1.0, jnp.expm1(safe) / safe)
        return self.pareto_noise_scale * level.hazard * factor

    def exponent(self, value: Array) -> Array:
        """-log(1 - (1 + x value / scale)^(-1 / x))."""
        relative = jnp.maximum(value / self.pareto_noise_scale, SMALLEST)
        stretch = jnp.maximum(self.pareto_noise_tail_index * relative, -1.0 + 1e-6)
        flat = jnp.abs(stretch) < 1e-12
        safe = jnp.where(flat, 1.0, stretch)
        hazard = relative * jnp.where(flat, 1.0, jnp.log1p(safe) / safe)
        return complement(hazard)

    def moments(self) -> tuple[Array, Array]:
        """Scale / (1 - x), and the mean / sqrt(1 - 2 x), from x = 0.49 on as if x were 0.49."""
        index = self.pareto_noise_tail_index
        mean = self.pareto_noise_scale / (1.0 - index)
        return mean, mean / jnp.sqrt(1.0 - 2.0 * jnp.minimum(index, FINITE))

    def body(self) -> Body:
        """Generalised Pareto, in its scale: the deviation would have no end at 1/2."""
        return Body("pareto", self.pareto_noise_tail_index, self.pareto_noise_scale)

    def largest_moments(self, count: Array) -> tuple[Array, Array]:
        """Ratios of gamma functions, in closed form; the deviation from x = 0.49 on is its own."""
        index = self.pareto_noise_tail_index
        mean, _ = largest_of_pareto(count, index)
        _, deviation = largest_of_pareto(count, jnp.minimum(index, FINITE))
        return self.pareto_noise_scale * mean, self.pareto_noise_scale * deviation


def generalised_pareto(noise: ParetoNoise) -> HopNoise:
    """Hop noise has a power tail: rare hops that are many times the typical one."""
    return noise
