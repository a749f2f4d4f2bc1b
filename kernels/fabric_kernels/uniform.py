"""One uniform number, kept so that neither tail is lost in float32."""

import abc
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array


class Uniform(NamedTuple):
    """A point u of (0, 1), held by its nearer end and the distance to it.

    u is never one float32: 1 - 1e-9 would round to 1. Quantile functions take the distance and
    work on the survival side where `upper` is true.

    A stage that wants a uniform of its own annotates a parameter with
    ``Annotated[Uniform, "slot"]``; the slot's stream is ``question.slot``.
    """

    upper: Array  # bool: u = 1 - distance, else u = distance
    distance: Array  # in (0, 1/2]

    @property
    def value(self) -> Array:
        """u itself, rounded to the working precision (may round to 1)."""
        return jnp.where(self.upper, 1.0 - self.distance, self.distance)


class DeepUniform(Uniform):
    """A uniform of 63 bits instead of 31: the distance goes down to 2^-65, not 2^-33."""


class WideUniform(abc.ABC):
    """As many independent uniforms a sample as a stage asks for, made where they are used.

    A stage annotates a parameter with ``Annotated[WideUniform, "slot", count]`` and calls `at`
    inside its own loop, so that a simulation of single events holds no more of them than it needs
    at once. It asks for numbers below `count` only; without a count it cannot be run in sweeps of
    many steps a sample, whose steps take `count` numbers each.
    """

    @abc.abstractmethod
    def at(self, number: Array) -> Uniform:
        """The uniforms of this number (uint32, below 2^32) of every sample.

        `number` has axes of its own before those of the samples, with 1 in place of theirs:
        shape [N, 1, 1] gives uniforms [N, replicate, column].
        """
