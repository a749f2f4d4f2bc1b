"""Event-level jitter against plain loops over the same hops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fabric_kernels.jitter.laws.events import Hops, event_stall
from fabric_kernels.jitter.laws.hierarchy import hierarchical_finish
from fabric_kernels.noise.exponential import ExponentialNoise
from fabric_kernels.pattern import Barrier, Doubling, Line, Pattern, Ring, Traffic, Tree
from fabric_kernels.uniform import Uniform, WideUniform
from tests.reference import event_jitter

COLUMNS = 3
ONE = jnp.ones((1, 1), jnp.float32)
NOISE = ExponentialNoise(exponential_noise_minimum=0 * ONE, exponential_noise_scale=ONE)


def mixed(number: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Bits of a number and a column, scrambled by multiplications (Murmur's finaliser)."""
    x = (np.asarray(number, np.uint64) * 3 + np.asarray(column, np.uint64) + 7) % 2**32
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        x = ((x ^ (x >> np.uint64(shift))) * np.uint64(factor)) % 2**32
    return x


def hop(number: int, column: int) -> float:
    """The hop noise of a number: exponential."""
    return float(-np.log((int(mixed(number, column)) + 0.5) / 2**32))


class Murmur(WideUniform):
    """The same uniforms in JAX, [1, COLUMNS]."""

    def at(self, number: jax.Array) -> Uniform:
        column = jnp.arange(COLUMNS, dtype=jnp.uint32)[None, None]
        x = number * jnp.uint32(3) + column + jnp.uint32(7)
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
            x = (x ^ (x >> jnp.uint32(shift))) * jnp.uint32(factor)
        # -log of it is exponential: the hazard, so the upper end is the small words
        upper = x < jnp.uint32(2**31)
        distance = (jnp.where(upper, x, ~x).astype(jnp.float32) + 0.5) * 2.0**-32
        return Uniform(upper, distance)


@jax.jit
def simulated(patterns: tuple[Pattern, ...], groups: jax.Array) -> jax.Array:
    return event_stall(Traffic(patterns, groups), NOISE, Murmur())


def number(value: float) -> jax.Array:
    return jnp.full((1, 1), value, jnp.float32)


def ring(ranks: float, steps: float, repeats: float = 1, parallel: float = 1) -> Ring:
    return Ring(number(ranks), number(steps), ONE, number(parallel), number(repeats))


def numbered(column: int, call: int = 0, offset: int = 0) -> event_jitter.Noise:
    """Hop noise by (step, place) of one call."""
    return lambda step, place: hop(call * 2**20 + step * 1024 + offset + place, column)


@pytest.mark.parametrize(("ranks", "steps"), [(2, 2), (5, 8), (16, 15), (17, 32), (65, 64)])
def test_a_ring_is_its_recursion(ranks: int, steps: int):
    found = np.asarray(simulated((ring(ranks, steps),), ONE))[0]
    exact = [event_jitter.ring(ranks, steps, numbered(c)) for c in range(COLUMNS)]
    np.testing.assert_allclose(found, exact, rtol=2e-6)


@pytest.mark.parametrize(("domains", "per_domain"), [(2, 3), (3, 8), (16, 2)])
def test_only_hops_between_domains_have_noise(domains: int, per_domain: int):
    ranks, steps = domains * per_domain, 2 * (domains * per_domain - 1)
    crossings = float(2 * domains - int(2.5 / per_domain))
    pattern = ring(ranks, steps)._replace(crossings=number(crossings))

    def across(column: int) -> event_jitter.Noise:
        noise = numbered(column)
        return lambda step, place: 0.0 if place % per_domain else noise(step, place)

    found = np.asarray(simulated((pattern,), ONE))[0]
    exact = [event_jitter.ring(ranks, steps, across(c)) for c in range(COLUMNS)]
    np.testing.assert_allclose(found, exact, rtol=2e-6)


def test_calls_add_and_groups_are_waited_for():
    def call(n: int, column: int) -> float:
        return event_jitter.ring(5, 8, numbered(column, n))

    found = np.asarray(simulated((ring(5, 8, repeats=2, parallel=2),), number(2.0)))[0]
    exact = [max(call(2 * g, c) + call(2 * g + 1, c) for g in range(4)) for c in range(COLUMNS)]
    np.testing.assert_allclose(found, exact, rtol=2e-6)


@pytest.mark.parametrize("levels", [1, 3, 6])
@pytest.mark.parametrize("ways", [1, 2])
def test_halving_and_doubling_is_its_recursion(levels: int, ways: int):
    pattern = Doubling(number(2**levels), number(ways * levels), ONE, ONE, ONE)
    out = [(2**bit, bit) for bit in range(levels)]
    back = [(2**bit, 16 + bit) for bit in reversed(range(levels))]
    distances = out + (back if ways == 2 else [])
    found = np.asarray(simulated((pattern,), ONE))[0]
    exact = [event_jitter.doubling(2**levels, distances, numbered(c)) for c in range(COLUMNS)]
    np.testing.assert_allclose(found, exact, rtol=2e-6)


@pytest.mark.parametrize(("depth", "chunks", "legs"), [(1, 1, 2), (3, 1, 1), (4, 3, 2), (5, 6, 1)])
def test_a_tree_is_its_recursion(depth: int, chunks: int, legs: int):
    pattern = Tree(
        number(2**depth), number(depth), number(legs), ONE, number(chunks), ONE, ONE, ONE
    )
    found = np.asarray(simulated((pattern,), ONE))[0]
    exact = [
        event_jitter.tree(depth, chunks, legs, numbered(c), numbered(c, offset=8 * 1024))
        for c in range(COLUMNS)
    ]
    np.testing.assert_allclose(found, exact, rtol=2e-6)


def test_barriers_and_lines_are_sums():
    barrier, line = Barrier(number(9), number(4), ONE, ONE), Line(number(21), ONE, ONE)
    found = np.asarray(simulated((barrier, line), ONE))[0]
    for column in range(COLUMNS):
        noise, later = numbered(column), numbered(column, call=64)
        rounds = sum(max(noise(k, i) for i in range(9)) for k in range(4))
        hops = sum(later(i // 16, i % 16) for i in range(21))
        assert found[column] == pytest.approx(rounds + hops, rel=2e-6)


def test_a_hierarchy_is_its_recursion():
    shape = (4, 3)
    like = jnp.zeros((1, COLUMNS), jnp.float32)
    made = jax.jit(lambda: hierarchical_finish(shape, Hops(NOISE, Murmur(), jnp.uint32(0)), like))()
    for column in range(COLUMNS):

        def stage(k: int, column: int = column) -> event_jitter.Noise:
            return lambda step, place: hop(k * 2**24 + 12 * step + place, column)

        exact = event_jitter.hierarchical(*shape, (stage(0), stage(1), stage(2)))
        assert float(made[0, column]) == pytest.approx(exact, rel=2e-6)


def test_neighbours_in_a_tile_do_not_change_a_lane():
    small = ring(5, 8)
    alone = np.asarray(simulated((small,), ONE))[0, 0]
    ranks = jnp.asarray([[5.0, 100.0, 16.0]], jnp.float32)
    mixed_tile = Ring(ranks, jnp.asarray([[8.0, 99.0, 3.0]], jnp.float32), ONE, ONE, ONE)
    assert np.asarray(simulated((mixed_tile,), ONE))[0, 0] == alone


def test_too_many_ranks_calls_or_chunks_are_not_a_number():
    made = [
        simulated((ring(257, 256),), ONE),
        simulated((ring(4, 6, repeats=33, parallel=2),), ONE),
        simulated((Tree(ONE, number(3), ONE, ONE, number(65), ONE, ONE, ONE),), ONE),
    ]
    assert all(np.all(np.isnan(np.asarray(x))) for x in made)


def test_a_wrong_neighbour_would_be_seen():
    wrong = event_jitter.ring(6, 8, numbered(0))
    assert abs(wrong - float(simulated((ring(5, 8),), ONE)[0, 0])) > 1e-3
