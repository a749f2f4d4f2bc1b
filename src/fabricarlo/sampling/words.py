"""Random words of a tile, uint32, for both samplers.

Axes of narrow slots are [slot, replicate, column]. Keys are those of `addresses`, as two arrays
of shape [slot, replicate, 1], or [slot, replicate, column] where columns have streams of their
own; a size of 1 stands for any. One array for all slots is the fastest form on CPU: slices of it
fuse into what reads them, and nothing is computed twice.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

from fabricarlo.sampling.scramble import scramble
from fabricarlo.sampling.threefry import threefry2x32

Key = tuple[Array, Array]


def narrow_words(sampler: str, reversed_words: Array | None, key: Key, index_low: Array) -> Array:
    """The word of every narrow slot, [slot, replicate, column].

    `index_low` [replicate, column] is n mod 2^32; its upper half is in the key. Under `sobol` the
    points are `reversed_words` [slot, column], which the replicates share, and the index is not
    read; under `random` the word is Threefry's first at counter (n, 0).
    """
    if sampler not in SAMPLERS:
        raise ValueError(f"sampler: {sampler!r} is unknown. Known: {', '.join(SAMPLERS)}.")
    return SAMPLERS[sampler](reversed_words, key, index_low)


def low_words(key: Key, index_low: Array) -> Array:
    """The second word of deep narrow slots: Threefry's second at counter (n, 0), same key."""
    return _at_zero(key, index_low)[1]


def wide_words(key: Key, index_low: Array, number: Array) -> tuple[Array, Array]:
    """Both words of draw `number` of a wide slot, or of a later step: Threefry at (n, number).

    The first word is the draw; the second is the low word of a deep one (unused, it costs nothing).
    Elementwise: key words, index and number have one rank or are scalars, for example
    [replicate, 1, 1], [replicate, column, 1] and [1, 1, number]. A number stays below 2^32 - 1.
    """
    return threefry2x32(key, (index_low, number))


def _at_zero(key: Key, index_low: Array) -> tuple[Array, Array]:
    return threefry2x32(key, (index_low[None], jnp.zeros_like(index_low)[None]))


def _sobol(reversed_words: Array | None, key: Key, _index_low: Array) -> Array:
    if reversed_words is None:
        raise ValueError("sampler sobol needs reversed_words; make them by sobol.reversed_words.")
    return scramble(reversed_words[:, None, :], key)


def _random(_reversed_words: Array | None, key: Key, index_low: Array) -> Array:
    return _at_zero(key, index_low)[0]


SAMPLERS: dict[str, Callable[[Array | None, Key, Array], Array]] = {
    "sobol": _sobol,
    "random": _random,
}
"""Sampler of narrow slots by the name that a spec gives it; the first is the default."""
