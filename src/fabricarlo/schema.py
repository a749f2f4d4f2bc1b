"""The JSON Schema of a spec, for editors: structure, names, units and meanings."""

from typing import Any

from fabric_kernels.quantity import Quantity
from fabricarlo import laws
from fabricarlo.catalog import presets
from fabricarlo.spec.structure import Spec
from fabricarlo.units import EXAMPLES
from fabricarlo.written import names

_NUMBER = {"type": ["number", "string"]}
_NUMBERS = {"type": "array", "items": _NUMBER, "minItems": 1}


def json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a spec, with every name that this catalogue knows.

    Bounds, units and how parts fit together are checked by `load_spec` only.
    """
    schema = Spec.model_json_schema()
    known, answers = names.declared(), names.questions()
    fields = schema["properties"]
    chosen = {question: {"enum": list(names)} for question, names in answers.items()}
    fields["set"] |= _closed({n: _value(q) for n, q in known.items()} | chosen)
    fields["axes"] |= {"additionalProperties": {"$ref": "#/$defs/presets"}} | {
        "properties": {n: _axis(_value(q)) for n, q in known.items()}
        | {n: {"anyOf": [_axis(c), {"$ref": "#/$defs/presets"}]} for n, c in chosen.items()}
    }
    fields["draws"] |= _closed(
        {n: {"description": _described(q), "$ref": "#/$defs/draw"} for n, q in known.items()}
    )
    fields["outputs"] |= {"items": {"enum": list(known)}, "minItems": 1, "uniqueItems": True}
    fields["base"] |= {"items": {"enum": list(presets())}, "uniqueItems": True}
    schema["$defs"] |= _definitions()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | schema


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _axis(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item, "minItems": 1}


def _value(quantity: Quantity) -> dict[str, Any]:
    return _NUMBER | {"description": _described(quantity)}


def _described(quantity: Quantity) -> str:
    """Meaning, unit and default of a quantity in one line."""
    text = quantity.meaning
    if quantity.unit != "1":
        text += f" [{quantity.unit}; write {EXAMPLES.get(quantity.unit, quantity.unit)}]"
    if quantity.default is not None:
        text += f" (default {quantity.default:g}: {quantity.source})"
    return text


def _definitions() -> dict[str, Any]:
    kinds = [_closed({kind: _law(kind)}) | {"required": [kind]} for kind in laws.LAWS]
    relative = [
        _closed({relation: {"$ref": "#/$defs/law"}}) | {"required": [relation]}
        for relation in ("times", "plus")
    ]
    return {
        "law": {"oneOf": kinds},
        "draw": {"anyOf": [{"$ref": "#/$defs/law"}, *relative]},
        "presets": _axis({"enum": list(presets())}),
    }


def _law(kind: str) -> dict[str, Any]:
    forms = [
        _closed({n: _NUMBERS if role.endswith("s") else _NUMBER for n, role in form.roles.items()})
        | {"required": [n for n in form.roles if n not in form.optional]}
        for form in laws.LAWS[kind].forms
    ]
    if kind == "empirical":
        forms.append(_closed({"csv": {"type": "string"}}) | {"required": ["csv"]})
    if kind == "constant":
        forms.append(_NUMBER)
    return {"description": laws.LAWS[kind].meaning, "anyOf": forms}
