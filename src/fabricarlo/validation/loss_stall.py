"""Packet-level stalls: one flow under loss, chains of stalls in a ring, pauses of a link."""

import functools
from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from fabric_kernels.loss.laws.moments import (
    FlowMoments,
    go_back_n_moments,
    selective_repeat_mean,
)
from fabric_kernels.loss.laws.pauses import Pauses, pause_moments, pause_quantile
from fabric_kernels.maths.chain import Chain, chain_law, chain_quantile
from fabric_kernels.uniform import Uniform
from fabricarlo.sampling.counted import Counted
from fabricarlo.validation.agreement import both_counted, counted, judged, quantile, within
from fabricarlo.validation.report import Criterion, Report, Row, Table
from fabricarlo.validation.simulated_flows import Case, Runs, simulated
from fabricarlo.validation.table import assigned, number

KIND = "packet-level loss stalls"
COLUMNS = frozenset({"scheme", "params", "stat", "value", "stderr", "closed_form", "reps", "seed"})
NUMBERS = frozenset({"value", "stderr", "reps"})

FEW_TIMERS = 100
"""Fewer timers expected in all runs of a row than this: their spread is not in its deviation."""

LEVELS = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
FIELDS = {
    "mean": "mean",
    "std": "deviation",
    "p_any_rto": "timer_chance",
    "mean_given_no_rto": "mean_without_timer",
    "std_given_no_rto": "deviation_without_timer",
}


def suits(table: Table) -> bool:
    """Whether the rows are flows, chains or pauses."""
    return all(row["scheme"] for row in table.rows)


def validate(table: Table) -> Report:
    """Every row beside the product's own law or its packet-by-packet simulation."""
    rows = [_row(cells) for cells in table.rows]
    return Report(table.path.name, KIND, rows, criteria(rows))


def criteria(rows: list[Row]) -> list[Criterion]:
    """All rows that apply agree, and there are some."""
    judged_rows = [row for row in rows if row.verdict != "not applicable"]
    right = sum(row.verdict == "pass" for row in judged_rows)
    demand = (
        "means and deviations within 4.9 standard errors of the difference or 0.5 %; chances, "
        "quantiles and counts by exact tests at 1e-6"
    )
    return [
        Criterion(demand, f"{right} of {len(judged_rows)}", right == len(judged_rows)),
        Criterion("at least one row applies", str(len(judged_rows)), bool(judged_rows)),
    ]


def _row(cells: Mapping[str, str]) -> Row:
    name = f"{cells['scheme']} {cells['params']} {cells['stat']}"
    stat = cells["stat"]
    known = stat in FIELDS or stat in LEVELS
    ask = _ASKED.get(cells["scheme"])
    if ask is None or not known:
        why = f"no such scheme: known are {', '.join(_ASKED)}" if ask is None else "no such number"
        return Row(name, number(cells, "value"), None, "", "", "not applicable", why)
    return ask(name, cells)


def _flow(name: str, cells: Mapping[str, str]) -> Row:
    scheme, stat = cells["scheme"], cells["stat"]
    value, runs_in_row = number(cells, "value"), int(number(cells, "reps"))
    case = _case(scheme, assigned(cells, "params"))
    if case.window < case.feedback + 2:
        why = "the window is below the round trip: such a flow is flagged as window-limited"
        return Row(name, value, None, "slots", "", "not applicable", why)
    runs = simulated(case, runs_in_row)
    exact = _exact(case)
    timed = runs.timers > 0
    if stat in LEVELS:
        found = float(np.quantile(runs.slots, LEVELS[stat]))
        return judged(
            name, value, found, "slots", quantile(value, LEVELS[stat], runs_in_row, runs.slots)
        )
    if stat == "p_any_rto":
        count = round(value * runs_in_row)
        if exact is not None:
            chance = float(exact.timer_chance)
            return judged(name, value, chance, "1", counted(count, runs_in_row, chance))
        own = int(timed.sum())
        test = both_counted(count, runs_in_row, own, timed.size)
        return judged(name, value, own / timed.size, "1", test)
    expected = runs_in_row * (float(exact.timer_chance) if exact else float(timed.mean()))
    if stat == "std" and expected < FEW_TIMERS:
        why = f"{expected:.2g} timers expected in its runs: their spread is not in its deviation"
        return Row(name, value, None, "slots", "", "not applicable", why)
    found, error = _moment(case, stat, exact, runs, runs_in_row)
    return judged(name, value, found, "slots", within(value, found, np.hypot(error, _error(cells))))


def _error(cells: Mapping[str, str]) -> float:
    return number(cells, "stderr") if cells["stderr"] else 0.0


def _moment(
    case: Case, stat: str, exact: FlowMoments | None, runs: Runs, runs_in_row: int
) -> tuple[float, float]:
    """A mean or deviation, and its standard error beside that which the row gives."""
    kept = runs.slots[runs.timers == 0] if stat.endswith("no_rto") else runs.slots
    deviation = float(kept.std())
    if exact is not None:
        found = float(getattr(exact, FIELDS[stat]))
        # the row's own error misses rare timers that it did not see
        unseen = stat == "mean"
        return found, float(exact.deviation) / runs_in_row**0.5 if unseen else 0.0
    if stat == "mean" and case.channel[0] == case.channel[1]:
        return _selective_mean(case), deviation / runs_in_row**0.5
    if stat.startswith("mean"):
        return float(kept.mean()), deviation / kept.size**0.5
    fourth = float(((kept - kept.mean()) ** 4).mean())
    error = (max(fourth - deviation**4, 0.0) / kept.size) ** 0.5 / (2 * deviation or 1.0)
    return deviation, error


def _case(scheme: str, values: Mapping[str, str]) -> Case:
    plain = scheme.removesuffix("_gilbert_elliott")
    packets, feedback, window, timeout = (int(float(values[k])) for k in ("M", "R", "W", "T0"))
    if plain == scheme:
        rate = float(values["p"])
        channel = (rate, rate, 0.0, 0.0)
    else:
        good, bad, worsens, improves = (float(values[k]) for k in ("pg", "pb", "a", "b"))
        channel = (good, bad, worsens, improves)
    return Case(plain, packets, feedback, window, timeout, channel)


@functools.cache
def _exact(case: Case) -> FlowMoments | None:
    """The closed form where there is one: go-back-N with independent losses."""
    if not case.scheme.startswith("gbn") or case.channel[2] > 0:
        return None
    single = case.scheme == "gbn_nak_once"
    packets, feedback, window, timeout, rate = _numbers(case)
    return go_back_n_moments(packets, feedback, window, timeout, rate, single_nak=single)


def _selective_mean(case: Case) -> float:
    packets, feedback, window, timeout, rate = _numbers(case)
    return float(selective_repeat_mean(packets, feedback, window, timeout, rate))


def _numbers(case: Case) -> list[jax.Array]:
    return [jnp.asarray(float(x), jnp.float32) for x in (*case[1:5], case.channel[0])]


def _chain(name: str, cells: Mapping[str, str]) -> Row:
    values, stat, value = assigned(cells, "params"), cells["stat"], number(cells, "value")
    turns, stalls = float(values["steps/N"]), float(values["stalls"])
    law = chain_law(*(jnp.full((1, 1), x, jnp.float32) for x in (stalls, 1e30, turns)))
    if stat in LEVELS:
        draws = _chain_draws(law)
        found = float(np.quantile(draws, LEVELS[stat]))
        return judged(
            name, value, found, "stalls",
            quantile(value, LEVELS[stat], int(number(cells, "reps")), draws),
        )  # fmt: skip
    if stat not in ("mean", "std"):
        return Row(name, value, None, "stalls", "", "not applicable", "no such number of a chain")
    found = float(law.mean[0, 0] if stat == "mean" else law.deviation[0, 0])
    return judged(name, value, found, "stalls", within(value, found, _error(cells)))


def _chain_draws(law: Chain) -> NDArray[np.float64]:
    """The law's own quantiles, evenly spread: no draw of chance."""
    half = (jnp.arange(2**15, dtype=jnp.float32).reshape(1, -1) + 0.5) / 2**16
    upper = jnp.zeros(half.shape, bool)
    ends = [chain_quantile(law, Uniform(side, half)) for side in (upper, ~upper)]
    return np.concatenate([np.asarray(end, np.float64).ravel() for end in ends])


def _pause(name: str, cells: Mapping[str, str]) -> Row:
    stat, value = cells["stat"], number(cells, "value")
    parts = cells["params"].split(";")
    values = dict(part.split("=") for part in parts if "=" in part)
    if (
        "exp" not in parts
        or "stationary start" not in parts
        or stat not in (*LEVELS, "mean", "std")
    ):
        why = "only exponential pauses of a link that has run for long are in the table's words"
        return Row(name, value, None, "s", "", "not applicable", why)
    numbers = [
        jnp.full((1, 1), float(values[k]), jnp.float32) for k in ("work", "rate", "mean_pause")
    ]
    pauses = Pauses(numbers[1], numbers[2], jnp.ones((1, 1), jnp.float32))
    work = float(values["work"])
    if stat in LEVELS:
        draws = work + _pause_draws(numbers[0], pauses)
        found = float(np.quantile(draws, LEVELS[stat]))
        return judged(
            name, value, found, "s",
            quantile(value, LEVELS[stat], int(number(cells, "reps")), draws),
        )  # fmt: skip
    mean, variance = pause_moments(numbers[0], pauses)
    found = work + float(mean[0, 0]) if stat == "mean" else float(variance[0, 0]) ** 0.5
    return judged(name, value, found, "s", within(value, found, _error(cells)))


def _pause_draws(work: jax.Array, pauses: Pauses) -> NDArray[np.float64]:
    key = jnp.full((1, 1), 7, jnp.uint32)
    sample = jnp.arange(2**17, dtype=jnp.uint32).reshape(1, -1)
    upper, distance = Counted(key, key, sample).at(jnp.arange(2, dtype=jnp.uint32).reshape(2, 1, 1))
    drawn = [Uniform(upper[k], distance[k]) for k in range(2)]
    found = pause_quantile(work, pauses, jnp.ones((1, 1), jnp.float32), *drawn)
    return np.asarray(found, np.float64).ravel()


_ASKED: dict[str, Callable[[str, Mapping[str, str]], Row]] = {
    "gbn_renak": _flow,
    "gbn_nak_once": _flow,
    "selective_repeat": _flow,
    "gbn_renak_gilbert_elliott": _flow,
    "gbn_nak_once_gilbert_elliott": _flow,
    "selective_repeat_gilbert_elliott": _flow,
    "ring_stall_chain": _chain,
    "pause_alternating_renewal": _pause,
}
