"""How the ports of a switch are split between the tier below and the tier above."""

import jax.numpy as jnp
from jax import Array

ROUNDING = 1e-3
"""Less than this short of a whole port counts as whole: quotients are not exact."""


def split_ports(radix: Array, oversubscription: Array) -> tuple[Array, Array]:
    """Whole ports (down, up) of a switch that is not in the top tier.

        up = floor(radix / (1 + oversubscription)), at least 1
        down = floor(oversubscription up), at most radix - up

    No more than `oversubscription` ports down for each port up; up to 1 + oversubscription ports
    stay free where the radix does not divide.
    """
    up = jnp.maximum(jnp.floor(radix / (1.0 + oversubscription) + ROUNDING), 1.0)
    down = jnp.minimum(jnp.floor(oversubscription * up + ROUNDING), radix - up)
    return jnp.maximum(down, 1.0), up


def whole_quotient(number: Array, by: Array) -> Array:
    """floor(number / by) of two whole numbers; half a unit keeps an inexact division right."""
    return jnp.floor((number + 0.5) / by)


def quotient_above(number: Array, by: Array) -> Array:
    """ceil(number / by) of two whole numbers below 2^22."""
    return jnp.floor((number + by - 0.5) / by)
