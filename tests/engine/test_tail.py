"""Importance sampling: rare ends drawn often, and weighed back."""

import dataclasses
import json
from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from fabric_kernels.uniform import DeepUniform, Uniform
from fabricarlo.analysis import AnalysisError
from fabricarlo.analysis.weighted import weighted_quantile
from fabricarlo.errors import SpecError
from fabricarlo.laws import make
from fabricarlo.plan import Plan
from fabricarlo.show import show_store
from fabricarlo.spec.resolved import resolved
from fabricarlo.sweep import Draw, Keep, Tail
from fabricarlo.tails import weighed
from tests.agreement import FALSE_ALARM, assert_mean, assert_share
from tests.engine import small, toy

pytestmark = pytest.mark.usefixtures("installed")
installed = toy.installed

LOGNORMAL = (Draw("scale", make("lognormal", {"median": 1.0, "sigma": 0.8})),)
RARE = 1e-4  # the tail that is asked for: p99.99
OF_SCALE, OF_TIMER = Tail("scale", 1e-3, upper=True), Tail("toy.timer", 1e-3, upper=True)


def scale_beyond(value: Any) -> NDArray[np.float64]:
    """Survival function of the drawn scale."""
    return stats.lognorm.sf(value, 0.8)


def stall_beyond(value: Any) -> NDArray[np.float64]:
    """Survival function of the stall, above 0, for a scale of 1 s."""
    return toy.TIMER * np.exp(1 - np.maximum(value, 1.0))


@cache
def drawn(tail: Tail | None, sampler: str = "random", samples: int = 2**17) -> dict[str, Any]:
    """Scales, stalls and weights of one cell, as float64."""
    tails = () if tail is None else (tail,)
    sweep = toy.sweep(
        draws=LOGNORMAL, outputs=("scale", "stall"), samples=samples, sampler=sampler, tails=tails
    )
    found = small.evaluate(Plan(sweep, block=2**15, tile=2**15))
    values = {n: v[0].astype(np.float64) for n, v in found.items()}
    values["stall"] = values["stall"] / values["scale"]  # for a scale of 1 s
    return values | ({} if tails else {"weight": np.ones(samples)})


CASES = [("scale", OF_SCALE, scale_beyond), ("stall", OF_TIMER, stall_beyond)]


def deviation(tail: Tail, samples: int) -> float:
    """Of the survival that belongs to the weighed p99.99: sum of w^2 (1(x > q) - p)^2.

    The tail holds the quantile, so what lies beyond it has the small weight.
    """
    inside = tail.probability / tail.points
    outside = (1 - tail.probability) / (1 - tail.points)
    beyond = inside * RARE * (1 - RARE) ** 2
    between = inside * (tail.probability - RARE) * RARE**2
    return float(np.sqrt((beyond + between + outside * RARE**2) / samples))


def score(values: NDArray, weights: NDArray, beyond: Any, tail: Tail) -> float:
    """How many standard errors the survival at the weighed p99.99 is off."""
    found = weighted_quantile(values, weights, 1 - RARE).value
    return float((beyond(found) - RARE) / deviation(tail, len(values)))


LIMIT = float(stats.norm.isf(FALSE_ALARM / 2))


# ---- the estimates


@pytest.mark.parametrize(("name", "tail", "beyond"), CASES)
def test_a_rare_quantile_is_that_of_the_law(name: str, tail: Tail, beyond: Any):
    """|z| < 4.89 of the survival at the estimate: false alarm 1e-6."""
    found = drawn(tail)
    assert abs(score(found[name], found["weight"], beyond, tail)) < LIMIT


@pytest.mark.parametrize(("name", "tail", "beyond"), CASES)
def test_a_wrong_weight_is_found_out(name: str, tail: Tail, beyond: Any):
    """No weights; a tail that weighs half; points outside it that weigh as ever."""
    found = drawn(tail)
    rare = found["weight"] < 1
    wrong = {
        "none": np.ones_like(found["weight"]),
        "outside": np.where(rare, found["weight"], 1.0),
        "half": np.where(rare, found["weight"] / 2, found["weight"]),
    }
    for weights in wrong.values():
        assert abs(score(found[name], weights, beyond, tail)) > LIMIT
    for text in ("none", "half"):
        with pytest.raises(AssertionError, match="mean"):
            assert_mean(wrong[text] * rare, *tail_moments(tail))
    with pytest.raises(AssertionError, match="mean"):
        assert_mean(wrong["outside"], *moments_of_weights(tail))


def moments_of_weights(tail: Tail) -> tuple[float, float]:
    """Mean and standard deviation of a weight, over the points."""
    inside = tail.probability / tail.points
    outside = (1 - tail.probability) / (1 - tail.points)
    square = tail.points * inside**2 + (1 - tail.points) * outside**2
    return 1.0, float(np.sqrt(square - 1))


def tail_moments(tail: Tail) -> tuple[float, float]:
    """Mean and standard deviation of the weight in the tail, 0 elsewhere."""
    inside = tail.probability / tail.points
    square = tail.points * inside**2
    return tail.probability, float(np.sqrt(square - tail.probability**2))


@pytest.mark.parametrize("tail", [OF_SCALE, OF_TIMER])
def test_weights_average_to_one(tail: Tail):
    weights = drawn(tail)["weight"]
    assert_mean(weights, *moments_of_weights(tail))
    assert_mean(weights * (weights < 1), *tail_moments(tail))
    assert_share(int((weights < 1).sum()), len(weights), tail.points)


def test_scrambled_points_have_weights_of_one_on_average():
    """A net of 2^10 points a replicate: each has the share of the tail to 1 in 1,024."""
    tail = OF_SCALE
    weights = drawn(tail, "sobol", 2**12)["weight"].reshape(-1, 4)
    inside = (weights < 1).mean(axis=0)
    assert np.all(np.abs(inside - tail.points) <= 2**-10)
    assert abs(weights.mean() - 1) < 2 * 2**-10


@pytest.mark.parametrize(("name", "tail", "beyond"), CASES)
def test_the_variance_is_far_below_that_of_plain_sampling(name: str, tail: Tail, beyond: Any):
    """64 groups of 2,048 points, the share beyond the exact p99.99 by each.

    The variance falls by 480 for the share alone. A ratio of two variances of 63 degrees of freedom
    is below 10 / 480 of its own with probability below 1e-20.
    """
    threshold = stats.lognorm.isf(RARE, 0.8) if name == "scale" else 1 + np.log(toy.TIMER / RARE)
    assert beyond(threshold) == pytest.approx(RARE)
    spread = {}
    for kind, chosen in (("plain", None), ("weighed", tail)):
        found = drawn(chosen)
        hits = (found[name] > threshold) * found["weight"]
        spread[kind] = hits.reshape(64, -1).mean(axis=1).var(ddof=1)
    assert spread["weighed"] < spread["plain"] / 10


def test_the_low_end_of_a_law():
    tail = Tail("scale", 1e-3, upper=False)
    found = drawn(tail)
    value = weighted_quantile(found["scale"], found["weight"], RARE).value
    z = (stats.lognorm.cdf(value, 0.8) - RARE) / deviation(tail, len(found["scale"]))
    assert abs(z) < LIMIT


def test_two_tails_together_and_one_that_a_deep_uniform_has():
    """The weights multiply; both far quantiles are those of the exponential law to 5 %.

    1e-9 has some 30 times fewer points beyond it than 1e-8: 4,000 of 2^17, 1.6 % each.
    """
    tails = (Tail("toy.spike", 1e-8, upper=True), Tail("toy.wait", 1e-3, upper=True))
    sweep = toy.fixed(outputs=("spike", "wait"), samples=2**17, sampler="random", tails=tails)
    found = {n: v[0].astype(float) for n, v in small.evaluate(toy.plan(sweep)).items()}
    first, second = (moments_of_weights(t) for t in tails)
    both = float(np.sqrt((1 + first[1] ** 2) * (1 + second[1] ** 2) - 1))
    assert_mean(found["weight"], 1.0, both)
    for name, q in (("spike", 1e-9), ("wait", 1e-4)):
        low, high = weighted_quantile(found[name], found["weight"], 1 - q, 1 - FALSE_ALARM)[1:]
        assert low < -np.log(q) < high
        assert high - low < 0.5


# ---- the transformation


@pytest.mark.parametrize("tail", [OF_SCALE, Tail("scale", 1e-7, upper=False, share=0.1)])
def test_points_are_moved_monotonically_and_weighed_by_their_density(tail: Tail):
    distance = np.concatenate([2.0 ** -np.arange(1, 33), np.linspace(0.001, 0.5, 400)])
    distance = np.unique(distance.astype(np.float32))
    for upper in (False, True):
        ends = np.full(distance.shape, upper)
        point = Uniform(jnp.asarray(ends)[None], jnp.asarray(distance)[None])
        (moved,), weight = weighed([point], ["scale"], [tail])
        near = distance.astype(np.float64) if upper == tail.upper else 1 - distance.astype(float)
        inside = near * tail.probability / tail.points
        outside = tail.probability + (near - tail.points) * (1 - tail.probability) / (
            1 - tail.points
        )
        exact = np.where(near <= tail.points, inside, outside)
        side = np.asarray(moved.upper)[0] == tail.upper
        away = np.asarray(moved.distance, np.float64)[0]
        got = np.where(side, away, 1 - away)
        # a float32 a half away from the boundary: 3e-8, twice that after stretching
        np.testing.assert_allclose(got, exact, rtol=3e-7, atol=2.5e-7 * tail.share)
        slope = np.where(near <= tail.points, tail.probability / tail.points, np.nan)
        known = ~np.isnan(slope)
        np.testing.assert_allclose(np.asarray(weight)[0][known], slope[known], rtol=2e-7)
        assert np.asarray(weight).max() <= 1 / (1 - tail.share) * (1 + 1e-6)


def test_a_deep_uniform_stays_deep_and_others_stay_as_they_are():
    point = DeepUniform(jnp.asarray([[True]]), jnp.asarray([[2.0**-50]], jnp.float32))
    other = Uniform(jnp.asarray([[False]]), jnp.asarray([[0.25]], jnp.float32))
    (moved, same), _ = weighed([point, other], ["scale", "x"], [OF_SCALE])
    assert isinstance(moved, DeepUniform)
    expected = 2.0**-50 * OF_SCALE.probability / OF_SCALE.points
    np.testing.assert_allclose(np.asarray(moved.distance), expected, rtol=3e-7)
    assert same is other
    _, weight = weighed([other], ["x"], [OF_SCALE])  # a cell that does not draw it
    assert np.asarray(weight) == 1


# ---- a store


@pytest.fixture(scope="module")
def stored(installed, tmp_path_factory):
    """Weighed results of one cell."""
    del installed
    path = tmp_path_factory.mktemp("tail") / "store"
    tails = (Tail("toy.wait", 1e-3, upper=True),)
    keep = Keep(samples=True, quantiles=(0.5, 0.99, 0.9999))
    sweep = toy.fixed(samples=9000, tails=tails, keep=keep, outputs=("wait", "state"))
    return path, sweep, toy.run(sweep, path)


def test_results_of_a_store_are_weighed(stored):
    """t intervals of 4 replicates, widened fivefold: far beyond 1e-6 for the mean of 3 of them."""
    _, _, tree = stored
    values, weights = (tree["/samples"][n].values.astype(float) for n in ("wait", "weight"))
    for k, q in enumerate(tree["quantile"].values):
        exact = weighted_quantile(values, weights, q)
        assert float(tree.wait[k]) == pytest.approx(float(exact.value), rel=1e-12)
        low, high = tree.wait_interval[k].values
        middle, half = (low + high) / 2, (high - low) / 2
        assert abs(-np.log(1 - q) - middle) < 5 * half
        assert half < 0.3
    assert float(tree.wait_mean) == pytest.approx(1.0, abs=0.02)
    assert float(tree.wait_std) == pytest.approx(1.0, abs=0.05)
    assert tree.state_share.values == pytest.approx([0.5, 0.5], abs=0.005)
    assert float(tree.wait_max) == values.max()
    assert int(tree.wait_count) == 9000


def test_a_store_says_that_it_is_weighed(stored, capsys):
    path, _, tree = stored
    assert tree.attrs["tail"] == "toy.wait beyond 0.999 (share 0.5)"
    assert tree.wait.attrs["long_name"].endswith("quantile over samples, weighted")
    assert "wait_counts" not in tree["/histograms"]
    assert tree["/samples"].weight.attrs["units"] == "1"
    show_store(path, [])
    assert "weighted; drawn more often: toy.wait beyond 0.999" in capsys.readouterr().out


def test_blocks_processes_and_more_samples_change_no_bit(stored, tmp_path):
    path, sweep, tree = stored
    whole = small.samples(tree)
    assert {"wait", "state", "weight"} == whole.keys()
    toy.run(sweep, tmp_path / "shared", process=(1, 2))
    toy.run(sweep, tmp_path / "shared")
    assert small.everything(tmp_path / "shared") == small.everything(path)
    few = small.samples(toy.run(dataclasses.replace(sweep, samples=3000), block=2**14))
    small.assert_same_bits(few, {n: v[..., :3000] for n, v in whole.items()})


# ---- weighted_quantile


def test_equal_weights_are_no_weights():
    values = np.random.default_rng(3).normal(size=501)
    q = np.array([0.001, 0.01, 0.3, 0.5, 0.99])
    found = weighted_quantile(values, np.full(501, 0.2), q)
    plain = np.quantile(values, q, method="median_unbiased")
    np.testing.assert_allclose(found.value, plain, rtol=1e-12)
    assert np.isnan(found.low[0])
    assert np.all(found.low[1:] <= found.value[1:])
    assert np.all(found.value[:-1] <= found.high[:-1])


def test_mirrored_values_have_mirrored_quantiles():
    generator = np.random.default_rng(4)
    values, weights = generator.normal(size=200), generator.exponential(size=200)
    there, back = (weighted_quantile(s * values, weights, q) for s, q in ((1, 0.9), (-1, 0.1)))
    assert float(there.value) == pytest.approx(-float(back.value))
    assert float(there.low) == pytest.approx(-float(back.high))


def test_intervals_cover_as_often_as_they_say():
    """400 sets of 2,000 points of an exponential law, half of them beyond p99.9; p99.99 of each."""
    generator, tail, hits = np.random.default_rng(5), OF_SCALE, 0
    for _ in range(400):
        u = generator.random(2000)
        rare = u < tail.points
        outside = (1 - tail.probability) / (1 - tail.points)
        beyond = np.where(
            rare,
            u * tail.probability / tail.points,
            tail.probability + (u - tail.points) * outside,
        )
        weights = np.where(rare, tail.probability / tail.points, outside)
        found = weighted_quantile(-np.log(beyond), weights, 1 - RARE)
        hits += bool(found.low <= -np.log(RARE) <= found.high)
    assert_share(hits, 400, 0.95)


def test_what_is_no_weight_is_refused():
    with pytest.raises(AnalysisError, match="not negative"):
        weighted_quantile([1.0, 2.0], [1.0, -1.0], 0.5)
    with pytest.raises(AnalysisError, match="shape"):
        weighted_quantile([1.0, 2.0], [1.0], 0.5)
    with pytest.raises(AnalysisError, match="no finite value"):
        weighted_quantile([np.nan], [1.0], 0.5)
    with pytest.raises(AnalysisError, match="between 0 and 1"):
        weighted_quantile([1.0], [1.0], 1.0)


# ---- the spec


def refused(**changes: Any) -> str:
    with pytest.raises(SpecError) as info:
        small.sweep(**changes)
    return str(info.value)


def test_a_tail_is_read_and_changes_the_plan():
    block = [{"stream": "loss.data.timed_out", "beyond": 0.999}]
    sweep = small.sweep(tail=block)
    assert sweep.tails == (Tail("loss.data.timed_out", pytest.approx(1e-3), upper=True),)  # pyright: ignore
    plain = small.sweep()
    assert "tails" not in resolved(plain)  # stores without tails keep their hash
    assert json.dumps(resolved(sweep)) != json.dumps(resolved(plain))
    low = small.sweep(tail=[{"stream": "adapter_latency", "below": 0.01, "share": 0.25}])
    assert low.tails == (Tail("adapter_latency", 0.01, upper=False, share=0.25),)


WRONG = [
    ([{"stream": "loss.data.timedout", "beyond": 0.9}], "Did you mean loss.data.timed_out"),
    ([{"stream": "adapter_latency"}], "needs one end"),
    ([{"stream": "adapter_latency", "beyond": 0.9, "below": 0.1}], "needs one end"),
    ([{"stream": "adapter_latency", "beyond": 1.0}], "1.0 is not below 1"),
    ([{"stream": "adapter_latency", "beyond": 0.9, "share": 0.99}], "0.99 is above 0.95"),
    ([{"stream": "adapter_latency", "beyond": 0.9}] * 2, "stands twice"),
]


@pytest.mark.parametrize(("tail", "text"), WRONG)
def test_wrong_tails_are_refused(tail: list[Any], text: str):
    assert text in refused(tail=tail)


def test_what_does_not_go_with_a_tail_is_refused():
    tail = [{"stream": "loss.data.timed_out", "beyond": 0.999}]
    assert "needs every sample with its weight" in refused(tail=tail, keep={"samples": False})
    assert "do not go together" in refused(tail=tail, design="sensitivity")
    assert "drawn anew in each of 4 steps" in refused(tail=tail, steps=4)
    pair = [{"draws": ["adapter_latency", "routing_efficiency"], "correlation": 0.5}]
    follower = [{"stream": "routing_efficiency", "beyond": 0.9}]
    assert "follows adapter_latency in a copula" in refused(tail=follower, copula=pair)
    small.sweep(tail=[{"stream": "adapter_latency", "beyond": 0.9}], copula=pair)


def test_a_tail_of_what_is_never_drawn_is_refused():
    sweep = toy.sweep(outputs=("wait",), tails=(OF_TIMER,))
    with pytest.raises(SpecError, match=r"toy.timer is drawn in no cell. This sweep draws: scale"):
        toy.plan(sweep)
