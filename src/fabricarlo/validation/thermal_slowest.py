"""The smallest throttle budget of N parts, and the clock that it leaves."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp

from fabric_kernels.cooling.budget import Budget, clock_of_budget, smallest_budget
from fabricarlo.validation.report import Criterion, Report, Row, Table
from fabricarlo.validation.table import assigned, number

KIND = "slowest of N by its throttle budget"
COLUMNS = frozenset(
    {
        "params", "N", "q_of_slowest", "min_B_watt", "clock_ratio", "sim_min_B", "sim_stderr",
        "reps", "seed",
    }
)  # fmt: skip
NUMBERS = frozenset({"N", "q_of_slowest", "min_B_watt", "clock_ratio", "sim_min_B", "sim_stderr"})

RELATIVE = 1e-6
LEAST_SHARE = 1e-6
"""Least share of dynamic power that a clock is given for, where a row names none."""

_NAMES = {"sR", "sL", "a", "R0", "L0", "Pdyn", "gamma", "fmin"}
_solved = jax.jit(smallest_budget)


def validate(table: Table) -> Report:
    """Every budget and every clock beside the product's own, in float64."""
    with jax.enable_x64(True):  # noqa: FBT003 - JAX takes it so
        rows = [row for cells in table.rows for row in _rows(cells)]
    judged = [row for row in rows if row.verdict != "not applicable"]
    right = sum(row.verdict == "pass" for row in judged)
    demand = f"budgets and clocks within {RELATIVE:g} relative"
    return Report(
        table.path.name,
        KIND,
        rows,
        [
            Criterion(demand, f"{right} of {len(judged)}", right == len(judged)),
            Criterion("at least one row applies", str(len(judged)), bool(judged)),
        ],
    )


def _rows(cells: Mapping[str, str]) -> list[Row]:
    given = {key: float(text) for key, text in assigned(cells, "params").items()}
    level, count = number(cells, "q_of_slowest"), number(cells, "N")
    name = f"{cells['params']} N={cells['N']} q={cells['q_of_slowest']}"
    if unknown := set(given) - _NAMES:
        why = f"parameters that the budget does not have: {', '.join(sorted(unknown))}"
        return [Row(name, number(cells, "min_B_watt"), None, "W", "", "not applicable", why)]
    parts = Budget(*(jnp.asarray(given[key], float) for key in ("a", "R0", "sR", "L0", "sL")))
    exponential = -jnp.log1p(-jnp.asarray(level, float))
    budget = _solved(parts, jnp.asarray(count, float), exponential)
    rows = [_judged(name, number(cells, "min_B_watt"), float(budget), "W")]
    if cells["clock_ratio"]:
        least = given.get("fmin", LEAST_SHARE)
        clock = clock_of_budget(
            budget, *(jnp.asarray(x, float) for x in (given["Pdyn"], given["gamma"], least))
        )
        rows.append(_judged(f"{name} clock", number(cells, "clock_ratio"), float(clock), "1"))
    return rows


def _judged(name: str, reference: float, found: float, unit: str) -> Row:
    apart = abs(found - reference) / max(abs(reference), 1e-300)
    right = apart <= RELATIVE
    reason = "" if right else "apart by more than is allowed"
    return Row(
        name, reference, found, unit, f"{apart:.2g} relative", "pass" if right else "fail", reason
    )
