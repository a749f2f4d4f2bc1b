"""Hop noise from a table of measured percentiles."""

import jax.numpy as jnp
from jax import Array

from fabric_kernels.maths.order_statistics import SMALLEST, Level, complement
from fabric_kernels.noise import Body, HopNoise
from fabric_kernels.quantity import quantity, record

HAZARDS = (0.0, 0.10536052, 0.69314718, 2.3025851, 4.6051702, 6.9077553, 9.2103404)
"""-log(1 - p) at the least value and at the percentiles 10, 50, 90, 99, 99.9 and 99.99."""


def _percentile(meaning: str, default: float) -> Array:
    return quantity("s", f"{meaning} hop noise", bounds=(0, 1), default=default, source="[A]")


@record
class EmpiricalNoise(HopNoise):
    """Percentiles of a measurement; between two of them the density falls as an exponential.

    The quantile is linear in the cumulative hazard -log(1 - p) between the percentiles and goes
    on with the last slope: an exponential tail, which is a guess where nothing was measured. A
    percentile below the one before counts as that one.
    """

    measured_noise_least: Array = _percentile("least measured", 20e-9)
    measured_noise_percentile_10: Array = _percentile("10th percentile of measured", 50e-9)
    measured_noise_percentile_50: Array = _percentile("median of measured", 100e-9)
    measured_noise_percentile_90: Array = _percentile("90th percentile of measured", 200e-9)
    measured_noise_percentile_99: Array = _percentile("99th percentile of measured", 350e-9)
    measured_noise_percentile_99_9: Array = _percentile("99.9th percentile of measured", 600e-9)
    measured_noise_percentile_99_99: Array = _percentile("99.99th percentile of measured", 1e-6)

    def _pieces(self) -> list[tuple[float, Array, Array]]:
        """Hazard and value where each piece begins, and its slope; slopes are >= 0."""
        knots = [
            self.measured_noise_least,
            self.measured_noise_percentile_10,
            self.measured_noise_percentile_50,
            self.measured_noise_percentile_90,
            self.measured_noise_percentile_99,
            self.measured_noise_percentile_99_9,
            self.measured_noise_percentile_99_99,
        ]
        made, value = [], knots[0]
        for start, end, knot in zip(HAZARDS, HAZARDS[1:], knots[1:], strict=False):
            slope = jnp.maximum(knot - value, 0.0) / (end - start)
            made.append((start, value, slope))
            value = jnp.maximum(value, knot)
        return made

    def quantile(self, level: Level) -> Array:
        """Piecewise linear in the hazard."""
        total = self.measured_noise_least + jnp.zeros_like(level.hazard)
        for start, low, slope in self._pieces():
            here = low + slope * (level.hazard - start)
            total = jnp.where(level.hazard > start, here, total)
        return total

    def exponent(self, value: Array) -> Array:
        """-log F by the inverse of the pieces; where the quantile jumps, the upper end."""
        pieces = self._pieces()
        hazard = jnp.zeros_like(value)
        for start, low, slope in pieces:
            safe = jnp.maximum(slope, 1e-18)
            inside = start + (value - low) / safe
            hazard = jnp.where(value >= low, inside, hazard)
        return complement(jnp.maximum(hazard, SMALLEST))

    def moments(self) -> tuple[Array, Array]:
        """Mean and deviation of the pieces, in closed form.

        With s_i the slopes and S_i = exp(-h_i): E X = least + sum over pieces of
        s_i (S_i - S_(i+1)), and E (X - least)^2 from the same integrals by parts.
        """
        pieces = self._pieces()
        least = self.measured_noise_least
        ends = (*HAZARDS[1 : len(pieces)], None)
        mean, square = jnp.zeros_like(least), jnp.zeros_like(least)
        for (start, low, slope), end in zip(pieces, ends, strict=True):
            first = _survival(start)
            last = 0.0 if end is None else _survival(end)
            width = 0.0 if end is None else end - start
            gap = low - least
            # integral of S dx and of 2 (x - least) S dx over the piece
            mean = mean + slope * (first - last)
            square = square + 2.0 * slope * (
                gap * (first - last) + slope * (first - last * (1.0 + width))
            )
        return least + mean, jnp.sqrt(jnp.maximum(square - mean * mean, 0.0))

    def body(self) -> Body:
        """The lognormal law with as many deviations from the mean to the percentile 99.9."""
        mean, deviation = self.moments()
        reach = (self.measured_noise_percentile_99_9 - mean) / jnp.maximum(deviation, 1e-18)
        over = jnp.clip(reach - 3.09, 0.0, 8.0)
        return Body("lognormal", over * (0.205 - 0.0075 * over), deviation)


def _survival(hazard: float) -> float:
    return 2.718281828459045 ** (-hazard)


def empirical(noise: EmpiricalNoise) -> HopNoise:
    """Hop noise follows measured percentiles."""
    return noise
