"""The longest chain of stalls in a ring: how many of them does the last rank wait for?"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.lax import stop_gradient

from fabric_kernels.maths.chain_coefficients import CHAIN, TURNS
from fabric_kernels.maths.normal import normal_quantile
from fabric_kernels.uniform import Uniform


class Chain(NamedTuple):
    """Law of the number of equal stalls on the critical path, given how many there are."""

    mean: Array
    deviation: Array
    skewness: Array
    stalls: Array


def chain_law(stalls: Array, ranks: Array, turns: Array) -> Chain:
    """Law of the number of equal stalls on the critical path of a ring without barrier.

        mean = L(n) + (n - L(n)) / N

    `stalls` n happen anywhere in the steps of `ranks` N, which carry a message `turns` h times
    round the ring: h = steps / (N - 1), 2 for an all-reduce, 1 for one phase, more for calls that
    follow each other. L(n), about sqrt(h n), is the longest chain of n random points on a
    cylinder of height h circumferences, one point after another if a message can get from one to
    the other: last-passage percolation with rare, equal weights, as of Ulam's problem (Aldous and
    Diaconis, Bull. AMS 36(4), 1999). Simulated (kernels/constants/chain_length.py) up to 2000
    points and 16 turns; its ratio to sqrt(n) is interpolated in log n and log h. More turns are
    as many rings of 16 one after another. Beyond 2000 points the last ratio to sqrt(h n) is kept,
    1.030 for an all-reduce, which truly falls slowly to 1, and the deviation grows as n^(1/6).
    (n - L) / N are stalls that meet in one message, where few ranks must share many.

    Against event-level rings the mean is exact for N = 1 and n <= 1, within 7 % for 2 to 8 ranks
    and within 3 % beyond.
    """
    stalls, turns = stop_gradient(stalls), stop_gradient(jnp.maximum(turns, 1e-3))
    longer = jnp.maximum(turns / TURNS[-1], 1.0)
    points = stalls / longer
    height = _place(jnp.log(jnp.clip(turns, TURNS[0], TURNS[-1])), _HEIGHTS)
    many = jnp.maximum(points / CHAIN[-1][0], 1.0)
    at = _place(jnp.log(jnp.clip(points, 1.0, CHAIN[-1][0])), _POINTS)
    logarithm, deviation, skewness = _interpolated(at, height)
    length = longer * jnp.exp(logarithm) * jnp.sqrt(jnp.minimum(jnp.maximum(points, 1.0), 2e3))
    length = jnp.where(points < 1, stalls, length * jnp.sqrt(many))
    length = jnp.minimum(length, stalls)
    deviation = deviation * jnp.exp(jnp.log(many) / 6) * jnp.sqrt(longer)
    shared = 1 / ranks
    return Chain(
        length + (stalls - length) * shared,
        jnp.where(points > 1, deviation * (1 - shared), 0.0),
        skewness / jnp.sqrt(longer),
        stalls,
    )


def chain_length(stalls: Array, ranks: Array) -> Array:
    """Mean number of equal stalls on the critical path of a ring all-reduce (`chain_law`)."""
    return chain_law(stalls, ranks, jnp.full_like(ranks, 2.0)).mean


def chain_quantile(chain: Chain, u: Uniform, score: Array | None = None) -> Array:
    """Whole number of stalls on the critical path at the level of u.

        floor(mean + 1/2 + s (z + skewness (z^2 - 1) / 6)),  s^2 = deviation^2 - 1/12

    the Cornish-Fisher expansion of a law that rounding makes 1/12 wider (Sheppard's correction),
    between 1 and n; where mean and deviation leave room for two neighbouring numbers only, those
    two, floor(mean + u). `score` stands for the normal score z of u where a caller has another.
    """
    z = jnp.clip(normal_quantile(u) if score is None else score, -8.0, 8.0)
    lower = jnp.floor(chain.mean)
    part = chain.mean - lower
    variance = chain.deviation * chain.deviation
    two = variance <= part * (1 - part) + 0.02
    spread = jnp.sqrt(jnp.maximum(variance - 1 / 12, 1e-6))
    bent = z + jnp.clip(chain.skewness, -0.5, 0.5) * (z * z - 1) / 6
    whole = jnp.floor(chain.mean + 0.5 + spread * bent)
    neighbour = lower + jnp.where(_at_least(u, 1 - part), 1.0, 0.0).astype(lower.dtype)
    sampled = jnp.where(two, jnp.where(part > 0, neighbour, lower), whole)
    return jnp.clip(sampled, jnp.minimum(chain.stalls, 1.0), chain.stalls)


def _at_least(u: Uniform, level: Array) -> Array:
    """u >= level."""
    return jnp.where(u.upper, u.distance <= 1 - level, u.distance >= level)


class _Place(NamedTuple):
    """Where a number lies between two nodes of a table."""

    before: Array  # node
    share: Array  # of the way to the next


def _place(at: Array, nodes: tuple[float, ...]) -> _Place:
    before = jnp.zeros(at.shape, jnp.int32)
    for node in nodes[1:-1]:
        before = before + (at >= node).astype(jnp.int32)
    cells = jnp.asarray((nodes[:-1], np.diff(nodes)), at.dtype)
    start, width = cells.at[:, before].get(mode="promise_in_bounds")
    return _Place(before, jnp.clip((at - start) / width, 0.0, 1.0))


def _interpolated(points: _Place, height: _Place) -> Array:
    """All columns, along a leading axis; linear in both logarithms."""
    cells = jnp.asarray(_COLUMNS, points.share.dtype)
    corner = points.before * len(TURNS) + height.before

    def cell(number: Array) -> Array:
        return cells.at[:, number].get(mode="promise_in_bounds")

    def along(first: Array) -> Array:
        start = cell(first)
        return start + height.share[None] * (cell(first + 1) - start)

    low, high = along(corner), along(corner + len(TURNS))
    return low + points.share[None] * (high - low)


def _columns() -> tuple[tuple[float, ...], ...]:
    """Log of mean over sqrt(n), deviation and skewness: for every n from 1 on a row of turns."""
    one = [(1.0, 0.0, 0.0)] * len(TURNS)
    cells = np.array([one, *(row for _, row in CHAIN)])
    cells[..., 0] = np.log(cells[..., 0]) - 0.5 * np.array(_POINTS)[:, None]
    return tuple(tuple(cells[..., k].ravel().tolist()) for k in range(3))


_POINTS = (0.0, *(float(np.log(n)) for n, _ in CHAIN))
_HEIGHTS = tuple(float(np.log(h)) for h in TURNS)
_COLUMNS = _columns()
