"""The slowest of N by its throttle budget: what a part at its temperature limit may still switch.

    B = (T_limit - T_medium) / R - L,   clock fraction = clip(B / P_dynamic, least, 1)^(1 / gamma)

R and the leakage L are lognormal and independent. The clock rises with B alone, so the slowest part
is that of the smallest budget: no reliability method is needed, and no runaway can occur.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from fabric_kernels.maths.normal import log_survival
from fabric_kernels.maths.order_statistics import level_of_largest
from fabric_kernels.maths.root import increasing_root

_NODES, _REACH = 161, 9.0  # trapezoid over the leakage's normal: spectral for smooth integrands
_STEPS = 80


class Budget(NamedTuple):
    """A population of parts at their temperature limit."""

    allowance: Array  # T_limit - T_medium, K
    resistance: Array  # median, K W-1
    resistance_spread: Array  # deviation of its log, above 0
    leakage: Array  # median, W
    leakage_spread: Array  # deviation of its log


def smallest_budget(parts: Budget, count: Array, exponential: Array) -> Array:
    """The smallest B (W) of `count` parts, below it with probability 1 - exp(-exponential).

        P(B < y) = E Phi(-log(allowance / ((y + L) R)) / spread of R),   over the leakage L

    by a trapezoid rule in the normal score of L, inverted for the N-th part of the exponential.
    Within 1e-9 in float64.
    """
    level = level_of_largest(count, exponential)
    target = -level.hazard  # log of 1 - exp(-E / N)
    zero = jnp.zeros_like(target + parts.allowance)
    lowest_leakage = parts.leakage * jnp.exp(-_REACH * parts.leakage_spread)
    highest_leakage = parts.leakage * jnp.exp(_REACH * parts.leakage_spread)
    reach = 1.5 * _REACH * parts.resistance_spread
    ends = (
        parts.allowance / parts.resistance * jnp.exp(-reach) - highest_leakage,
        parts.allowance / parts.resistance * jnp.exp(reach) - lowest_leakage,
    )
    bracket = ends[0] + zero, ends[1] + zero
    start = parts.allowance / parts.resistance - parts.leakage + zero

    def excess(budget: Array) -> Array:
        return _log_probability(parts, budget) - target

    return increasing_root(excess, bracket, start, _STEPS)


def _log_probability(parts: Budget, budget: Array) -> Array:
    step = 2.0 * _REACH / (_NODES - 1)

    def add(number: Array, total: Array) -> Array:
        score = step * number.astype(total.dtype) - _REACH
        leaking = parts.leakage * jnp.exp(score * parts.leakage_spread)
        drawn = jnp.maximum((budget + leaking) * parts.resistance, 1e-30)
        above = jnp.log(parts.allowance / drawn) / parts.resistance_spread
        weight = step * 0.3989422804014327 * jnp.exp(-0.5 * score * score)
        return total + weight * jnp.exp(log_survival(jnp.clip(above, -30.0, 30.0)))

    total = jax.lax.fori_loop(0, _NODES, add, jnp.zeros_like(budget))
    return jnp.log(jnp.maximum(total, 1e-35))


def clock_of_budget(budget: Array, dynamic_power: Array, exponent: Array, least: Array) -> Array:
    """Clock as a share of full clock: dynamic power grows as its `exponent`-th power."""
    share = jnp.clip(budget / dynamic_power, least, 1.0)
    return jnp.exp(jnp.log(share) / exponent)
