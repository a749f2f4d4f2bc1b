"""Rings without barrier: the event-level simulation and the surrogate beside simulated tables."""

import math
import re
from collections.abc import Callable, Sequence
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from fabric_kernels.jitter.laws.events import event_stall
from fabric_kernels.jitter.laws.ring import ring_stall
from fabric_kernels.noise import HopNoise
from fabric_kernels.pattern import Ring, Traffic
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
from fabricarlo.validation.report import Criterion, Report, Row, Table

KIND = "rings under hop noise, simulated event by event"
COLUMNS = frozenset({"N", "law", "params", "stat", "value", "stderr", "reps", "seed"})
NUMBERS = frozenset({"N", "value", "stderr", "reps"})

MEAN = {"light": (16, 0.005), "heavy": (16, 0.01), "very heavy": (16, 0.04)}
"""Weight of the tail -> ranks from which on, and relative error of, the surrogate's mean."""

P99 = {"light": (32, 0.03), "heavy": (64, 0.08)}
"""The same of its 99th percentile."""

EVENT_RANKS = 256
BUDGET = {"gamma": 1e7, "spike": 1.5e7}
"""Hops that are simulated for a row, for laws whose quantile is costly; 6e7 for others."""

POINTS = 1 << 16


def ring_of(ranks: int) -> Ring:
    """An all-reduce on a ring, one call."""
    one = lane(1.0)
    return Ring(lane(ranks), lane(2.0 * (ranks - 1)), one, one, one)


@cache
def _surrogate() -> Callable[..., jax.Array]:
    return jax.jit(ring_stall)


@cache
def _event() -> Callable[..., jax.Array]:
    def event(noise: HopNoise, ring: Ring, index: jax.Array) -> jax.Array:
        return event_stall(Traffic((ring,), lane(1.0)), noise, Threefry(11, index))

    return jax.jit(event)


def surrogate_times(law: Named, ranks: int) -> NDArray[np.float64]:
    """The surrogate's quantiles in the middles of 2^16 equal parts of (0, 1)."""
    exponential = -np.log((np.arange(POINTS) + 0.5) / POINTS)
    return np.asarray(_surrogate()(ring_of(ranks), law_of(law), lanes(exponential)), float)[0]


def event_times(law: Named, ranks: int) -> NDArray[np.float64]:
    """Simulated finishing times: of 2^17 samples as many as the budget of hops allows."""
    width = 1 << 8 if ranks > 64 else 1 << 12
    hops = max(2 * ranks * (ranks - 1), 1)
    rounds = int(max(1, min(32, BUDGET.get(law.family, 6e7) / (hops * width))))
    index = samples(width)
    parts = [
        np.asarray(_event()(law_of(law), ring_of(ranks), index + jnp.uint32(k * width)), float)[0]
        for k in range(rounds)
    ]
    return np.concatenate(parts)


def statistic(name: str, times: NDArray[np.float64]) -> tuple[float, float] | None:
    """A statistic of the table and its standard error, by batches for a quantile or deviation."""
    if name == "mean":
        return float(times.mean()), float(times.std() / math.sqrt(times.size))
    level = re.fullmatch(r"p([0-9.]+)", name)
    if level:
        return _by_batches(times, lambda t: float(np.quantile(t, float(level[1]) / 100)))
    if name == "std":
        return _by_batches(times, lambda t: float(np.std(t)))
    return None


def _by_batches(
    times: NDArray[np.float64], of: Callable[[NDArray[np.float64]], float]
) -> tuple[float, float]:
    parts = [of(part) for part in np.array_split(times, 16)]
    return of(times), float(np.std(parts, ddof=1) / 4)


def _exact(name: str, law: Named, ranks: int) -> float | None:
    """What needs no simulation: the sum of means and the mean of a barrier in every step."""
    noise, steps = law_of(law), 2 * (ranks - 1)
    if name == "sum_of_means":
        return steps * float(noise.moments()[0][0, 0])
    if name == "naive_barrier_mean":
        return steps * float(noise.largest_moments(lane(ranks))[0][0, 0])
    return None


class _Judge:
    """Rows of one table and the largest deviation by criterion."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.worst: dict[str, float] = {}
        self.times: dict[tuple[str, str, int], NDArray[np.float64]] = {}

    def times_of(self, how: str, law: Named, ranks: int) -> NDArray[np.float64]:
        key = (how, repr(law), ranks)
        if key not in self.times:
            self.times[key] = (event_times if how == "event" else surrogate_times)(law, ranks)
        return self.times[key]

    def note(self, row: dict[str, str], how: str, found: float, share: float, measure: str) -> None:
        """A row that is held to something: `share` is its deviation over the allowed one."""
        self.worst[how] = max(self.worst.get(how, 0.0), share)
        name = f"{row['law']} N={row['N']} {row['stat']} ({how})"
        verdict = "pass" if share <= 1 else "fail"
        self.rows.append(Row(name, float(row["value"]), found, "hops", measure, verdict))

    def skip(self, row: dict[str, str], how: str, reason: str) -> None:
        """A row that is not held to anything here."""
        name = f"{row['law']} N={row['N']} {row['stat']} ({how})"
        self.rows.append(Row(name, float(row["value"]), None, "", "", "not applicable", reason))


def _in_hops(row: dict[str, str], law: Named, ranks: int) -> tuple[str, float, float]:
    """Statistic, value and standard error in the unit of hops; c_done is a mean in other words."""
    value, error = float(row["value"]), float(row["stderr"])
    if row["stat"] != "c_done":
        return row["stat"], value, error
    mean, deviation = (float(x[0, 0]) for x in law_of(law).moments())
    steps = 2 * (ranks - 1)
    return "mean", steps * (mean + value * deviation), steps * error * deviation


def _judge_event(judge: _Judge, row: dict[str, str], law: Named, ranks: int) -> None:
    name, value, error = _in_hops(row, law, ranks)
    if ranks > EVENT_RANKS:
        return judge.skip(row, "event_level", f"more than {EVENT_RANKS} ranks")
    if law.weight == "endless" and name in ("mean", "std", "c_done"):
        return judge.skip(row, "event_level", "the variance is infinite: no standard error holds")
    own = statistic(name, judge.times_of("event", law, ranks))
    if own is None:
        return judge.skip(row, "event_level", f"no statistic is called {name}")
    apart = abs(own[0] - value)
    spread = math.hypot(own[1], error)
    lattice = law.family == "spike" and name.startswith("p")
    share = apart / (ENOUGH * spread) if spread else (0.0 if apart < 1e-3 else math.inf)
    if lattice and apart < 1.001:
        share = min(share, 1.0) if apart < 1e-3 or spread else 1.0
    measure = f"{apart / spread:.2f} standard errors" if spread else f"{apart:.2g} hops"
    return judge.note(row, "event_level", own[0], share, measure)


def _judge_surrogate(judge: _Judge, row: dict[str, str], law: Named, ranks: int) -> None:
    name, value, error = _in_hops(row, law, ranks)
    if law.weight == "endless":
        return judge.skip(
            row, "surrogate", f"tail index {law.shape:g}: a ring has no typical time, it grows "
            f"like N^{2 * law.shape:g}",
        )  # fmt: skip
    limits = {"mean": MEAN, "p99": P99}.get(name, {})
    if law.weight not in limits or ranks < limits[law.weight][0]:
        return judge.skip(row, "surrogate", "the surrogate is held to nothing here")
    allowed = limits[law.weight][1] * abs(value)
    times = judge.times_of("surrogate", law, ranks)
    own = float(times.mean()) if name == "mean" else float(np.quantile(times, 0.99))
    # a table may be less exact than the criterion: its own error is granted beside it
    share = abs(own - value) / max(allowed, ENOUGH * error)
    measure = f"{abs(own - value) / abs(value):.2%}"
    return judge.note(row, f"surrogate {name}, {law.weight}", own, share, measure)


def validate(table: Table) -> Report:
    """event_level within 4.9 standard errors to 256 ranks; the surrogate to fixed shares."""
    judge = _Judge()
    for given in table.rows:
        row = dict(given)
        law, ranks = named(row["law"]), int(float(row["N"]))
        if law is None:
            judge.skip(row, "event_level", f"no law is called {row['law']}")
            continue
        exact = _exact(row["stat"], law, ranks)
        if exact is None:
            _judge_event(judge, row, law, ranks)
            _judge_surrogate(judge, row, law, ranks)
            continue
        _judge_exact(judge, row, law, exact)
    return Report(str(table.path), KIND, judge.rows, criteria(judge.worst, demands()))


def _judge_exact(judge: _Judge, row: dict[str, str], law: Named, exact: float) -> None:
    how = "mean" if row["stat"] == "sum_of_means" else "barrier"
    value, error = float(row["value"]), float(row["stderr"])
    if law.weight == "endless" and how == "barrier":
        return judge.skip(row, how, "the variance is infinite: no standard error holds")
    steps, samples_of = 2 * (int(float(row["N"])) - 1), max(float(row["reps"]), 1.0)
    spread = float(law_of(law).largest_moments(lane(float(row["N"])))[1][0, 0])
    if how == "barrier":  # a single run has no standard error of its own
        error = max(error, spread * math.sqrt(steps / samples_of))
    # quadrature with few nodes is good to 1 % of a mean of spikes, 3e-4 of others
    allowed = max(ENOUGH * error, (1e-2 if law.family == "spike" else 3e-4) * abs(value), 1e-6)
    apart = abs(exact - value)
    return judge.note(row, how, exact, apart / allowed, f"{apart / max(abs(value), 1e-9):.2g}")


def demands() -> dict[str, str]:
    """Key of a criterion -> what it demands."""
    made = {
        "event_level": "event_level within 4.9 standard errors up to 256 ranks",
        "mean": "sum of means exact",
        "barrier": "barrier within 4.9 standard errors or its quadrature",
    }
    for name, limits in (("mean", MEAN), ("p99", P99)):
        for weight, (least, share) in limits.items():
            made[f"surrogate {name}, {weight}"] = (
                f"surrogate's {name} within {share:.1%} from {least} ranks on, {weight} tails "
                "(or 4.9 standard errors of the table)"
            )
    return made


def criteria(worst: dict[str, float], demanded: dict[str, str]) -> Sequence[Criterion]:
    """What was demanded, and the largest deviation as a share of the allowed one."""
    return [
        Criterion(
            demand=demand,
            found=f"{worst[key]:.2f} of what is allowed" if key in worst else "no such row",
            passed=worst.get(key, 0.0) <= 1,
        )
        for key, demand in demanded.items()
    ]
