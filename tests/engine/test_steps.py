"""Many steps a sample: what is drawn once, what anew, and what is kept of the steps."""

import hashlib
from collections.abc import Iterator
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fabricarlo
from fabric_kernels.catalogue import DIMENSIONS, PERSISTENT
from fabric_kernels.model import Model
from fabric_kernels.uniform import WideUniform
from fabricarlo.engine import Engine
from fabricarlo.errors import SpecError
from fabricarlo.plan import Plan
from fabricarlo.show import show_store
from fabricarlo.steps import Kept, Steps, rank_of_99, statistics
from fabricarlo.variants import model_of
from fabricarlo.written.names import declared
from tests.agreement import assert_follows, assert_mean
from tests.engine import small, toy

pytestmark = pytest.mark.usefixtures("installed")
installed = toy.installed

NOISE = {
    "routing.collisions",
    "jitter.common_pause",
    "jitter.data.slowest",
    "jitter.expert.slowest",
    "jitter.pipeline.slowest",
    "loss.data.lost",
    "loss.data.timed_out",
    "loss.expert.lost",
    "loss.expert.timed_out",
    "loss.pipeline.lost",
    "loss.pipeline.timed_out",
    "loss.chain",
}
"""Slots of the catalogue that are the luck of one step."""

VARYING = ("wait", "spike", "crowd")
RESULTS = tuple(f"{n}{s}" for n in VARYING for s in ("", "_p99_of_steps", "_maximum_of_steps"))


def test_every_slot_is_either_a_fact_of_the_cluster_or_the_noise_of_a_step():
    unsorted = DIMENSIONS.keys() ^ (PERSISTENT | NOISE)
    assert not unsorted, f"say in the catalogue's PERSISTENT, or in NOISE here, what {unsorted} is"
    assert not PERSISTENT & NOISE


# ---- an independent reference: the rule of addresses, in NumPy


def threefry(key: tuple[int, int], first: np.ndarray, second: int) -> tuple[np.ndarray, np.ndarray]:
    """Threefry2x32-20, from its definition in the paper."""
    mask, turns = 0xFFFFFFFF, (13, 15, 26, 6, 17, 29, 16, 24)
    words = (*key, key[0] ^ key[1] ^ 0x1BD11BDA)
    x = (first.astype(object) + words[0]) & mask
    y = (np.full(first.shape, second, object) + words[1]) & mask
    for turn in range(20):
        x = (x + y) & mask
        r = turns[turn % 8]
        y = (((y << r) | (y >> (32 - r))) & mask) ^ x
        if turn % 4 == 3:
            k = turn // 4 + 1
            x, y = (x + words[k % 3]) & mask, (y + words[(k + 1) % 3] + k) & mask
    return x, y


def later(stream: str, step: int, sampler: str, samples: int, part: int = 0) -> np.ndarray:
    """Words of one stream and step of every sample, as (first, second) [2, sample].

    A narrow slot keeps its key and its n; a wide one, `part` from 0, counts samples.
    """
    number, found = np.arange(samples), np.zeros((2, samples), object)
    wide = stream == "toy.many"
    own = sampler == "sobol" and not wide
    for r in range(4):
        rows = number % 4 == r
        text = f"1/5/{stream}/{r if own else 0}/0"
        digest = hashlib.sha256(text.encode()).digest()
        key = (int.from_bytes(digest[:4], "big"), int.from_bytes(digest[4:8], "big"))
        n = number[rows] // 4 if own else number[rows]
        found[:, rows] = threefry(key, n, toy.CROWD * step + part if wide else step)
    return found


def survival(words: np.ndarray, bits: int) -> np.ndarray:
    """1 - u, from its word or both of them: floats of 53 bits keep the upper tail."""
    whole = [int(a) if bits == 32 else (int(a) << 32) | int(b) for a, b in zip(*words, strict=True)]
    return np.array([((1 << bits) - w - 0.5) / 2.0**bits for w in whole])


def expected(sampler: str, steps: int, outputs: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Every result, step by step in float64, the first step from a sweep of one step."""
    samples = 200
    sweep = toy.sweep(samples=samples, sampler=sampler, outputs=outputs)
    first = small.evaluate(toy.plan(sweep))
    values = {n: [first[n][0].astype(np.float64)] for n in VARYING if n in outputs}
    scale = first["scale"][0].astype(np.float64)
    for step in range(1, steps):
        wait = survival(later("toy.wait", step, sampler, samples), 32)
        spike = survival(later("toy.spike", step, sampler, samples), 64)
        many = [survival(later("toy.many", step, sampler, samples, k), 32) for k in range(3)]
        later_values = {
            "wait": -scale * np.log(wait),
            "spike": -np.log(spike),
            "crowd": sum(1 - s for s in many),
        }
        for name in values:
            values[name].append(later_values[name])
    found = {}
    for name, each in values.items():
        found[name] = np.mean(each, axis=0)
        found[f"{name}_p99_of_steps"] = np.percentile(each, 99, axis=0)
        found[f"{name}_maximum_of_steps"] = np.max(each, axis=0)
    return found | {n: a[0] for n, a in first.items() if n not in values}


CASES = [("sobol", 3, toy.OUTPUTS), ("random", 4, ("wait", "crowd"))]


@pytest.mark.parametrize(("sampler", "steps", "outputs"), CASES)
def test_the_steps_are_those_of_the_rule_of_addresses(
    sampler: str, steps: int, outputs: tuple[str, ...]
):
    """Outputs of the reference are float64: 1e-5 is far above rounding, far below other luck."""
    plan = toy.plan(toy.sweep(samples=200, sampler=sampler, steps=steps, outputs=outputs))
    if outputs == toy.OUTPUTS:
        assert plan.outputs == (*RESULTS, "speed", "twice", "state")
    ours, theirs = small.evaluate(plan), expected(sampler, steps, outputs)
    assert ours.keys() == theirs.keys()
    varying = [n for n in ours if n in RESULTS]
    for name in varying:
        np.testing.assert_allclose(ours[name][0], theirs[name], rtol=1e-5, atol=1e-6, err_msg=name)
    for name in ours.keys() - varying:  # what is fixed, and flags of the first step
        assert ours[name][0].tobytes() == theirs[name].tobytes(), name


def test_two_steps_are_the_first_and_one_more():
    """The first step is that of a sweep of one step, to the bit: it is the maximum or the other."""
    few = {"samples": 2000, "outputs": ("spike",)}
    one = small.evaluate(toy.plan(toy.sweep(**few)))["spike"]
    two = small.evaluate(toy.plan(toy.sweep(**few, steps=2)))
    largest, mean = two["spike_maximum_of_steps"], two["spike"].astype(np.float64)
    assert np.all(largest >= one)
    is_first = largest == one
    assert 0.4 < is_first.mean() < 0.6
    np.testing.assert_allclose((2 * mean - largest)[~is_first], one[~is_first], atol=2e-6)


# ---- promises


MANY = {"samples": 9000, "steps": 3, "outputs": ("wait", "state")}


@pytest.fixture(scope="module")
def alone(installed, tmp_path_factory):
    """A store of 9 tiles in 3 blocks, by one process."""
    del installed
    path = tmp_path_factory.mktemp("steps") / "alone"
    return path, small.samples(toy.run(toy.sweep(**MANY), path))


def test_fewer_samples_and_other_blocks_change_no_bit(alone):
    _, whole = alone
    found = small.evaluate(Plan(toy.sweep(**MANY | {"samples": 5000}), block=2**14, tile=2**10))
    for name in RESULTS[:3]:
        assert found[name][0].tobytes() == whole[name][:5000].tobytes(), name


def test_processes_and_continuing_change_no_bit(alone, tmp_path):
    path, whole = alone
    toy.run(toy.sweep(**MANY), tmp_path / "shared", process=(1, 2))  # its half, then stops
    tree = toy.run(toy.sweep(**MANY), tmp_path / "shared")
    small.assert_same_bits(whole, small.samples(tree))
    assert small.everything(tmp_path / "shared") == small.everything(path)


def test_a_store_names_and_shows_the_statistics(alone, capsys):
    path, _ = alone
    tree = fabricarlo.open(path)
    assert tree.attrs["steps"] == 3
    assert tree.attrs["outputs"] == [*RESULTS[:3], "state"]
    for name in RESULTS[:3]:
        assert f"{name}_interval" in tree, name
        assert tree["/samples"][name].attrs["units"] == "s"
    text = "wait of a step, 99 % quantile of the 3 steps of a sample"
    assert tree["/samples"].wait_p99_of_steps.attrs["long_name"] == text
    assert "mean of the 3 steps" in tree["/samples"].wait.attrs["long_name"]
    assert "steps" not in tree["/samples"].state.attrs["long_name"]
    show_store(path, ["wait_maximum_of_steps"])
    assert "largest of the 3 steps of a sample" in capsys.readouterr().out


# ---- laws


def shares(steps: int, samples: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    """Distribution function of the largest of the steps' waits, and their means."""
    found = small.evaluate(
        toy.plan(toy.fixed(samples=samples, steps=steps, sampler="random", outputs=("wait",)))
    )
    largest = found["wait_maximum_of_steps"][0].astype(np.float64)
    return -np.expm1(-largest), found["wait"][0].astype(np.float64)


def test_the_steps_of_a_sample_are_independent():
    """The largest of S exponential waits: F^S. Their mean: 1 +- 1 / sqrt(S). False alarm 1e-6."""
    largest, means = shares(5)
    assert_follows(largest**5)
    assert_mean(means, 1.0, 1 / np.sqrt(5))
    with pytest.raises(AssertionError, match="not this law"):
        assert_follows(largest**4)


def test_steps_with_the_same_luck_are_found_out(monkeypatch):
    from fabricarlo import steps

    right = steps.wide_words
    monkeypatch.setattr(steps, "wide_words", lambda key, n, _step: right(key, n, jnp.uint32(1)))
    largest, _ = shares(5)
    with pytest.raises(AssertionError, match="not this law"):
        assert_follows(largest**5)


# ---- statistics


@pytest.mark.parametrize("steps", [2, 3, 100, 101, 102, 250])
def test_statistics_are_those_of_numpy(steps: int):
    """Rounding of float32 is 6e-8; a neighbour in rank is 1e-2 away."""
    generator = np.random.default_rng(steps)
    values = generator.exponential(size=(steps, 3, 5)).astype(np.float32)
    values[:, 0, 0] = 0.1  # all equal
    values[: steps // 2, 1, 0] = 7.0  # ties at the top
    most = rank_of_99(steps)[0] + 1
    assert most <= -(-steps // 100) + 1
    kept = Kept.of(jnp.asarray(values[0]), most)
    kept, _ = jax.lax.scan(lambda k, v: (k.after(v), None), kept, jnp.asarray(values[1:]))
    found = statistics(kept, steps)
    exact = values.astype(np.float64)
    np.testing.assert_allclose(found[""], exact.mean(axis=0), rtol=2e-7)
    quantile = np.percentile(exact, 99, axis=0)
    np.testing.assert_allclose(found["_p99_of_steps"], quantile, rtol=3e-7)
    np.testing.assert_array_equal(found["_maximum_of_steps"], values.max(axis=0))
    for name in ("", "_p99_of_steps"):
        assert np.all(found[name] <= found["_maximum_of_steps"])
    with pytest.raises(AssertionError):  # the rank beside it is seen
        np.testing.assert_allclose(
            found["_p99_of_steps"], np.percentile(exact, 100 * (1 - 2 / steps), axis=0), rtol=3e-7
        )


def test_a_mean_of_many_steps_loses_nothing():
    """Plain float32 sums of 10,000 values are some 1e-5 off; a compensated one is 1e-7."""
    values = np.random.default_rng(1).uniform(1, 2, size=(10_000, 1, 4)).astype(np.float32)
    kept = Kept.of(jnp.asarray(values[0]), rank_of_99(10_000)[0] + 1)
    kept, _ = jax.lax.scan(lambda k, v: (k.after(v), None), kept, jnp.asarray(values[1:]))
    mean = np.asarray(statistics(kept, 10_000)[""])
    np.testing.assert_allclose(mean, values.astype(np.float64).mean(axis=0), rtol=1.2e-7)


def test_a_step_without_a_number_is_not_hidden():
    kept = Kept.of(jnp.ones((1, 1)), 2).after(jnp.full((1, 1), jnp.nan)).after(jnp.ones((1, 1)))
    assert all(np.isnan(a).all() for a in statistics(kept, 3).values())


# ---- what runs where


def primitives(jaxpr: Any, inside: str | None = None) -> Iterator[tuple]:
    """(primitive, whether it is in a scan) of a jaxpr and of those inside it."""
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        yield name, inside
        for inner in jax.tree.leaves(equation.params, is_leaf=lambda p: hasattr(p, "jaxpr")):
            if hasattr(inner, "jaxpr"):
                yield from primitives(inner.jaxpr, "scan" if name == "scan" else inside)


def test_what_no_noise_reaches_is_known_before_the_loop():
    plan = toy.plan(toy.sweep(steps=3, outputs=("wait", "twice")))
    steps = Steps(Engine(plan).program(plan.variants[0]))
    assert [s.name for s in steps.steady()] == ["Part.part"]
    assert plan.variants[0].varying == ("wait",)
    assert plan.outputs == (*RESULTS[:3], "twice")


def test_a_stage_that_noise_does_not_reach_is_not_in_the_loop(monkeypatch):
    def slower(scale: toy.Scale, part: toy.Part, wait: Annotated[toy.Uniform, "wait"]) -> toy.Step:
        nothing = jnp.zeros_like(part.speed) + 0 * scale.scale
        waits = part.speed * toy.exponential(wait)
        return toy.Step(wait=waits, spike=nothing, crowd=nothing, twice=nothing, state=nothing)

    monkeypatch.setattr("fabricarlo.plan.model_of", lambda _: Model(toy.part, slower))
    plan = toy.plan(toy.sweep(steps=3, outputs=("wait",)))
    steps = Steps(Engine(plan).program(plan.variants[0]))
    lanes = jax.ShapeDtypeStruct((4, 256), np.float32)
    uniform = toy.Uniform(jax.ShapeDtypeStruct((4, 256), np.bool_), lanes)  # pyright: ignore
    given = (
        {"wait": lanes},
        jax.ShapeDtypeStruct((2, 256), np.float32),
        {"scale": lanes},
        {"toy.part": uniform, "toy.wait": uniform},
        jax.ShapeDtypeStruct((256,), np.uint32),
        jax.ShapeDtypeStruct((2, 3, 4, 1), np.uint32),
    )
    places = list(primitives(jax.make_jaxpr(steps._following)(*given).jaxpr))
    assert ("sin", None) in places  # the stage of the part
    assert ("sin", "scan") not in places
    assert ("log", "scan") in places


# ---- refusals


def test_a_wide_slot_must_say_how_many_it_takes(monkeypatch):
    def crowd(scale: toy.Scale, many: Annotated[WideUniform, "many"]) -> toy.Step:
        u = many.at(jnp.zeros((1, 1), jnp.uint32)).value + 0 * scale.scale
        return toy.Step(wait=u, spike=u, crowd=u, twice=u, state=u)

    monkeypatch.setattr("fabricarlo.plan.model_of", lambda _: Model(crowd))
    toy.plan(toy.sweep(outputs=("crowd",)))
    with pytest.raises(SpecError, match=r"toy.many takes any number .* declare how many"):
        toy.plan(toy.sweep(outputs=("crowd",), steps=2))


def test_steps_that_exhaust_a_stream_are_refused(monkeypatch):
    monkeypatch.setattr("fabricarlo.variants.MOST_NUMBERS", 100)
    toy.plan(toy.sweep(steps=33))
    with pytest.raises(SpecError, match="at most 33 steps a sample"):
        toy.plan(toy.sweep(steps=34))


def test_more_steps_than_are_kept_are_refused():
    with pytest.raises(SpecError, match="steps: 10001 is above 10000"):
        small.sweep(steps=10_001)


def test_another_number_of_steps_is_another_plan():
    hashes = {toy.plan(toy.sweep(steps=n, outputs=("wait",))).hash for n in (1, 2, 3)}
    assert len(hashes) == 3


def test_the_catalogues_own_steps(monkeypatch):
    """A link that is marginal stays so; what is lost is another packet in every step."""
    monkeypatch.setattr("fabricarlo.plan.model_of", model_of)
    monkeypatch.setattr("fabricarlo.plan.declared", declared)
    monkeypatch.setattr("fabricarlo.plan.DIMENSIONS", DIMENSIONS)
    monkeypatch.setattr("fabricarlo.variants.PERSISTENT", PERSISTENT)
    outputs = ["fabric_transfer_time", "slowest_clock_fraction", "data_loss_stall"]
    cooled = [*small.SPEC["base"], "cooling/single-phase-45c", "fabric/infiniband-xdr"]
    axes = {"gpus": [8192]}
    plan = Plan(small.sweep(steps=10, outputs=outputs, base=cooled, axes=axes))
    statistics = [f"data_loss_stall{s}" for s in ("", "_p99_of_steps", "_maximum_of_steps")]
    assert plan.outputs == (*outputs[:2], *statistics)
    assert "cooling.slowest" in plan.streams
    assert "cooling.slowest" not in plan.variants[0].redrawn
    assert "loss.data.lost" in plan.variants[0].redrawn
