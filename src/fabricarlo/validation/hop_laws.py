"""Laws of hop noise as reference tables write them, and hops of our own to simulate with."""

import math
import re
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from fabric_kernels.noise import HopNoise
from fabric_kernels.noise.exponential import ExponentialNoise
from fabric_kernels.noise.gamma import GammaNoise
from fabric_kernels.noise.generalised_pareto import ParetoNoise
from fabric_kernels.noise.lognormal import LognormalNoise
from fabric_kernels.noise.normal import NormalNoise
from fabric_kernels.noise.spikes import SpikyNoise
from fabric_kernels.noise.uniform import UniformNoise
from fabric_kernels.noise.weibull import WeibullNoise
from fabric_kernels.quantity import quantities
from fabric_kernels.uniform import Uniform, WideUniform
from fabricarlo.sampling.uniforms import uniform
from fabricarlo.sampling.words import wide_words

ENOUGH = 4.9
"""Standard errors within which two estimates of one number lie, but once in a million."""


class Named(NamedTuple):
    """A law by its name in a table, of one scale."""

    family: str
    shape: float

    @property
    def weight(self) -> str:
        """How heavy its tail is: light, heavy, very heavy or endless (infinite variance)."""
        bounds = {
            "lognormal": (0.75, 1.1, math.inf), "gpd": (0.2, 0.3, 0.5),
            "weibull": (-0.75, -0.45, math.inf), "spike": (-5e-3, -1e-12, math.inf),
        }  # fmt: skip
        if self.family not in bounds:
            return "light"
        rising = self.family in ("lognormal", "gpd")
        value = self.shape if rising else -self.shape
        light, heavy, very = bounds[self.family]
        if value <= light:
            return "light"
        if self.family == "spike":
            return "very heavy"
        return "heavy" if value <= heavy else "very heavy" if value < very else "endless"


def named(text: str) -> Named | None:
    """exp, normal, uniform, or a family and its number: gamma4, gpd0.25, spike1e-3; None else."""
    if text in ("exp", "normal", "uniform"):
        return Named(text, 0.0)
    found = re.fullmatch(r"(gamma|weibull|lognormal|gpd|spike)([0-9.]+(?:e[-+]?\d+)?)", text)
    return Named(found[1], float(found[2])) if found else None


def law_of(law: Named) -> HopNoise:
    """The law as one lane, [1, 1]; a spike of length 1 is the least that our spikes can spread."""
    shape = law.shape
    made: dict[str, Callable[[], tuple[type, tuple[float, ...]]]] = {
        "exp": lambda: (ExponentialNoise, (0.0, 1.0)),
        "normal": lambda: (NormalNoise, (1.0,)),
        "uniform": lambda: (UniformNoise, (0.0, 1.0)),
        "gamma": lambda: (GammaNoise, (1.0, shape)),
        "weibull": lambda: (WeibullNoise, (1.0, shape)),
        "lognormal": lambda: (LognormalNoise, (1.0, shape)),
        "gpd": lambda: (ParetoNoise, (1.0, shape)),
        "spike": lambda: (SpikyNoise, (1e-9, 0.02, shape, 1.0, 1e-6)),
    }
    kind, values = made[law.family]()
    return filled(kind, *values)


def filled(kind: type, *values: float) -> HopNoise:
    """A record of this kind of law with these numbers, one lane."""
    return kind(**{n: lane(v) for n, v in zip(quantities(kind), values, strict=True)})


def lane(value: float) -> Array:
    """One lane, [1, 1]."""
    return jnp.full((1, 1), value, jnp.float32)


def lanes(values: np.ndarray) -> Array:
    """The values as lanes, [1, column]."""
    return jnp.asarray(np.asarray(values)[None, :], jnp.float32)


class Threefry(WideUniform):
    """The uniforms of samples 0 .. count - 1 of one key, as a sweep would draw them."""

    def __init__(self, seed: int, index: Array) -> None:
        self._seed, self._index = seed, index

    def at(self, number: Array) -> Uniform:
        """The first word of Threefry at (sample, number)."""
        ones = (1,) * number.ndim
        index = self._index.reshape((1,) * (number.ndim - 2) + self._index.shape)
        key = jnp.full(ones, self._seed, jnp.uint32), jnp.full(ones, 20261130, jnp.uint32)
        return uniform(wide_words(key, index, number)[0])


def samples(count: int) -> Array:
    """Indices of samples, [1, count]."""
    return jnp.arange(count, dtype=jnp.uint32)[None, :]
