"""Worked cases of queues, lossless links, lost packets and bandwidth bounds.

A case is told by how its name begins; a row whose parameters have no quantity here does not apply.
All numbers are those of the kernels in single precision.
"""

import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

import jax

from fabricarlo.errors import FabricarloError
from fabricarlo.validation import congestion_bounds as bounds
from fabricarlo.validation import congestion_dcqcn as dcqcn
from fabricarlo.validation import congestion_others as others
from fabricarlo.validation.congestion_inputs import Lanes, Parameters
from fabricarlo.validation.report import Criterion, Report, Row, Table, Verdict
from fabricarlo.validation.table import named, number, where

KIND = "congestion cases"
COLUMNS = frozenset({"case", "params_json", "quantity", "value", "unit", "how computed"})

CLOSED, FLUID_MEAN, FLUID, CODEWORD = 1e-5, 0.01, 0.03, 2e-5
ERRORS = 4.9
"""Standard errors allowed to a mean of random trials: two-sided 1e-6."""

Found = dict[str, float | str]


class Judgement(NamedTuple):
    """How far apart a row is in the measure of its criterion, and whether that is allowed."""

    deviation: str
    verdict: Verdict
    reason: str = ""


Judge = Callable[[Mapping[str, str], Parameters, Found], Judgement]


class Model(NamedTuple):
    """What answers the rows of one kind, and what they are held to."""

    solve: Callable[[Lanes], list[Found]]
    known: frozenset[str]
    demand: str
    judge: Judge


def validate(table: Table) -> Report:
    """Every row beside the product's number."""
    rows: dict[int, Row] = {}
    groups: dict[str, list[int]] = {}
    for index, cells in enumerate(table.rows):
        groups.setdefault(cells["case"].partition("/")[0], []).append(index)
    criteria = []
    with jax.enable_x64(False):  # noqa: FBT003 - JAX takes it so
        for kind, indices in groups.items():
            some = [table.rows[i] for i in indices]
            done = _rows(MODELS.get(kind), some)
            rows |= dict(zip(indices, done, strict=True))
            if kind in MODELS:
                criteria.append(_criterion(f"{kind}: {MODELS[kind].demand}", done))
    ordered = [rows[index] for index in sorted(rows)]
    judged = sum(row.verdict != "not applicable" for row in ordered)
    criteria.append(Criterion("at least one row applies", str(judged), judged > 0))
    return Report(table.path.name, KIND, ordered, criteria)


def _criterion(demand: str, rows: list[Row]) -> Criterion:
    judged = [row for row in rows if row.verdict != "not applicable"]
    right = sum(row.verdict == "pass" for row in judged)
    return Criterion(demand, f"{right} of {len(judged)}", right == len(judged))


def _rows(model: Model | None, rows: list[Mapping[str, str]]) -> list[Row]:
    if model is None:
        why = f"no such kind of case: known are {', '.join(MODELS)}"
        return [_not_applicable(cells, why) for cells in rows]
    lanes: dict[str, Parameters] = {}
    reasons: dict[str, str] = {}
    for cells in rows:
        text = cells["params_json"]
        row = lanes.setdefault(text, Parameters(named(cells, "params_json"), where(cells)))
        other = others.other_code(row) if "code" in row else None
        if why := row.unknown(model.known) or other:
            reasons[text] = why
    asked = [text for text in lanes if text not in reasons]
    solved = model.solve([lanes[text] for text in asked]) if asked else []
    found = dict(zip(asked, solved, strict=True))
    return [_row(model, cells, lanes, found, reasons) for cells in rows]


def _row(
    model: Model,
    cells: Mapping[str, str],
    lanes: Mapping[str, Parameters],
    found: Mapping[str, Found],
    reasons: Mapping[str, str],
) -> Row:
    text, quantity = cells["params_json"], cells["quantity"]
    if text in reasons:
        return _not_applicable(cells, reasons[text])
    if quantity not in found[text]:
        return _not_applicable(cells, f"{quantity} is no number of such a case here")
    judged = model.judge(cells, lanes[text], found[text])
    value = found[text][quantity]
    return Row(
        f"{cells['case']} {quantity}",
        None if _is_none(cells) else number(cells, "value"),
        None if isinstance(value, str) else value,
        cells["unit"],
        *judged,
    )


def _not_applicable(cells: Mapping[str, str], why: str) -> Row:
    name = f"{cells['case']} {cells['quantity']}"
    reference = None if _is_none(cells) else number(cells, "value")
    return Row(name, reference, None, cells["unit"], "", "not applicable", why)


def _is_none(cells: Mapping[str, str]) -> bool:
    return cells["value"].lower().startswith(dcqcn.NONE)


def _within(cells: Mapping[str, str], found: Found, relative: float, least: float) -> Judgement:
    """Within a share of the reference, or `least` where that is more."""
    value, got = number(cells, "value"), float(found[cells["quantity"]])
    off = abs(got - value)
    share = off / abs(value) if value else off
    passed = off <= max(relative * abs(value), least)
    said = f"{share:.2g} {'relative' if value else 'absolute'}"
    return Judgement(said, "pass" if passed else "fail", "" if passed else "too far apart")


def _none_or(cells: Mapping[str, str], found: Found, judge: Callable[[], Judgement]) -> Judgement:
    """A row that says that there is no fixed point is held to that word."""
    says, got = _is_none(cells), found[cells["quantity"]] == dcqcn.NONE
    if says and got:
        return Judgement("no fixed point in both", "pass")
    if says or got:
        return Judgement("", "fail", f"a fixed point {'here' if says else 'in the table'} only")
    return judge()


def _closed(cells: Mapping[str, str], _: Parameters, found: Found) -> Judgement:
    return _none_or(cells, found, lambda: _within(cells, found, CLOSED, 0.0))


def _sawtooth(cells: Mapping[str, str], _: Parameters, found: Found) -> Judgement:
    # a difference of two queues, as exact as they are
    least = CLOSED * float(found["Qmax"]) if cells["quantity"] == "Qmin" else 0.0
    return _within(cells, found, CLOSED, least)


def _fluid(cells: Mapping[str, str], _: Parameters, found: Found) -> Judgement:
    quantity = cells["quantity"]
    if quantity == "q_star_for_comparison":
        return _none_or(cells, found, lambda: _within(cells, found, CLOSED, 0.0))
    if quantity == "q_std" and number(cells, "value") <= 1.0:
        return Judgement("", "not applicable", "a deviation below 1 kB is no criterion")
    relative = FLUID_MEAN if quantity == "q_mean" else FLUID
    return _within(cells, found, relative, 0.01 if quantity.startswith("q_") else 0.0)


def _unclamped(cells: Mapping[str, str], _: Parameters, found: Found) -> Judgement:
    return _within(cells, found, FLUID_MEAN, _half_digit(cells) * 1.000001)


def _half_digit(cells: Mapping[str, str]) -> float:
    """Half a unit of the last digit that is written; a whole number has one decimal."""
    try:
        exponent = Decimal(cells["value"]).as_tuple().exponent
    except InvalidOperation:
        exponent = 0
    if not isinstance(exponent, int):
        raise FabricarloError(f"{where(cells)}: value '{cells['value']}' is no number.")
    return 0.5 * 10.0 ** min(exponent, -1)


def _sawtooth_fluid(cells: Mapping[str, str], _: Parameters, found: Found) -> Judgement:
    if cells["quantity"].endswith("_from_sawtooth_formula"):
        return _within(cells, found, CLOSED, 0.0)
    return _within(cells, found, FLUID_MEAN, 0.05 if cells["quantity"] == "q_min" else 0.0)


def _goodput(cells: Mapping[str, str], row: Parameters, found: Found) -> Judgement:
    if not cells["quantity"].endswith("_mc"):
        return _within(cells, found, CLOSED, 0.0)
    delivered = re.search(r"([\d.]+(?:e\d+)?) delivered packets", cells["how computed"])
    if delivered is None:
        why = "no number of delivered packets in how it was computed: no standard error"
        return Judgement("", "not applicable", why)
    share = float(found[cells["quantity"]])
    window, loss = row.number("W_pkts"), row.number("p_loss")
    # each of a Poisson number of losses costs a window of slots
    error = share * share * window * math.sqrt(loss / float(delivered[1]))
    return _in_errors(number(cells, "value") - share, error)


def _in_errors(off: float, error: float) -> Judgement:
    score = abs(off) / error if error else math.inf
    passed = score <= ERRORS
    said = f"{score:.2g} standard errors"
    return Judgement(said, "pass" if passed else "fail", "" if passed else "too far apart")


def _collision(cells: Mapping[str, str], _: Parameters, found: Found) -> Judgement:
    quantity, value = cells["quantity"], number(cells, "value")
    if f"se:{quantity}" in found:
        return _in_errors(value - float(found[quantity]), float(found[f"se:{quantity}"]))
    low, high = (float(end) for end in str(found[f"steps:{quantity}"]).split())
    passed = low * (1 - 1e-5) <= value <= high * (1 + 1e-5)
    said = f"{value:.6g} in {low:.6g} to {high:.6g}"
    return Judgement(said, "pass" if passed else "fail", "" if passed else "not that quantile")


def _codeword(cells: Mapping[str, str], row: Parameters, found: Found) -> Judgement:
    quantity, value = cells["quantity"], number(cells, "value")
    if row.number("pre_fec_ber") > 1e-3:
        return Judgement("", "not applicable", "the criterion ends at a bit error rate of 1e-3")
    held = 1.2e-38 < value < 3e38 and float(found.get("uncorrectable_codeword_prob", 1)) > 1.2e-38
    if held or f"log10:{quantity}" not in found:
        return _within(cells, found, CODEWORD, 0.0)
    log10 = math.log10(value)
    off = abs(float(found[f"log10:{quantity}"]) / log10 - 1)
    passed = off <= CLOSED
    reason = "" if passed else "too far apart"
    return Judgement(f"{off:.2g} relative, log10", "pass" if passed else "fail", reason)


_RELATIVE = f"{CLOSED:g} relative"
MODELS: dict[str, Model] = {
    "dcqcn-fixed-point": Model(
        dcqcn.fixed_points, dcqcn.FIXED, f"{_RELATIVE}; no fixed point is said", _closed
    ),
    "dcqcn-dde": Model(
        dcqcn.in_time,
        dcqcn.IN_TIME,
        "mean queue 1 %; least, most, rate and utilisation 3 %; deviation 3 % above 1 kB",
        _fluid,
    ),
    "dcqcn-dde-unclamped": Model(
        dcqcn.in_time, dcqcn.IN_TIME, "1 % or half a last digit", _unclamped
    ),
    "dctcp": Model(others.sawtooths, others.SAWTOOTH, _RELATIVE, _sawtooth),
    "dctcp-fluid": Model(others.sawtooths_in_time, others.SAWTOOTH, "1 %", _sawtooth_fluid),
    "ib-credit": Model(others.credit_loops, others.CREDITS, _RELATIVE, _closed),
    "pfc-headroom": Model(others.headrooms, others.HEADROOM, _RELATIVE, _closed),
    "rto": Model(others.timers, others.TIMER, _RELATIVE, _closed),
    "goback-n": Model(
        others.goodputs, others.RESENDING, f"{_RELATIVE}; simulated: 4.9 standard errors", _goodput
    ),
    "tail-loss": Model(others.last_packets, others.LAST_PACKET, _RELATIVE, _closed),
    "ecmp": Model(
        others.collisions,
        others.COLLISIONS,
        "means within 4.9 standard errors of the trials; quantiles by their count",
        _collision,
    ),
    "fec-kp4": Model(
        others.codewords,
        others.CODEWORDS,
        f"{CODEWORD:g} relative; log10 to {CLOSED:g} where float32 ends",
        _codeword,
    ),
    "busbw-bound": Model(bounds.bounds, bounds.BOUNDS, _RELATIVE, _closed),
}
"""Beginning of a case's name -> what answers it."""
