"""Loss stalls of whole collectives: chance of any, barriers, rings, the seed document."""

from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np

from fabric_kernels.inputs.loss import LossBursts
from fabric_kernels.loss.laws.critical import RingLoad, mean_ring_count
from fabric_kernels.loss.laws.flow import Losses, chance_of_any
from fabric_kernels.loss.laws.rounds import largest_poisson_moments
from fabricarlo.validation.agreement import counted, judged, within
from fabricarlo.validation.report import Criterion, Report, Row, Table
from fabricarlo.validation.table import assigned, number

KIND = "loss stalls of collectives"
COLUMNS = frozenset({"case", "params", "stat", "value", "stderr", "closed_form", "reps", "seed"})
NUMBERS = frozenset({"value", "stderr", "reps"})

_MEAN = jax.jit(mean_ring_count)
_LARGEST = jax.jit(largest_poisson_moments)

SEED_RANKS, SEED_BYTES, SEED_PACKET = 100_000.0, 3.6e12, 4096.0
"""The seed document's all-reduce, where a row names only the loss rate."""


def suits(table: Table) -> bool:
    """Whether the rows are collectives."""
    return all(row["case"] for row in table.rows)


def validate(table: Table) -> Report:
    """Every row beside the product's kernels in float32."""
    rows = [_row(cells) for cells in table.rows]
    applies = [row for row in rows if row.verdict != "not applicable"]
    right = sum(row.verdict == "pass" for row in applies)
    demand = (
        "chances within 1e-5; barriers within 4.9 standard errors or 0.5 %; rings without barrier "
        "within 4.9 standard errors, or 3 % below 256 ranks and 2 % from there; the seed "
        "document's case within 1 %"
    )
    return Report(
        table.path.name,
        KIND,
        rows,
        [
            Criterion(demand, f"{right} of {len(applies)}", right == len(applies)),
            Criterion("at least one row applies", str(len(applies)), bool(applies)),
        ],
    )


def _row(cells: Mapping[str, str]) -> Row:
    name = f"{cells['case']} {cells['params']} {cells['stat']}"
    ask = _ASKED.get(cells["case"])
    if ask is None:
        why = f"no such case: known are {', '.join(_ASKED)}"
        return Row(name, number(cells, "value"), None, "", "", "not applicable", why)
    return ask(name, cells, assigned(cells, "params"))


def _lane(value: float) -> jax.Array:
    return jnp.full((1, 1), value, jnp.float32)


def _losses(rate: float) -> Losses:
    one = _lane(1.0)
    return Losses(_lane(rate), LossBursts(loss_burst_length=one, loss_burst_severity=one))


def _error(cells: Mapping[str, str]) -> float:
    return number(cells, "stderr") if cells["stderr"] else 0.0


def _any(name: str, cells: Mapping[str, str], values: Mapping[str, str]) -> Row:
    packets = float(values["n"])
    found = float(chance_of_any(_lane(packets), _losses(float(values["n*p"]) / packets))[0, 0])
    value = number(cells, "value")
    return judged(name, value, found, "1", within(value, found, 0.0, 1e-5))


def _barrier(name: str, cells: Mapping[str, str], values: Mapping[str, str]) -> Row:
    mean, variance = _LARGEST(_lane(float(values["lam"])), _lane(float(values["F"])))
    value, found, runs = number(cells, "value"), float(mean[0, 0]), int(number(cells, "reps"))
    if found * runs < 100:  # so few stalls that each was one of its step
        return judged(name, value, found, "stalls", counted(round(value * runs), runs, found))
    own = float(variance[0, 0] / runs) ** 0.5
    return judged(name, value, found, "stalls", within(value, found, max(own, _error(cells))))


def _ring(name: str, cells: Mapping[str, str], values: Mapping[str, str]) -> Row:
    ranks, stalls = float(values["N"]), float(values["expected_stalls"])
    load = RingLoad(*map(_lane, (1.0, ranks, 2.0, stalls)))
    found, value = float(_MEAN(load)[0, 0]), number(cells, "value")
    allowed = 0.03 if ranks < 256 else 0.02
    return judged(name, value, found, "stalls", within(value, found, _error(cells), allowed))


def _seed(name: str, cells: Mapping[str, str], values: Mapping[str, str]) -> Row:
    ranks = float(values.get("N", SEED_RANKS))
    payload = float(values.get("bytes", SEED_BYTES))
    packet = float(values.get("MTU", SEED_PACKET))
    steps = 2 * (ranks - 1)
    packets = payload / ranks / packet
    known = {
        "bytes_sent_per_gpu": steps * payload / ranks,
        "packets_per_gpu": steps * packets,
        "packets_per_allreduce": steps * packets * ranks,
        "chunk_bytes_per_step": payload / ranks,
        "packets_per_step_per_gpu": packets,
        "steps": steps,
        "wire_seconds_at_800Gb/s_payload_only": steps * payload / ranks / 1e11,
        "seed_formula_seconds_(bytes/bits bug)": steps * payload / ranks / 8e11,
    }
    if "p" in values:
        known |= _seed_losses(float(values["p"]), ranks, steps, packets)
    stat, value = cells["stat"], number(cells, "value")
    if stat not in known:
        return Row(name, value, None, "", "", "not applicable", "no such number of the case")
    return judged(name, value, known[stat], "", within(value, known[stat], 0.0, 0.01))


def _seed_losses(rate: float, ranks: float, steps: float, packets: float) -> dict[str, float]:
    losses = _losses(rate)
    drops = _lane(steps * packets * ranks) * losses.exponent
    load = RingLoad(_lane(1.0), _lane(ranks), _lane(2.0), drops)
    step = chance_of_any(_lane(packets * ranks), losses)
    every = chance_of_any(_lane(steps * packets * ranks), losses)
    return {
        "expected_drops_per_allreduce": float(drops[0, 0]),
        "p_any_drop": float(every[0, 0]),
        "critical_path_stalls_ring_no_barrier": float(_MEAN(load)[0, 0]),
        "stalled_steps_if_every_step_is_a_barrier": float(np.float64(steps) * step[0, 0]),
    }


_ASKED: dict[str, Callable[[str, Mapping[str, str], Mapping[str, str]], Row]] = {
    "p_any_stall": _any,
    "barrier_step_max_poisson": _barrier,
    "ring_stalls_no_barrier": _ring,
    "seed_case": _seed,
}
