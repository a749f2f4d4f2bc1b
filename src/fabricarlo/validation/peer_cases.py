"""Numbers of other tools, and of published logs, against the product's own collectives.

A case is told by how its name begins (the tool and its model) and by its inputs. An input that
the product's kernel has no quantity for makes the row not applicable; it is never left aside.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal

import jax

from fabricarlo.errors import FabricarloError
from fabricarlo.validation import peer_collectives as collectives
from fabricarlo.validation import peer_nccl
from fabricarlo.validation.peer_inputs import Inputs, NotModelledError
from fabricarlo.validation.report import Criterion, Report, Row, Table, Verdict
from fabricarlo.validation.table import named, number, where

KIND = "numbers of other tools"
COLUMNS = frozenset({"case", "source", "inputs_json", "quantity", "value", "unit", "notes"})
NUMBERS = frozenset({"value"})

UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "GB/s": 1e9, "B/s": 1.0}

SINGLE_PRECISION = 1e-6
"""NCCL computes and prints its own predictions in single precision."""
DOUBLE_PRECISION = 1e-14

MODELS: dict[str, Callable[[Inputs, str], float]] = {
    "seed_as_written": collectives.seed_as_written,
    "seed_": collectives.seed,
    "mlsysim_ring": collectives.ring,
    "mlsysim_hier": collectives.hierarchical,
    "calculon_net": collectives.one_latency,
    "loggops_ring": collectives.log_gops_ring,
    "simai_analytical_AR": collectives.simai,
    "nccl_log_": peer_nccl.time,
    "nccl_head_": peer_nccl.time,
    "nccl_tests_": collectives.bus_bandwidth,
    "nccl_measured": collectives.bus_bandwidth,
}
"""Beginning of a case's name -> its value in SI by the product's kernels; the longest counts."""

NOT_MODELLED = {
    "calculon_": "a step predicted layer by layer from tables of kernel efficiencies, or measured "
    "on a machine: the inputs do not give the peak rates and efficiencies that a step needs here",
    "astra_": "a simulation of chunks, endpoints and memory: splitting a message in chunks that "
    "each pay the latency again is of that simulator, not of a collective",
    "loggops_": "a schedule of messages that no answer here follows; only rings are compared",
    "simai_": "no answer here follows this part of that tool",
    "mlsysim_": "no answer here has this formula",
}


def validate(table: Table) -> Report:
    """Every row beside the product's number, to the digits that the row gives."""
    with jax.enable_x64(True):  # noqa: FBT003 - JAX takes it so
        rows = [_row(row) for row in table.rows]
    judged = [row for row in rows if row.verdict != "not applicable"]
    right = sum(row.verdict == "pass" for row in judged)
    digits = Criterion(
        "every row that is modelled agrees within half a unit of its last digit; predictions of "
        f"NCCL itself within {SINGLE_PRECISION:g}",
        f"{right} of {len(judged)}",
        right == len(judged),
    )
    some = Criterion("at least one row is modelled", str(len(judged)), bool(judged))
    return Report(table.path.name, KIND, rows, [digits, some])


def _row(cells: Mapping[str, str]) -> Row:
    name, unit, reference = cells["case"], cells["unit"], number(cells, "value")
    try:
        found = _found(cells) / _scale(cells)
    except NotModelledError as why:
        return Row(name, reference, None, unit, "", "not applicable", str(why))
    allowed = _allowed(cells, reference)
    off = abs(found - reference)
    relative = off / abs(reference) if reference else off
    verdict: Verdict = "pass" if off <= allowed else "fail"
    reason = "" if verdict == "pass" else f"off by {off:.3g} {unit}, {allowed:.3g} allowed"
    return Row(name, reference, found, unit, f"{relative:.2g} relative", verdict, reason)


def _found(cells: Mapping[str, str]) -> float:
    """The product's value in SI. Raises NotModelledError with the reason where it has none."""
    case, inputs = cells["case"], Inputs(named(cells, "inputs_json"), where(cells))
    model = _longest(MODELS, case)
    why_not = _longest(NOT_MODELLED, case)
    if cells["quantity"] == "bus_bandwidth":
        return _complete(collectives.bus_bandwidth, inputs, cells["quantity"])
    if model is not None and (why_not is None or len(model) > len(why_not)):
        return _complete(MODELS[model], inputs, cells["quantity"])
    if why_not is not None:
        raise NotModelledError(NOT_MODELLED[why_not])
    known = ", ".join(sorted({*MODELS, *NOT_MODELLED}))
    raise NotModelledError(f"no model is known for this case; known beginnings: {known}")


def _complete(model: Callable[[Inputs, str], float], inputs: Inputs, quantity: str) -> float:
    found = model(inputs, quantity)
    if left := inputs.unused():
        raise NotModelledError(f"the product has no quantity for {', '.join(left)} of this case")
    return found


def _longest(names: Mapping[str, object], case: str) -> str | None:
    """The longest of the names that the case begins with."""
    return max((name for name in names if case.startswith(name)), key=len, default=None)


def _allowed(cells: Mapping[str, str], reference: float) -> float:
    """Half a unit of the last digit that the row gives, and rounding of the computation."""
    exponent = Decimal(cells["value"]).as_tuple().exponent
    digit = 0.5 * 10.0**exponent if isinstance(exponent, int) else 0.0
    share = SINGLE_PRECISION if _of_nccl(cells["case"]) else DOUBLE_PRECISION
    return max(digit * (1 + 1e-9), share * abs(reference))


def _of_nccl(case: str) -> bool:
    return case.startswith(("nccl_log_", "nccl_head_"))


def _scale(cells: Mapping[str, str]) -> float:
    if (unit := cells["unit"]) not in UNITS:
        raise FabricarloError(
            f"{where(cells)}: column unit holds '{unit}'; write one of {', '.join(UNITS)}."
        )
    return UNITS[unit]
