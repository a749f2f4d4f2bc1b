"""Trees, pairs and hierarchies: event-level simulation and surrogate beside simulated tables."""

import math
from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from fabric_kernels.jitter.laws.events import Hops, event_stall
from fabric_kernels.jitter.laws.hierarchy import hierarchical_finish
from fabric_kernels.jitter.laws.stalls import pattern_stall
from fabric_kernels.noise import HopNoise
from fabric_kernels.pattern import Doubling, Pattern, Ring, Traffic, Tree
from fabricarlo.validation.hop_laws import (
    ENOUGH,
    Named,
    Threefry,
    lane,
    lanes,
    law_of,
    named,
    samples,
)
from fabricarlo.validation.report import Report, Row, Table, Verdict
from fabricarlo.validation.ring_maxplus import criteria, statistic

KIND = "trees, pairs and hierarchies under hop noise, simulated event by event"
COLUMNS = frozenset({"algo", "law", "params", "stat", "value", "stderr", "reps", "seed"})
NUMBERS = frozenset({"value", "stderr", "reps"})

SHARE = 0.01
"""Relative error of the surrogate's mean (trees also p99), if not within 4.9 errors."""

POINTS = 1 << 14
LEAVES = 256
COSTLY = {"gamma": 0.1, "spike": 0.15}

EVENT = "event_level"
SURROGATE = "surrogate, trees of one chunk"
PIPELINED = "surrogate, pipelined trees"
PAIRS = "surrogate, recursive doubling from 256 ranks on"
BARRIER = "barrier"
BOUND = "surrogate bounds hierarchies"
STAGES = "surrogate, hierarchies with a barrier between stages"

DEMANDS = {
    EVENT: "event_level within 4.9 standard errors: 256 ranks or leaves, hierarchies of 4096",
    SURROGATE: "surrogate's mean and p99 of one chunk within 1 % or 4.9 standard errors",
    PIPELINED: "surrogate's mean of pipelined trees within 1 % or 4.9 errors, laws without spikes",
    PAIRS: "surrogate's mean of recursive doubling within 1 % or 4.9 errors from 256 ranks on",
    BARRIER: "barrier's mean within 1 % or 4.9 standard errors",
    BOUND: "surrogate's mean of a hierarchy not below the simulated one",
    STAGES: "surrogate's mean of a hierarchy with stage barriers within 3 % or 4.9 errors",
}


def pattern_of(algorithm: str, numbers: dict[str, float]) -> Pattern | None:
    """The pattern of a row without hierarchy."""
    one = lane(1.0)
    if algorithm == "binary_tree":
        leaves, chunks = numbers["leaves"], lane(numbers.get("chunks", 1.0))
        depth = lane(math.log2(leaves))
        return Tree(lane(leaves), depth, lane(2.0), one, chunks, one, one, one)
    if algorithm.startswith("recursive_doubling"):
        ranks = numbers["N"]
        return Doubling(lane(ranks), lane(math.log2(ranks)), one, one, one)
    return None


def stages_of(algorithm: str, numbers: dict[str, float]) -> list[Pattern]:
    """The three stages of a hierarchical row, each with all its copies."""
    ranks, domains, one = lane(numbers["G"]), lane(numbers["P"]), lane(1.0)
    inside = Ring(ranks, ranks - 1.0, one, domains, one)
    if "doubling" in algorithm:
        across: Pattern = Doubling(domains, jnp.log2(domains), one, ranks, one)
    else:
        across = Ring(domains, 2.0 * (domains - 1.0), one, ranks, one)
    return [inside, across, inside]


@cache
def _surrogate() -> Callable[..., Array]:
    return jax.jit(pattern_stall)


def surrogate_times(patterns: list[Pattern], law: Named) -> NDArray[np.float64]:
    """The sum of the patterns' quantiles in the middles of equal parts of (0, 1)."""
    level = lanes(-np.log((np.arange(POINTS) + 0.5) / POINTS))
    parts = [np.asarray(_surrogate()(p, law_of(law), level), float)[0] for p in patterns]
    return np.sum(parts, axis=0)


@cache
def _event(shape: tuple[int, int] | None, *, doubling: bool = False) -> Callable[..., Array]:
    def run(noise: HopNoise, pattern: Pattern, index: Array) -> Array:
        wide = Threefry(13, index)
        if shape is None:
            return event_stall(Traffic((pattern,), lane(1.0)), noise, wide)
        hops, like = Hops(noise, wide, jnp.uint32(0)), jnp.zeros(index.shape, jnp.float32)
        return hierarchical_finish(shape, hops, like, doubling=doubling)

    return jax.jit(run)


def event_times(algorithm: str, numbers: dict[str, float], law: Named) -> NDArray[np.float64]:
    """Simulated finishing times, as many as a budget of hops allows."""
    if "G" in numbers:
        shape = int(numbers["G"]), int(numbers["P"])
        hops = shape[0] * shape[1] * (14 + (9 if "doubling" in algorithm else 2 * shape[1]))
        pattern, width = stages_of(algorithm, numbers)[0], 64
        run = _event(shape, doubling="doubling" in algorithm)
    else:
        pattern = pattern_of(algorithm, numbers)
        assert pattern is not None
        hops, width, run = int(1200 * numbers.get("chunks", 3.0)), 1024, _event(None)
    rounds = int(max(2, min(24, 5e7 * COSTLY.get(law.family, 1.0) / (hops * width))))
    noise, index = law_of(law), samples(width)
    parts = [
        np.asarray(run(noise, pattern, index + jnp.uint32(k * width)), float)[0]
        for k in range(rounds)
    ]
    return np.concatenate(parts)


class _Judge:
    """Rows of one table and the largest deviation by criterion."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.worst: dict[str, float] = {}
        self.made: dict[tuple[str, ...], NDArray[np.float64]] = {}

    def note(self, row: dict[str, str], how: str, found: float, share: float) -> None:
        """A row that is held to a criterion: `share` is its deviation over the allowed one."""
        self.worst[how] = max(self.worst.get(how, 0.0), share)
        verdict: Verdict = "pass" if share <= 1 else "fail"
        apart = abs(found - float(row["value"])) / max(abs(float(row["value"])), 1e-9)
        self._add(row, how, found, f"{apart:.2%}, {share:.2f} of allowed", verdict, "")

    def skip(self, row: dict[str, str], how: str, reason: str) -> None:
        """A row that is held to nothing."""
        self._add(row, how, None, "", "not applicable", reason)

    def _add(
        self, row: dict[str, str], how: str, found: float | None, measure: str,
        verdict: Verdict, reason: str,
    ) -> None:  # fmt: skip
        name = f"{row['algo']} {row['law']} {row['params']} {row['stat']} ({how})"
        self.rows.append(Row(name, float(row["value"]), found, "hops", measure, verdict, reason))

    def times(
        self, row: dict[str, str], how: str, make: Callable[[], NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        key = (row["algo"], row["law"], row["params"], how)
        if key not in self.made:
            self.made[key] = make()
        return self.made[key]


def _judge_event(judge: _Judge, row: dict[str, str], numbers: dict[str, float], law: Named) -> None:
    small = numbers.get("leaves", numbers.get("N", 0)) <= LEAVES and numbers.get("chunks", 1) < 64
    if "G" in numbers:
        small = numbers["G"] * numbers["P"] <= 4096
    if not small:
        return judge.skip(row, EVENT, "too many ranks, leaves or chunks for event_level")
    times = judge.times(row, EVENT, lambda: event_times(row["algo"], numbers, law))
    own = statistic(row["stat"], times)
    if own is None:
        return judge.skip(row, EVENT, f"no statistic is called {row['stat']}")
    apart, error = abs(own[0] - float(row["value"])), math.hypot(own[1], float(row["stderr"]))
    share = apart / (ENOUGH * error) if error else (0.0 if apart < 1e-3 else math.inf)
    if law.family == "spike" and row["stat"].startswith("p") and apart < 1.001:
        share = min(share, 1.0)  # a quantile of a count may be one off
    return judge.note(row, EVENT, own[0], share)


def _judge_pattern(
    judge: _Judge, row: dict[str, str], numbers: dict[str, float], law: Named
) -> None:
    pattern = pattern_of(row["algo"], numbers)
    assert pattern is not None
    how, held = PAIRS, row["stat"] == "mean" and numbers.get("N", 0) >= 256
    if row["algo"] == "binary_tree":
        single = numbers.get("chunks", 1.0) == 1
        how = SURROGATE if single else PIPELINED
        held = row["stat"] == "mean" or (single and row["stat"] == "p99")
        held = held and (single or law.family != "spike")
    if not held:
        return judge.skip(row, how, "the surrogate is held to nothing here")
    times = judge.times(row, how, lambda: surrogate_times([pattern], law))
    found = float(times.mean()) if row["stat"] == "mean" else float(np.quantile(times, 0.99))
    return judge.note(row, how, found, _share(row, found, SHARE))


def _share(row: dict[str, str], found: float, relative: float) -> float:
    value, error = float(row["value"]), float(row["stderr"])
    return abs(found - value) / max(relative * abs(value), ENOUGH * error, 1e-9)


def _judge_hierarchy(
    judge: _Judge, row: dict[str, str], numbers: dict[str, float], law: Named
) -> None:
    barriers = row["algo"].endswith("_stagebarrier")
    how = STAGES if barriers else BOUND
    if not barriers:
        _judge_event(judge, row, numbers, law)
    if row["stat"] != "mean" or law.family == "spike":
        return judge.skip(row, how, "the surrogate is held to nothing here")
    stages = stages_of(row["algo"], numbers)
    found = float(judge.times(row, how, lambda: surrogate_times(stages, law)).mean())
    if barriers:
        return judge.note(row, how, found, _share(row, found, 0.03))
    value, error = float(row["value"]), float(row["stderr"])
    missing = max(value - found, 0.0)
    return judge.note(row, how, found, missing / max(ENOUGH * error, 1e-9))


def _judge_barrier(
    judge: _Judge, row: dict[str, str], numbers: dict[str, float], law: Named
) -> None:
    if row["stat"] != "mean":
        return judge.skip(row, BARRIER, "the barrier is held to its mean")
    ranks = numbers["N"]
    found = math.log2(ranks) * float(law_of(law).largest_moments(lane(ranks))[0][0, 0])
    return judge.note(row, BARRIER, found, _share(row, found, SHARE))


def validate(table: Table) -> Report:
    """Every row by the simulation and the law that answer it."""
    judge = _Judge()
    for given in table.rows:
        row, law = dict(given), named(given["law"])
        numbers = {k: float(v) for k, v in (x.split("=") for x in row["params"].split(";"))}
        if law is None or law.weight == "endless":
            judge.skip(row, EVENT, f"no law with a variance is called {row['law']}")
        elif row["algo"].startswith("hier_"):
            _judge_hierarchy(judge, row, numbers, law)
        elif row["algo"] == "recursive_doubling_barrier":
            _judge_barrier(judge, row, numbers, law)
        elif row["algo"] in ("binary_tree", "recursive_doubling"):
            _judge_event(judge, row, numbers, law)
            _judge_pattern(judge, row, numbers, law)
        else:
            judge.skip(row, EVENT, f"no pattern is called {row['algo']}")
    return Report(str(table.path), KIND, judge.rows, criteria(judge.worst, DEMANDS))
