"""Hop noise that is lognormal with rare exponential spikes."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import erfc

from fabric_kernels.maths.gumbel_nodes import EXPONENTIALS, WEIGHTS
from fabric_kernels.maths.order_statistics import (
    SMALLEST,
    Level,
    level_of_hazard,
    weighted_moments,
)
from fabric_kernels.maths.root import increasing_root
from fabric_kernels.noise import Body, HopNoise, Rare
from fabric_kernels.noise.lognormal import LognormalNoise
from fabric_kernels.quantity import quantity, record

STEPS = 18
FARTHEST = 40.0  # exponential variate that no draw of 63 bits passes often
LAGUERRE = np.polynomial.laguerre.laggauss(6)
LEGENDRE = np.polynomial.legendre.leggauss(6)


@record
class SpikyNoise(HopNoise):
    """Mixture: lognormal with probability 1 - eps, a shifted exponential spike with eps."""

    spiky_noise_median: Array = quantity(
        "s", "median of hop noise between spikes", bounds=(1e-12, 1), default=100e-9, source="[A]"
    )
    spiky_noise_sigma: Array = quantity(
        "1",
        "standard deviation of the logarithm of hop noise between spikes",
        bounds=(0.02, 2),
        default=0.25,
        source="[A]",
    )
    spike_probability: Array = quantity(
        "1", "share of hops that meet a spike", bounds=(0, 0.5), default=1e-4, source="[A]"
    )
    spike_minimum: Array = quantity(
        "s", "least length of a spike", bounds=(0, 10), default=1e-6, source="[A]"
    )
    spike_scale: Array = quantity(
        "s", "mean length of a spike above its least", bounds=(1e-12, 10), default=5e-6,
        source="[A]",
    )  # fmt: skip

    def quantile(self, level: Level) -> Array:
        """Root of the mixture's tail probability on the nearer side, in t = log(x / median)."""
        body = self.spiky_noise_sigma * level.normal_score
        spike = self._position(self.spike_minimum + self.spike_scale * level.hazard)
        # S >= eps S_spike bounds x from below; S <= 2 max of the parts from above
        rare = level.hazard + jnp.log(jnp.maximum(self.spike_probability, SMALLEST))
        present = rare > 0
        shortest = self._position(self.spike_minimum + self.spike_scale * jnp.maximum(rare, 0.0))
        longest = self._position(
            self.spike_minimum + self.spike_scale * (rare + 0.6931471805599453)
        )
        wide = level_of_hazard(level.hazard + 0.6931471805599453)
        low = jnp.minimum(body, spike)
        low = jnp.where(present, jnp.maximum(low, shortest), low)
        high = jnp.maximum(body, spike)
        high = jnp.where(
            present,
            jnp.minimum(high, jnp.maximum(longest, self.spiky_noise_sigma * wide.normal_score)),
            high,
        )
        start = jnp.clip(body, low, high)

        def excess(position: Array) -> Array:
            log_tail = self._log_tail(level.upper, position)
            return jnp.where(level.upper, -(log_tail + level.hazard), log_tail + level.exponent)

        root = increasing_root(excess, (low, high), start, STEPS)
        return self.spiky_noise_median * jnp.exp(root)

    def exponent(self, value: Array) -> Array:
        """-log of (1 - eps) F_lognormal + eps F_spike."""
        position = self._position(value)
        below = -self._log_tail(jnp.zeros_like(position, dtype=bool), position)
        above = jnp.exp(self._log_tail(jnp.ones_like(position, dtype=bool), position))
        return jnp.where(above < 0.5, -jnp.log1p(-jnp.minimum(above, 0.5)), below)

    def moments(self) -> tuple[Array, Array]:
        """Of the mixture: the parts' means, and their variances and distance."""
        share, sigma = self.spike_probability, self.spiky_noise_sigma
        body = self.spiky_noise_median * jnp.exp(0.5 * sigma * sigma)
        spread = body * body * jnp.expm1(sigma * sigma)
        gap = self.spike_minimum + self.spike_scale - body
        variance = (1.0 - share) * spread + share * (
            self.spike_scale * self.spike_scale + (1.0 - share) * gap * gap
        )
        return body + share * gap, jnp.sqrt(variance)

    def body(self) -> Body:
        """The lognormal law between spikes."""
        sigma = self.spiky_noise_sigma
        mean = self.spiky_noise_median * jnp.exp(0.5 * sigma * sigma)
        return Body("lognormal", sigma, mean * jnp.sqrt(jnp.expm1(sigma * sigma)))

    def rare(self) -> Rare:
        """Spikes of a least and an exponential length."""
        sigma = self.spiky_noise_sigma
        mean = self.spiky_noise_median * jnp.exp(0.5 * sigma * sigma)
        length = jnp.maximum(self.spike_minimum + self.spike_scale - mean, 0.0)
        memory = jnp.minimum(self.spike_scale / jnp.maximum(length, 1e-18), 1.0)
        return Rare(self.spike_probability, length, memory)

    def usual(self) -> HopNoise:
        """The lognormal law between spikes."""
        return LognormalNoise(
            lognormal_noise_median=self.spiky_noise_median,
            lognormal_noise_sigma=self.spiky_noise_sigma,
        )

    def largest_moments(self, count: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of the largest of `count` draws, by quadrature.

        Apart for the exponential variates at which there is a spike and at which there is none:
        the quantile may jump between them. Relative error 1e-3, of the deviation 5e-3, where
        spikes are longer than the median; up to ten times that where they hide below it. One
        draw is exact.
        """
        onset = -count * jnp.log1p(-self.spike_probability)
        variates, weights = _nodes_about(jnp.minimum(onset, FARTHEST))
        values = jax.lax.map(lambda e: self.largest(count, e), jnp.stack(variates))
        mean, deviation = weighted_moments(list(values), weights)
        single = self.moments()
        several = count > 1
        return jnp.where(several, mean, single[0]), jnp.where(several, deviation, single[1])

    def _position(self, value: Array) -> Array:
        """t = log(x / median)."""
        return jnp.log(jnp.maximum(value / self.spiky_noise_median, 1e-30))

    def _log_tail(self, upper: Array, position: Array) -> Array:
        """log of 1 - F where `upper`, else log F."""
        score = position / self.spiky_noise_sigma
        value = self.spiky_noise_median * jnp.exp(position)
        hazard = jnp.maximum(value - self.spike_minimum, 0.0) / self.spike_scale
        body = 0.5 * erfc(jnp.where(upper, score, -score) * 0.7071067811865476)
        spike = jnp.where(upper, jnp.exp(-hazard), -jnp.expm1(-hazard))
        tail = (1.0 - self.spike_probability) * body + self.spike_probability * spike
        return jnp.log(jnp.maximum(tail, SMALLEST))


def _nodes_about(onset: Array) -> tuple[list[Array], list[Array]]:
    """Exponential variates and weights for a function that may jump at `onset`.

    Below min(onset, 1) by Gauss and Laguerre in the logarithm of the probability, on to the onset
    by Gauss and Legendre in the probability, beyond by the nodes for a largest, moved there.
    """
    first = jnp.minimum(onset, 1.0)
    near, middle, far = -jnp.expm1(-first), jnp.exp(-first) - jnp.exp(-onset), jnp.exp(-onset)
    variates = [-jnp.log1p(-near * float(np.exp(-node))) for node in LAGUERRE[0]]
    weights = [near * float(weight) for weight in LAGUERRE[1]]
    variates += [-jnp.log(jnp.exp(-first) - middle * float(0.5 + 0.5 * x)) for x in LEGENDRE[0]]
    weights += [middle * float(0.5 * weight) for weight in LEGENDRE[1]]
    variates += [onset + node for node in EXPONENTIALS]
    weights += [far * weight for weight in WEIGHTS]
    return variates, weights


def spikes(noise: SpikyNoise) -> HopNoise:
    """Hop noise has rare spikes: a retried link, a pause, a busy host."""
    return noise
