"""The noise of one exchange hop by hop: the max-plus recursions themselves.

Every rank waits for its messages, and every message has a noise of its own; the arrays have the
ranks as their leading axis. The only approximation is none; what limits is the count of hops.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from fabric_kernels.maths.order_statistics import Level
from fabric_kernels.noise import HopNoise
from fabric_kernels.pattern import Barrier, Doubling, Line, Pattern, Ring, Traffic, Tree
from fabric_kernels.uniform import Uniform, WideUniform

RANKS = 256
"""Most ranks, leaves or messages of a round."""

RUNS = 64
"""Most calls of a pattern, over all groups, trees and parallel copies of it."""

_STEP = 1024  # numbers of one step: up to 511 hops and room
_STEPS = 1024  # most steps of one call
_CALL = _STEP * _STEPS  # numbers of one call
_SIZES = (16, 64, RANKS)


class Hops(NamedTuple):
    """Where hop noise comes from: the law, the uniforms and the first of their numbers."""

    noise: HopNoise
    wide: WideUniform
    first: Array  # uint32

    def of(self, ranks: int, step: Array, like: Array) -> Array:
        """The noise of hops 0 .. ranks - 1 of a step, [ranks, *shape of like]."""
        number = jnp.arange(ranks, dtype=jnp.uint32) + (self.first + step * jnp.uint32(_STEP))
        shaped = number.reshape((ranks,) + (1,) * like.ndim)
        one = jax.tree.map(lambda x: x[None] if jnp.ndim(x) else x, self.noise)
        noise = one.quantile(level_of_uniform(self.wide.at(shaped)))
        return jnp.broadcast_to(noise, (ranks, *like.shape)).astype(like.dtype)


def level_of_uniform(u: Uniform) -> Level:
    """The level F = u: two logarithms."""
    near, far = -jnp.log(u.distance), -jnp.log1p(-u.distance)
    return Level(u.upper, u.distance, jnp.where(u.upper, far, near), jnp.where(u.upper, near, far))


def event_stall(traffic: Traffic, noise: HopNoise, wide: WideUniform) -> Array:
    """Noise of one exchange (s): its patterns one after another, the slowest of its groups.

    Groups, trees and rings side by side are simulated one by one, as are calls one after another,
    which start together. NaN where a pattern has more than 256 ranks (leaves, messages of a
    round), more than 1024 steps (64 chunks of a tree), or more than 64 calls over all its copies.
    """
    drawn = wide.at(jnp.zeros((1,) * (jnp.ndim(traffic.groups) + 1), jnp.uint32)).distance
    leaves = jax.tree.leaves((traffic, noise))
    shape = jnp.broadcast_shapes(drawn.shape[1:], *(jnp.shape(leaf) for leaf in leaves))
    like = jnp.zeros(shape, jnp.result_type(traffic.groups))
    copies = [jnp.maximum(traffic.groups * _parallel(p), 1.0) for p in traffic.patterns]
    total = like
    for index, (pattern, many) in enumerate(zip(traffic.patterns, copies, strict=True)):
        first = jnp.uint32(index * RUNS * _CALL)
        total = total + _pattern(pattern, many + like, Hops(noise, wide, first), like)
    return total


def _parallel(pattern: Pattern) -> Array:
    match pattern:
        case Tree():
            return pattern.parallel * pattern.trees
        case Ring() | Doubling():
            return pattern.parallel
        case _:
            return jnp.ones_like(pattern.repeats)


def _pattern(pattern: Pattern, copies: Array, hops: Hops, like: Array) -> Array:
    """The slowest of `copies` of a pattern, each of `repeats` calls."""
    size, steps = _size_of(pattern)
    fits = (size <= RANKS) & (copies * pattern.repeats <= RUNS) & (steps <= _STEPS) & (like == 0)
    # a lane that does not fit must not make the others of its tile wait
    pattern = jax.tree.map(lambda count: jnp.where(fits, count, 1.0), pattern)
    call = _call_of(pattern, like)
    calls = pattern.repeats + like
    runs = jnp.where(fits, copies * calls, 0.0)

    def run(number: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        """One more call; a copy of the pattern ends with its last one."""
        sum_of_calls, slowest = state
        here = hops._replace(first=hops.first + number.astype(jnp.uint32) * jnp.uint32(_CALL))
        count = number.astype(like.dtype)
        sum_of_calls = sum_of_calls + jnp.where(count < runs, call(here), 0.0)
        ends = jnp.floor((count + 1.0) / calls) * calls == count + 1.0
        slowest = jnp.where(ends & (count < runs), jnp.maximum(slowest, sum_of_calls), slowest)
        return jnp.where(ends, 0.0, sum_of_calls), slowest

    lowest = jnp.full_like(like, -jnp.inf)
    many = jnp.max(runs).astype(jnp.int32)
    _, slowest = jax.lax.fori_loop(0, many, run, (like, lowest))
    return jnp.where(fits, jnp.where(runs > 0, slowest, 0.0), jnp.nan)


def _size_of(pattern: Pattern) -> tuple[Array, Array]:
    """Ranks (leaves, messages of a round) and steps of one call."""
    match pattern:
        case Ring():
            return pattern.ranks, pattern.steps
        case Tree():
            # legs and their levels of one chunk, one chunk after another
            return jnp.exp2(pattern.levels), 16.0 * pattern.chunks
        case Doubling():
            return pattern.ranks, pattern.levels
        case Barrier():
            return pattern.messages, pattern.rounds
        case Line():
            return jnp.ones_like(pattern.hops), pattern.hops / 16.0


def _call_of(pattern: Pattern, like: Array) -> Callable[[Hops], Array]:
    """The finishing time of a call."""
    match pattern:
        case Ring():
            return lambda hops: ring_finish(pattern, hops, like)
        case Tree():
            return lambda hops: tree_finish(pattern, hops, like)
        case Doubling():
            return lambda hops: doubling_finish(pattern, hops, like)
        case Barrier():
            return lambda hops: barrier_finish(pattern, hops, like)
        case Line():
            return lambda hops: line_finish(pattern, hops, like)


def _smallest(size: Array, run: Callable[[int], Array]) -> Array:
    """`run` with the smallest of few static sizes that holds every lane: the same numbers."""
    fitting = jnp.where(size <= RANKS, size, 0.0)
    which = sum((jnp.max(fitting) > s).astype(jnp.int32) for s in _SIZES[:-1])
    return jax.lax.switch(which, [lambda s=s: run(s) for s in _SIZES])


def ring_finish(ring: Ring, hops: Hops, like: Array) -> Array:
    """t[i, k+1] = max(t[i, k], t[i-1, k]) + w[i, k]; the largest t after `steps` steps.

    Where only some links cross the fabric, from domain to domain, w of the others is 0.
    """
    last = jnp.clip(ring.ranks + like, 1.0, RANKS).astype(jnp.int32)[None] - 1
    steps = ring.steps + like

    def run(size: int) -> Array:
        rank = jnp.arange(size, dtype=jnp.int32).reshape((size,) + (1,) * like.ndim)
        crosses = _crosses(ring, rank.astype(like.dtype))

        def step(k: Array, done: Array) -> Array:
            wrapped = jnp.take_along_axis(done, jnp.minimum(last, size - 1), axis=0)
            # apart, or the noise is drawn element by element inside the concatenation
            before = jax.lax.optimization_barrier(jnp.concatenate([wrapped, done[:-1]], axis=0))
            hop = hops.of(size, k.astype(jnp.uint32), like)
            # ranks beyond the last only follow, and after the last step nothing costs anything
            cost = jnp.where(crosses & (k.astype(like.dtype) < steps[None]), hop, 0.0)
            return jnp.maximum(done, before) + cost

        most = jnp.minimum(jnp.max(steps), float(_STEPS)).astype(jnp.int32)
        done = jax.lax.fori_loop(0, most, step, jnp.zeros((size, *like.shape), like.dtype))
        return jnp.max(jnp.where(rank <= last, done, -jnp.inf), axis=0)

    return _smallest(ring.ranks, run)


def _crosses(ring: Ring, rank: Array) -> Array:
    """Whether the link that ends at a rank crosses the fabric."""
    if ring.crossings is None:
        return rank >= 0
    # steps / crossings is ranks of a domain, less at most 1/2 for a ring of two domains
    ratio = ring.steps / jnp.maximum(ring.crossings, 1.0)
    domain = jnp.maximum(jnp.floor(ratio + 0.501), 1.0)[None]
    return rank - domain * jnp.floor((rank + 0.5) / domain) < 0.5


def doubling_finish(doubling: Doubling, hops: Hops, like: Array) -> Array:
    """t[i] = max(t[i], t[i xor d]) + w[i] for d = 1, 2, 4 ... and, both ways, back again."""
    ranks = doubling.ranks + like
    depth = jnp.log2(jnp.maximum(ranks, 1.0))
    back = doubling.levels > 1.5 * depth

    def run(size: int) -> Array:
        rank = jnp.arange(size, dtype=jnp.int32)
        bits = size.bit_length() - 1

        def step(k: Array, done: Array) -> Array:
            # out over all distances and back: k and 2 bits - 1 - k are the same distance
            bit = jnp.minimum(k, 2 * bits - 1 - k)
            partner = jnp.take(done, rank ^ (jnp.int32(1) << bit), axis=0)
            used = (bit.astype(like.dtype) + 0.5 < depth) & ((k < bits) | back)
            # numbered so that a larger static size draws the same hops
            number = jnp.where(k < bits, bit, 16 + bit).astype(jnp.uint32)
            later = jnp.maximum(done, partner) + hops.of(size, number, like)
            return jnp.where(used[None], later, done)

        zeros = jnp.zeros((size, *like.shape), like.dtype)
        done = jax.lax.fori_loop(0, 2 * bits, step, zeros)
        places = rank.astype(like.dtype).reshape((size,) + (1,) * like.ndim)
        return jnp.max(jnp.where(places < ranks[None], done, -jnp.inf), axis=0)

    return _smallest(doubling.ranks, run)


def tree_finish(tree: Tree, hops: Hops, like: Array) -> Array:
    """Chunk after chunk up a binary tree of `levels`, and down again where there are two legs.

    An edge carries its chunks in order; a node sends a chunk when it has all of it.
    """
    depth, chunks = tree.levels + like, tree.chunks + like

    def run(size: int) -> Array:
        most = size.bit_length() - 1
        zeros = [jnp.zeros((2 ** (most - h), *like.shape), like.dtype) for h in range(most)]
        falls = [jnp.zeros((2 ** (d + 1), *like.shape), like.dtype) for d in range(most)]

        def chunk(c: Array, state: tuple[list[Array], list[Array], Array]):
            up, down, finish = state
            number = c.astype(jnp.uint32) * jnp.uint32(16)
            up, root = _rise(up, hops, number, depth)
            down, leaves = _fall(down, root, hops, number + jnp.uint32(8), depth)
            now = jnp.where(tree.legs > 1.5, leaves, root)
            return up, down, jnp.where(c.astype(like.dtype) < chunks, now, finish)

        last = jnp.minimum(jnp.max(chunks), _STEPS / 16.0).astype(jnp.int32)
        return jax.lax.fori_loop(0, last, chunk, (zeros, falls, like))[2]

    return _smallest(jnp.exp2(tree.levels), run)


def _rise(edges: list[Array], hops: Hops, number: Array, depth: Array) -> tuple[list, Array]:
    """One chunk from the leaves up: the edges' new times, and when the root of `depth` has it."""
    made, ready, root = [], None, jnp.zeros_like(depth)
    for height, edge in enumerate(edges):
        start = edge if ready is None else jnp.maximum(edge, ready)
        arrived = start + hops.of(edge.shape[0], number + jnp.uint32(height), depth)
        made.append(arrived)
        ready = jnp.maximum(arrived[0::2], arrived[1::2])
        root = jnp.where(jnp.abs(depth - (height + 1)) < 0.5, ready[0], root)
    return made, root


def _fall(
    edges: list[Array], root: Array, hops: Hops, number: Array, depth: Array
) -> tuple[list, Array]:
    """One chunk from the root down: the edges' new times, and when the last leaf has it."""
    made, ready, last = [], root[None], jnp.zeros_like(depth)
    for level, edge in enumerate(edges):
        start = jnp.maximum(edge, jnp.repeat(ready, 2, axis=0))
        ready = start + hops.of(edge.shape[0], number + jnp.uint32(level), depth)
        made.append(ready)
        last = jnp.where(jnp.abs(depth - (level + 1)) < 0.5, jnp.max(ready, axis=0), last)
    return made, last


def barrier_finish(barrier: Barrier, hops: Hops, like: Array) -> Array:
    """The sum over rounds of the largest noise of all messages."""
    messages, rounds = barrier.messages + like, barrier.rounds + like

    def run(size: int) -> Array:
        message = jnp.arange(size, dtype=like.dtype).reshape((size,) + (1,) * like.ndim)

        def step(k: Array, total: Array) -> Array:
            hop = hops.of(size, k.astype(jnp.uint32), like)
            largest = jnp.max(jnp.where(message < messages[None], hop, -jnp.inf), axis=0)
            return total + jnp.where(k.astype(like.dtype) < rounds, largest, 0.0)

        most = jnp.minimum(jnp.max(rounds), float(_STEPS)).astype(jnp.int32)
        return jax.lax.fori_loop(0, most, step, like)

    return _smallest(barrier.messages, run)


def line_finish(line: Line, hops: Hops, like: Array) -> Array:
    """The sum of the noise of all hops."""
    count = line.hops + like

    def step(k: Array, total: Array) -> Array:
        start = k.astype(like.dtype) * 16.0
        place = jnp.arange(16, dtype=like.dtype).reshape((16,) + (1,) * like.ndim)
        hop = hops.of(16, k.astype(jnp.uint32), like)
        return total + jnp.sum(jnp.where(start + place < count[None], hop, 0.0), axis=0)

    most = jnp.minimum(jnp.max(jnp.ceil(count / 16.0)), float(_STEPS))
    return jax.lax.fori_loop(0, most.astype(jnp.int32), step, like)
