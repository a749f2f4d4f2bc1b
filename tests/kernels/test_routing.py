"""Flows that meet on one uplink: the law of the fullest, and what routing makes of it."""

import functools
import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fabric_kernels.maths.occupancy import largest_load, overfull
from fabric_kernels.routing.ecmp import ecmp_efficiency
from fabric_kernels.uniform import Uniform
from tests.agreement import assert_mean, assert_share
from tests.answers import answer, precision
from tests.reference import topology
from tests.tables import reference_table

LANES = 1024
_load, _efficiency, _overfull = (jax.jit(f) for f in (largest_load, ecmp_efficiency, overfull))

CASES = [(8, 8), (16, 16), (64, 64), (32, 16), (64, 16), (256, 16), (512, 16), (1024, 32)]
FEW = [(1, 4), (2, 2), (4, 2), (17, 2), (128, 2), (3, 3), (12, 3), (4, 4), (64, 4), (4, 16)]


exact_law = functools.cache(topology.largest_load_law)


def padded(values: Any) -> jax.Array:
    flat = np.broadcast_to(np.asarray(values, np.float32), np.shape(values) or (1,))
    return jnp.asarray(np.pad(flat, (0, LANES - flat.size), mode="edge"))


def tails(balls: int, boxes: int) -> np.ndarray:
    """The kernel's P(max > k), k = 0 ... balls."""
    loads = np.arange(balls + 1)[: LANES - 1]
    return np.asarray(_overfull(padded(balls), padded(boxes), padded(loads)))[: loads.size]


def grid() -> Uniform:
    """A uniform at the middles of LANES equal parts of (0, 1)."""
    half = (np.arange(LANES // 2) + 0.5) / LANES
    upper = np.repeat([False, True], LANES // 2)
    return Uniform(jnp.asarray(upper), jnp.asarray(np.tile(half, 2), jnp.float32))


def drawn(random: np.random.Generator) -> Uniform:
    upper = random.random(LANES) < 0.5
    return Uniform(jnp.asarray(upper), jnp.asarray(random.random(LANES) / 2 + 2**-33, jnp.float32))


@pytest.mark.parametrize(("balls", "boxes"), CASES)
def test_the_law_is_that_of_counting_every_throw(balls: int, boxes: int):
    exact = 1 - exact_law(balls, boxes)
    least = -(-balls // boxes)
    made = tails(balls, boxes)
    assert np.abs(made - exact[: made.size])[least:].max() < 7e-4
    assert (np.diff(made[least:]) <= 1e-6).all()
    assert made[-1] == 0


@pytest.mark.parametrize(("balls", "boxes"), FEW)
def test_few_balls_or_boxes(balls: int, boxes: int):
    exact = 1 - exact_law(balls, boxes)
    least = -(-balls // boxes)
    assert np.abs(tails(balls, boxes) - exact)[least:].max() < 9e-3


@pytest.mark.parametrize(("balls", "boxes"), [(16, 16), (64, 16), (512, 16), (1024, 32), (64, 4)])
def test_far_tails_keep_their_size(balls: int, boxes: int):
    """One overfull box at a time: M P(Binomial > k), to 8 %, where it is 1e-3 to 1e-11."""
    loads = np.arange(balls + 1)[: LANES - 1]
    union = boxes * stats.binom.sf(loads, balls, 1 / boxes)
    far = (union < 1e-3) & (union > 1e-11)
    assert far.sum() > 5
    assert np.abs(tails(balls, boxes)[far] / union[far] - 1).max() < 0.08


@pytest.mark.parametrize(("balls", "boxes"), [(16, 16), (128, 16), (1024, 32), (12, 3)])
def test_a_draw_inverts_the_law(balls: int, boxes: int):
    """The smallest load that is not exceeded with more than 1 - u."""
    u = grid()
    made = np.asarray(_load(padded(balls), padded(boxes), u)).astype(int)
    survival = np.where(u.upper, u.distance, 1 - u.distance)
    law = tails(balls, boxes)
    assert (law[made] <= survival).all()
    least = -(-balls // boxes)
    below = np.maximum(made - 1, 0)
    assert ((law[below] > survival) | (made == least)).all()


def test_agrees_with_throwing_balls():
    """20,000 throws each; a law of independent boxes is caught."""
    random = np.random.default_rng(59)
    for balls, boxes in ((16, 16), (64, 16), (256, 32)):
        thrown = topology.largest_loads(balls, boxes, 20_000, random)
        law = tails(balls, boxes)
        for load in np.unique(thrown)[:-1]:
            assert_share(int((thrown > load).sum()), thrown.size, float(law[load]))
        low = int(np.median(thrown)) - 1
        alone = float(1 - stats.binom.cdf(low, balls, 1 / boxes) ** boxes)
        with pytest.raises(AssertionError):
            assert_share(int((thrown > low).sum()), thrown.size, alone)


@pytest.mark.parametrize("flows", [1600, 3_200_000])
def test_many_flows_come_near_the_normal_law(flows: int):
    """The largest of M correlated normals: mean sqrt(F / M) x 1.766 at M = 16 above F / M."""
    u = grid()
    made = np.asarray(_load(padded(flows), padded(16), u)) - flows / 16
    # E max of 16 standard normals (Tippett 1925), of which the common part has no mean
    assert made.mean() / np.sqrt(flows / 16) == pytest.approx(1.766, abs=0.07)


def test_reference_table():
    """Means and first percentiles of the table, within the error of its own trials."""
    rows = [r for r in reference_table("congestion_cases.csv") if r["case"].startswith("ecmp/")]
    assert len(rows) >= 20
    for row in rows:
        case = json.loads(row["params_json"])
        flows, links, trials = case["flows"], case["links"], case["trials"]
        value = float(row["value"])
        if row["quantity"].startswith("p01"):
            # the share of throws below the true percentile is binomial
            wide = 4.9 * np.sqrt(0.01 * 0.99 / trials)
            u = Uniform(jnp.ones(LANES, bool), padded([0.01 - wide, 0.01 + wide]))
            low, high = np.asarray(_efficiency(padded(flows), padded(links), u))[:2]
            assert low * (1 - 2e-6) <= value <= high * (1 + 2e-6), row["case"]
            continue
        law = exact_law(flows, links)
        found = {"mean_max_flows_per_link": _load}.get(row["quantity"], _efficiency)
        made = np.asarray(found(padded(flows), padded(links), grid()), np.float64)
        loads, chance = np.arange(1, flows + 1), np.diff(law)
        values = loads if found is _load else (flows / links) / loads
        exact = (chance * values).sum()
        error = np.sqrt((chance * (values - exact) ** 2).sum() / trials)
        # rounding of the table, the grid's 1/1024 of a step, and 4.9 errors of the trials
        assert abs(made.mean() - value) < 4.9 * error + 1e-5 * value, row["case"]


LEAF = {
    "gpus": 4096, "parameters": 1e12, "link_rate": 1e11, "switch_latency": 1e-6, "switch_radix": 32,
    "oversubscription": 1.0, "routing_efficiency": 0.95, "flows_per_port": 4, "planes": 1,
    "spraying_efficiency": 0.97,
}  # fmt: skip


def routed(name: str, u: Uniform | None = None, **changes: object) -> dict[str, np.ndarray]:
    uniforms = {} if u is None else {"collisions": (np.asarray(u.upper), np.asarray(u.distance))}
    return answer("routing", name, LEAF | changes, uniforms=uniforms, dtype=np.float32)


def test_adaptive_and_spraying_keep_what_is_declared():
    for name, share in (("adaptive", 0.95), ("spraying", 0.97)):
        made = routed(name, oversubscription=3.0)
        assert made["collision_efficiency"] == np.float32(share)
        assert made["flows_per_link"] == 12


def test_a_step_waits_for_the_fullest_of_all_leaves():
    """256 leaves of 16 ports up, 64 flows each, thrown flow by flow."""
    random = np.random.default_rng(7)
    thrown = topology.largest_loads(64, 16, 256 * 400, random).reshape(400, 256).max(1)
    made = routed("ecmp", grid())
    load = made["flows_per_link"]
    assert_mean(thrown, float(load.mean()), float(load.std()))
    one = routed("ecmp", grid(), gpus=33)["flows_per_link"]
    with pytest.raises(AssertionError):
        assert_mean(thrown, float(one.mean()), float(load.std()))
    np.testing.assert_allclose(made["collision_efficiency"], 4 / load, rtol=1e-6)


def test_collisions_by_draws_follow_the_law():
    u = drawn(np.random.default_rng(3))
    found = np.asarray(_load(padded(64), padded(16), u))
    law = 1 - exact_law(64, 16)
    for load in (6, 7, 8, 10):
        assert_share(int((found > load).sum()), LANES, float(law[load]))


def test_one_switch_has_nothing_to_choose():
    made = routed("ecmp", grid(), gpus=32)
    assert (made["collision_efficiency"] == 1).all()
    assert (made["flows_per_link"] == 4).all()
    assert (routed("ecmp", grid(), gpus=33)["collision_efficiency"] < 1).any()


def test_more_flows_lose_less():
    means = [routed("ecmp", grid(), flows_per_port=q)["collision_efficiency"].mean()
             for q in (1, 4, 16, 64, 1024)]  # fmt: skip
    assert means == sorted(means)
    assert means[-1] > 3 * means[0]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    balls=st.integers(1, 10**5),
    boxes=st.integers(1, 4096),
    distance=st.floats(2.0**-33, 0.5),
    upper=st.booleans(),
)
def test_bounds(balls: int, boxes: int, distance: float, *, upper: bool):
    """At least the mean, at most all; every efficiency in (0, 1]; larger u, fuller link."""
    ends = np.array([(False, 2.0**-33), (upper, distance), (True, 2.0**-33)], object)
    u = Uniform(
        jnp.asarray(np.pad(ends[:, 0].astype(bool), (0, LANES - 3), mode="edge")),
        padded(ends[:, 1].astype(float)),
    )
    load = np.asarray(_load(padded(balls), padded(boxes), u))[:3]
    assert np.isfinite(load).all()
    assert (load == np.round(load)).all()
    assert (load >= balls / boxes - 1e-3).all()
    assert (load <= balls).all()
    assert (np.diff(load) >= 0).all()
    share = np.asarray(_efficiency(padded(balls), padded(boxes), u))[:3]
    assert ((share > 0) & (share <= 1)).all()


def test_double_precision_gives_the_same_loads():
    u = grid()
    single = np.asarray(_load(padded(64), padded(16), u))
    with precision(np.float64):
        wide = [jnp.asarray(np.full(LANES, value), jnp.float64) for value in (64, 16)]
        double = np.asarray(_load(*wide, Uniform(u.upper, u.distance.astype(jnp.float64))))
    assert double.dtype == np.float64
    assert (single != double).mean() < 1e-3
