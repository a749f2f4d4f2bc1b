"""Trees, pairs and conditions against exact recursions, simulated tables and closed forms."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric_kernels.inputs.noise import HopConditions
from fabric_kernels.jitter.laws.conditions import common_pause, latest_arrival, slowest_delay
from fabric_kernels.jitter.laws.stalls import mean_stall, surrogate_stall
from fabric_kernels.jitter.laws.waits import doubling_stall, tree_stall
from fabric_kernels.pattern import Barrier, Doubling, Line, Pattern, Traffic, Tree
from fabric_kernels.uniform import Uniform
from fabricarlo.validation.hop_laws import Named, lane, lanes, law_of, named
from tests.agreement import assert_mean, assert_share
from tests.tables import reference_table

POINTS = 4096
PROBABILITIES = (np.arange(POINTS) + 0.5) / POINTS
LEVELS = lanes(-np.log(PROBABILITIES))
TAIL = lanes(-np.log(np.array([0.5, 0.99])))
LAWS = ("exp", "normal", "lognormal0.5", "lognormal1", "gpd0.25")

up = jax.jit(tree_stall)
pairs = jax.jit(doubling_stall)
ONE = lane(1.0)


def tree(depth: float, legs: float = 2, trees: float = 1, chunks: float = 1) -> Tree:
    return Tree(lane(2**depth), lane(depth), lane(legs), lane(trees), lane(chunks), ONE, ONE, ONE)


def law(text: str) -> Named:
    made = named(text)
    assert made is not None
    return made


def misses(factor: float) -> float:
    """Largest relative error of means, medians and 99th percentiles over the exact table."""
    worst = 0.0
    for row in reference_table("tree_exact.csv"):
        if row["law"] not in LAWS or row["leaves"] == "inf":
            continue
        trees = 2 if row["stat"] == "mean_double_tree" else 1
        pattern = tree(math.log2(float(row["leaves"])), trees=trees)
        noise = law_of(law(row["law"]))
        if row["stat"].startswith("mean"):
            found = float(np.asarray(up(pattern, noise, LEVELS), float).mean())
        elif row["stat"] in ("p50", "p99"):
            column = ("p50", "p99").index(row["stat"])
            found = float(np.asarray(up(pattern, noise, TAIL))[0, column])
        else:
            continue
        worst = max(worst, abs(factor * found / float(row["value"]) - 1))
    return worst


def test_trees_are_those_of_the_exact_recursion():
    assert misses(1.0) < 0.01


def test_a_tree_wrong_by_3_percent_is_seen():
    assert misses(1.03) > 0.02


def pipelined(depth: int, chunks: int, hops: Callable[[int], np.ndarray]) -> np.ndarray:
    """Finishing times of simulated trees: every chunk over every edge, up and down again."""
    up = [0.0 * hops(2**level) for level in range(depth, 0, -1)]
    down = [0.0 * hops(2**level) for level in range(1, depth + 1)]
    for _ in range(chunks):
        ready = np.zeros_like(up[0])
        for edges in up:
            edges[:] = np.maximum(edges, ready) + hops(len(edges))
            ready = np.maximum(edges[::2], edges[1::2])
        for edges in down:
            edges[:] = np.maximum(edges, np.repeat(ready, 2, axis=0)) + hops(len(edges))
            ready = edges
    return down[-1].max(axis=0)


@pytest.mark.parametrize("text", ["exp", "normal", "lognormal1"])
def test_a_pipeline_has_the_mean_of_its_simulation(text: str):
    generator = np.random.default_rng(21)

    def hops(edges: int) -> np.ndarray:
        if text == "exp":
            return generator.exponential(size=(edges, 4000))
        score = generator.normal(size=(edges, 4000))
        return score if text == "normal" else np.exp(score)

    truth = pipelined(5, 6, hops)
    error = truth.std() / np.sqrt(truth.size)
    found = float(np.asarray(up(tree(5, chunks=6), law_of(law(text)), LEVELS), float).mean())
    margin = 0.008 * truth.mean() + 4.9 * error
    assert abs(found - truth.mean()) < margin
    assert margin < 0.03 * truth.mean()  # a law that is wrong by 3 % would be seen ...
    assert not (abs(1.03 * found - truth.mean()) < margin)  # ... high
    assert not (abs(0.97 * found - truth.mean()) < margin)  # ... or low


def test_one_hop_up_is_the_larger_of_two():
    found = np.asarray(up(tree(1, legs=1), law_of(Named("exp", 0.0)), LEVELS), float)[0]
    exact = -np.log1p(-np.sqrt(PROBABILITIES))
    np.testing.assert_allclose(found[400:-1], exact[400:-1], rtol=0.02)


@pytest.mark.parametrize("text", ["exp", "normal", "lognormal1"])
def test_doubling_has_the_means_of_the_table(text: str):
    compared = 0
    for row in reference_table("tree_maxplus.csv"):
        if row["algo"] != "recursive_doubling" or row["law"] != text or row["stat"] != "mean":
            continue
        ranks = float(row["params"].split("=")[1])
        if ranks < 256:
            continue
        pattern = Doubling(lane(ranks), lane(math.log2(ranks)), ONE, ONE, ONE)
        found = float(np.asarray(pairs(pattern, law_of(law(text)), LEVELS), float).mean())
        value = float(row["value"])
        margin = max(0.01 * value, 4.9 * float(row["stderr"]))
        assert abs(found - value) < margin
        assert abs(1.03 * found - value) > 0.01 * value  # a law that is wrong would be seen
        compared += 1
    assert compared


def patterns() -> list[Pattern]:
    depth = lane(7.0)
    return [
        tree(7.0),
        Doubling(lane(128.0), 2 * depth, ONE, ONE, ONE),
        Barrier(lane(128.0), lane(14.0), ONE, ONE),
        Line(lane(14.0), ONE, ONE),
    ]


stalls = jax.jit(lambda t, n, e: (mean_stall(t, n, e), surrogate_stall(t, n, e)))


@pytest.mark.parametrize("index", range(4))
def test_every_pattern_costs_its_mean_at_least_and_more_in_more_groups(index: int):
    noise, pattern = law_of(Named("lognormal", 0.5)), patterns()[index]
    low, made = stalls(Traffic((pattern,), ONE), noise, LEVELS)
    _, many = stalls(Traffic((pattern,), lane(64.0)), noise, LEVELS)
    assert np.asarray(low).mean() <= np.asarray(made).mean() * 1.002
    assert np.all(np.diff(np.asarray(made)[0]) > -1e-5)  # rises with the level
    assert np.asarray(many).mean() > np.asarray(made).mean()
    twice = pattern._replace(repeats=lane(2.0))
    _, double = stalls(Traffic((twice,), ONE), noise, LEVELS)
    assert np.asarray(double).mean() == pytest.approx(2 * np.asarray(made).mean(), rel=0.02)


@given(st.integers(1, 18), st.integers(1, 60))
def test_deeper_trees_and_more_chunks_cost_more(depth: int, chunks: int):
    noise = law_of(Named("exp", 0.0))

    def mean(pattern: Tree) -> float:
        return float(np.asarray(up(pattern, noise, LEVELS), float).mean())

    assert mean(tree(depth + 1)) > mean(tree(depth))
    assert mean(tree(depth, chunks=chunks + 1)) > mean(tree(depth, chunks=chunks))


def conditions(**given: float) -> HopConditions:
    zero = {
        "persistent_hop_deviation": 0.0, "receive_slots": 8.0, "arrival_deviation": 0.0,
        "common_pause_probability": 0.0, "common_pause_length": 1e-3,
    }  # fmt: skip
    return HopConditions(**{k: lane(v) for k, v in (zero | given).items()})


def test_without_conditions_nothing_changes():
    noise = law_of(Named("exp", 0.0))
    for pattern in patterns():
        traffic = Traffic((pattern,), ONE)
        plain = surrogate_stall(traffic, noise, LEVELS)
        same = surrogate_stall(traffic, noise, LEVELS, conditions())
        np.testing.assert_allclose(np.asarray(same), np.asarray(plain), rtol=1e-6)


def test_the_slowest_rank_and_the_last_arrival_are_the_largest_of_all():
    given = conditions(persistent_hop_deviation=2.0, arrival_deviation=3.0)
    exponential = -np.log(np.random.default_rng(8).uniform(size=20_000))
    delay = np.asarray(slowest_delay(given, lane(1024.0), lanes(exponential)), float)[0]
    # mean and deviation of the largest of 1024 normal scores, by quadrature
    assert_mean(delay, 2 * 3.2463, 2 * 0.3485, alpha=1e-6)
    late = np.asarray(latest_arrival(given, lane(1024.0), lanes(exponential)), float)[0]
    np.testing.assert_allclose(late, 1.5 * delay, rtol=1e-6)


def test_a_common_pause_hits_as_often_and_as_long_as_it_should():
    given = conditions(common_pause_probability=0.1, common_pause_length=5.0)
    u = np.random.default_rng(9).uniform(size=40_000)
    uniform = Uniform(jnp.asarray(u[None] > 0.5), lanes(np.minimum(u, 1 - u)))
    pause = np.asarray(common_pause(given, uniform), float)[0]
    hit = pause[pause > 0]
    assert_share(hit.size, u.size, 0.1)
    assert_mean(hit, 5.0, 5.0)
    assert np.all(np.asarray(common_pause(conditions(), uniform)) == 0)
