"""Numbers and laws as people write them, turned into SI and checked against the declaration."""

import csv
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fabric_kernels.quantity import Quantity
from fabricarlo import laws
from fabricarlo.sweep import Draw, Relation
from fabricarlo.units import UnitError, difference_unit, readable, to_si
from fabricarlo.written.document import Document, Key
from fabricarlo.written.names import unknown

PURE = Quantity("1", "a pure number")


def bare_number(document: Document, key: Key, raw: Any, unit: str, meaning: str) -> float | None:
    """A finite number in the given unit, from a number or a text with a unit."""
    if isinstance(raw, bool) or not isinstance(raw, int | float | str):
        kind = {bool: "true or false", type(None): "nothing", list: "a list", dict: "a mapping"}
        document.refuse(
            key, f"{kind.get(type(raw), 'this')} is no number; write one in {unit} or with a unit."
        )
        return None
    try:
        value = to_si(raw, unit) if isinstance(raw, str) else float(raw)
    except UnitError as error:
        document.refuse(key, f"{error} It is: {meaning}.")
        return None
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        document.refuse(key, f"{raw} is not finite; write a number. It is: {meaning}.")
        return None
    return value


def number(document: Document, key: Key, raw: Any, quantity: Quantity) -> float | None:
    """A value of a quantity in SI, inside its bounds; None when it was refused."""
    value = bare_number(document, key, raw, quantity.unit, quantity.meaning)
    if value is None:
        return None
    if quantity.integer and value != round(value):
        document.refuse(key, f"{value:g} is not whole. It is: {quantity.meaning}.")
        return None
    if not quantity.bounds[0] <= value <= quantity.bounds[1]:
        document.refuse(key, outside("is", value, quantity, raw))
        return None
    return value


def outside(verb: str, value: float, quantity: Quantity, written: Any = None) -> str:
    """Say that a value is outside the bounds of its quantity."""
    low, high = (readable(b, quantity.unit) for b in quantity.bounds)
    shown = f"{verb} {readable(value, quantity.unit)}"
    if isinstance(written, str):
        shown = f"{verb} {written!r}"
    return f"{shown}, outside {low} to {high}. It is: {quantity.meaning}."


def draw(document: Document, key: Key, raw: Any, quantity: Quantity) -> Draw | None:
    """A law of a quantity, or one relative to the value underneath; None when it was refused."""
    relation: Relation = "is"
    if isinstance(raw, dict) and len(raw) == 1 and next(iter(raw)) in ("times", "plus"):
        relation = next(iter(raw))
        key, raw = (*key, relation), raw[relation]
    made = _law(document, key, raw, _law_quantity(quantity, relation))
    if made is None:
        return None
    found = Draw(quantity.name, made, relation)
    return found if _whole(document, key, found, quantity) else None


def _law_quantity(quantity: Quantity, relation: Relation) -> Quantity:
    if relation == "times":
        return Quantity("1", f"factor on {quantity.name}", (0, math.inf))
    if relation == "plus":
        return Quantity(difference_unit(quantity.unit), f"addition to {quantity.name}")
    return quantity


def _whole(document: Document, key: Key, found: Draw, quantity: Quantity) -> bool:
    if not quantity.integer:
        return True
    values = found.law["values"] if found.law.kind == "discrete" else ()
    if found.law.kind == "constant":
        values = (found.law["value"],)
    if values and found.relation != "times" and all(v == round(v) for v in values):
        return True
    document.refuse(key, f"{quantity.name} is whole; write {{discrete: {{values: [...]}}}}.")
    return False


def _law(document: Document, key: Key, raw: Any, quantity: Quantity) -> laws.Law | None:
    if not isinstance(raw, dict) or len(raw) != 1:
        document.refuse(key, "is no law; write one like {uniform: {low: ..., high: ...}}.")
        return None
    kind = next(iter(raw))
    if kind not in laws.LAWS:
        document.refuse((*key, kind), unknown(kind, "a law", laws.LAWS, "fabricarlo list laws"))
        return None
    given, key = raw[kind], (*key, kind)
    if kind == "constant" and not isinstance(given, dict):
        given = {"value": given}
    if not isinstance(given, dict):
        document.refuse(key, f"needs its parameters: {_forms(kind)}.")
        return None
    parameters = _parameters(document, key, kind, given, quantity)
    if parameters is None:
        return None
    try:
        made = laws.make(kind, parameters)
    except laws.LawError as error:
        unit = "" if quantity.unit == "1" else f" Numbers here are in {quantity.unit}."
        document.refuse(key, str(error) + unit)
        return None
    return made if _reaches(document, key, made, quantity) else None


def _reaches(document: Document, key: Key, made: laws.Law, quantity: Quantity) -> bool:
    low, high = made.reach
    rounding = 1e-12 * (abs(low) + abs(high))
    if quantity.bounds[0] - rounding <= low and high <= quantity.bounds[1] + rounding:
        return True
    beyond = low if low < quantity.bounds[0] else high
    advice = " Laws with both ends: truncated_normal, pert, uniform."
    document.refuse(
        key,
        outside("the law reaches", beyond, quantity)
        + (advice if math.isinf(made.support[1]) else ""),
    )
    return False


def _forms(kind: str) -> str:
    def written(form: laws.Form) -> str:
        names = (f"[{n}]" if n in form.optional else n for n in form.roles)
        return "{" + ", ".join(names) + "}"

    return " or ".join(written(form) for form in laws.LAWS[kind].forms)


def _form(document: Document, key: Key, kind: str, given: Mapping[str, Any]) -> laws.Form | None:
    """The form that fits the names of the parameters."""
    forms = laws.LAWS[kind].forms
    for form in forms:
        needed = {n for n in form.roles if n not in form.optional}
        if needed <= set(given) <= set(form.roles):
            return form
    known = list(dict.fromkeys(n for form in forms for n in form.roles))
    strangers = [n for n in given if n not in known]
    for name in strangers:
        document.refuse((*key, name), unknown(name, f"a parameter of {kind}", known))
    if not strangers:
        document.refuse(key, f"has {', '.join(given) or 'nothing'}; allowed is {_forms(kind)}.")
    return None


def _parameters(
    document: Document, key: Key, kind: str, given: Mapping[str, Any], quantity: Quantity
) -> dict[str, laws.Parameter] | None:
    """Every parameter of a law in SI; None when one was refused."""
    if kind == "empirical" and "csv" in given:
        return _from_csv(document, key, given, quantity)
    form = _form(document, key, kind, given)
    if form is None:
        return None
    found: dict[str, laws.Parameter] = {}
    for name, raw in given.items():
        value = _parameter(document, (*key, name), raw, form.roles[name], quantity)
        if value is not None:
            found[name] = value
    if len(found) < len(given):
        return None
    if kind == "beta":
        return _with_ends(document, key, found, quantity)
    return found


def _with_ends(
    document: Document, key: Key, found: dict[str, laws.Parameter], quantity: Quantity
) -> dict[str, laws.Parameter] | None:
    if {"low", "high"} <= set(found):
        return found
    if quantity.unit != "1":
        document.refuse(key, f"low and high are needed, because the unit is {quantity.unit}.")
        return None
    return {"low": 0.0, "high": 1.0} | found


def _parameter(
    document: Document, key: Key, raw: Any, role: str, quantity: Quantity
) -> laws.Parameter | None:
    units = {
        "spread": difference_unit(quantity.unit),
        "value": quantity.unit,
        "values": quantity.unit,
    }
    unit = units.get(role, "1")
    meaning = f"{key[-1]} of {quantity.meaning}"
    if not role.endswith("s"):
        return bare_number(document, key, raw, unit, meaning)
    if not isinstance(raw, list) or not raw:
        document.refuse(key, "must be a list of numbers, [..., ...].")
        return None
    items = [bare_number(document, (*key, i), r, unit, meaning) for i, r in enumerate(raw)]
    found = tuple(i for i in items if i is not None)
    return found if len(found) == len(items) else None


def _from_csv(
    document: Document, key: Key, given: Mapping[str, Any], quantity: Quantity
) -> dict[str, laws.Parameter] | None:
    """A quantile table from a CSV file beside the spec: a header and probability,value lines."""
    key = (*key, "csv")
    if set(given) != {"csv"} or not isinstance(given["csv"], str):
        document.refuse(key, "is the name of a file, and stands alone.")
        return None
    path = Path(document.name).parent / given["csv"]
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        document.refuse(key, f"{path} cannot be read: {getattr(error, 'strerror', error)}.")
        return None
    if not rows or not {"probability", "value"} <= set(rows[0]):
        document.refuse(key, f"{path} needs a header 'probability,value' and lines below it.")
        return None
    pairs = [
        [
            bare_number(document, key, _cell(row["probability"]), "1", f"line {line} of {path}"),
            bare_number(
                document, key, _cell(row["value"]), quantity.unit, f"line {line} of {path}"
            ),
        ]
        for line, row in enumerate(rows, start=2)
    ]
    found = [(p, v) for p, v in pairs if p is not None and v is not None]
    if len(found) < len(pairs):
        return None
    return {"probabilities": tuple(p for p, _ in found), "values": tuple(v for _, v in found)}


def _cell(text: str | None) -> float | str:
    """A bare number of a table is in the quantity's own unit, as in the spec."""
    try:
        return float(text or "")
    except ValueError:
        return text or ""
