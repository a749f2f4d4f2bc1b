"""Words as a sweep draws them, for tests of their laws and of their bits."""

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from fabricarlo.sampling.addresses import stream_keys
from fabricarlo.sampling.sobol import reversed_words
from fabricarlo.sampling.words import low_words, narrow_words

STREAMS = ("switch_latency", "packet_loss_rate", "jitter.data.slowest")
DIMENSIONS = np.array([0, 1, 63])
REPLICATES = 4
Words = NDArray[np.uint32]

points = jax.jit(lambda index: reversed_words(index, DIMENSIONS))
narrow = jax.jit(narrow_words, static_argnums=0)
low = jax.jit(low_words)


def keys_of(seed: int, replicates: int = REPLICATES) -> tuple[jax.Array, jax.Array]:
    table = stream_keys(seed, STREAMS, replicates, 0)
    return jnp.asarray(table[:, :, 0, None]), jnp.asarray(table[:, :, 1, None])


def words_of(sampler: str, index: Words, seed: int = 1, replicates: int = REPLICATES) -> Words:
    """[slot, replicate, column] of the samples `index`, the same in every replicate."""
    columns = jnp.asarray(index)
    rows = jnp.tile(columns[None], (replicates, 1))
    return np.asarray(narrow(sampler, points(columns), keys_of(seed, replicates), rows))
