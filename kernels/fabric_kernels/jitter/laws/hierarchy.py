"""Hierarchical all-reduce hop by hop, noise in the domains too, without barriers between stages."""

import jax
import jax.numpy as jnp
from jax import Array

from fabric_kernels.jitter.laws.events import Hops

_STAGE = 2**24  # numbers of one stage


def hierarchical_finish(
    shape: tuple[int, int], hops: Hops, like: Array, *, doubling: bool = False
) -> Array:
    """Finishing time (s) of `shape` = (ranks of a domain, domains), both known when compiled.

    Reduce-scatter on the ring of every domain, all-reduce across the domains on a rail for every
    rank of a domain (a ring, or exchanges at distance 1, 2, 4 ...), all-gather on the ring of the
    domain. A rank starts a stage when its own part of the one before is done. For comparison with
    the sum of the stages' laws, which is an upper bound; exact in kind, and as costly as its hops.
    """
    ranks, domains = shape
    done = jnp.zeros((ranks, domains, *like.shape), like.dtype)
    done = _ring(done, 0, ranks - 1, hops)
    across = hops._replace(first=hops.first + jnp.uint32(_STAGE))
    if doubling:
        done = _pairs(done, domains.bit_length() - 1, across)
    else:
        done = _ring(done, 1, 2 * (domains - 1), across)
    last = hops._replace(first=hops.first + jnp.uint32(2 * _STAGE))
    return jnp.max(_ring(done, 0, ranks - 1, last), axis=(0, 1))


def _noise(done: Array, step: Array, hops: Hops) -> Array:
    """Noise of all ranks of one step, in the shape of `done`."""
    many = done.shape[0] * done.shape[1]
    first = hops.first + step.astype(jnp.uint32) * jnp.uint32(many)
    return hops._replace(first=first).of(many, jnp.uint32(0), done[0, 0]).reshape(done.shape)


def _ring(done: Array, axis: int, steps: int, hops: Hops) -> Array:
    def step(k: Array, done: Array) -> Array:
        return jnp.maximum(done, jnp.roll(done, 1, axis=axis)) + _noise(done, k, hops)

    return jax.lax.fori_loop(0, steps, step, done)


def _pairs(done: Array, exchanges: int, hops: Hops) -> Array:
    domain = jnp.arange(done.shape[1], dtype=jnp.int32)

    def step(k: Array, done: Array) -> Array:
        partner = jnp.take(done, domain ^ (jnp.int32(1) << k), axis=1)
        return jnp.maximum(done, partner) + _noise(done, k, hops)

    return jax.lax.fori_loop(0, exchanges, step, done)
