"""Properties of coolants, fitted between 20 and 65 degC.

Fits in t = T - 45 K to CoolProp 8.0.0 (Bell et al., Ind. Eng. Chem. Res. 53, 2014) at 3 bar:
INCOMP::MPG[0.25] (25 % propylene glycol by mass), water (IAPWS-95), and R1233zd(E) at saturation.
"""

import jax.numpy as jnp
from jax import Array


def _of(temperature: Array, constant: float, linear: float, square: float) -> Array:
    t = temperature - 45.0
    return constant + t * (linear + t * square)


def pg25_density(temperature: Array) -> Array:
    """Density (kg m-3) of 25 % propylene glycol; within 0.07."""
    return _of(temperature, 1007.22, -0.549191, -0.00257234)


def pg25_specific_heat(temperature: Array) -> Array:
    """Specific heat (J kg-1 K-1) of 25 % propylene glycol; within 0.1."""
    return _of(temperature, 3980.54, 2.36753, -0.00155836)


def water_density(temperature: Array) -> Array:
    """Density (kg m-3) of water; within 0.08."""
    return _of(temperature, 990.315, -0.413932, -0.00365847)


def water_specific_heat(temperature: Array) -> Array:
    """Specific heat (J kg-1 K-1) of water; within 0.9."""
    return _of(temperature, 4179.5, 0.163146, 0.0115284)


def r1233zd_latent_heat(temperature: Array) -> Array:
    """Heat of evaporation (J kg-1) of R1233zd(E); within 50."""
    return _of(temperature, 180363.0, -559.365, -1.6013)


def r1233zd_liquid_specific_heat(temperature: Array) -> Array:
    """Specific heat (J kg-1 K-1) of saturated liquid R1233zd(E); within 4."""
    return _of(temperature, 1232.35, 2.36816, 0.0)


def r1233zd_saturation_pressure(temperature: Array) -> Array:
    """Vapour pressure (Pa) of R1233zd(E); within 0.2 %."""
    return jnp.exp(_of(temperature, 12.4403, 0.0308614, -0.000113372))


def r1233zd_warming(temperature: Array, pressure_rise: Array) -> Array:
    """Rise (K) of the saturation temperature of R1233zd(E) with a small rise of pressure (Pa).

    dT = log(1 + dp / p) / (d log p / dT), from the vapour pressure at `temperature`.
    """
    slope = 0.0308614 - 2.0 * 0.000113372 * (temperature - 45.0)
    return jnp.log1p(pressure_rise / r1233zd_saturation_pressure(temperature)) / slope
