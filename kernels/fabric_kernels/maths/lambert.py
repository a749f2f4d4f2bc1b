"""Lambert W on its principal branch, as the growth of a quantity that feeds itself."""

import jax.numpy as jnp
from jax import Array

_E = 2.718281828459045
# (G - 1) / q, lowest power first; from kernels/constants/feedback_growth.py
_GROWTH = (
    0.7357588135, 0.4441459873, 0.2496651863, 0.1417067164, 0.03766864852,
    0.1615764837, -0.23802206, 0.3302875756, -0.2154378846, 0.07093222195,
)  # fmt: skip


def feedback_growth(feedback: Array) -> Array:
    """Smaller root G in [1, e] of G = exp(feedback G), for feedback in [0, 1/e].

        G = exp(-W0(-feedback)) = -W0(-feedback) / feedback

    Corless et al., "On the Lambert W function", Adv. Comput. Math. 5, 1996. Relative error below
    6e-8 of the fit, to which float32 adds rounding; float64 takes one Newton step more, to 1e-13
    (1e-9 within 1e-6 of the end). Above 1/e there is no root; there the end, e, is returned.
    """
    scaled = jnp.minimum(_E * feedback, 1.0)
    q = scaled / (1.0 + jnp.sqrt(1.0 - scaled))
    total = jnp.zeros_like(q)
    for coefficient in reversed(_GROWTH):
        total = total * q + coefficient
    growth = 1.0 + q * total
    if growth.dtype != jnp.float64:
        return growth
    again = jnp.exp(scaled / _E * growth)
    slope = 1.0 - scaled / _E * again
    return growth - jnp.where(slope > 1e-6, (growth - again) / jnp.maximum(slope, 1e-6), 0.0)
