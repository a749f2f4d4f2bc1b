"""The exported JSON Schema: up to date, and it takes what load_spec takes."""

import json
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from fabricarlo.schema import json_schema
from fabricarlo.spec import load_spec
from fabricarlo.written.names import declared

SWEEPS = Path(__file__).resolve().parents[2] / "sweeps"
SCHEMA = json_schema()
KINDS = {
    "object": dict,
    "array": list,
    "string": str,
    "number": (int, float),
    "integer": int,
    "boolean": bool,
    "null": type(None),
}


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """Whether a value fits, for the few keywords that our schema uses."""
    if "$ref" in schema and not fits(value, SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if "const" in schema and value != schema["const"]:
        return False
    for keyword, most in (("anyOf", 99), ("oneOf", 1)):
        if keyword in schema:
            fitting = sum(fits(value, one) for one in schema[keyword])
            if not 1 <= fitting <= most:
                return False
    return fits_type(value, schema) and fits_inside(value, schema)


def fits_type(value: Any, schema: dict[str, Any]) -> bool:
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if isinstance(value, bool):
        return not kinds or "boolean" in kinds
    return not kinds or any(isinstance(value, KINDS[kind]) for kind in kinds)


def fits_inside(value: Any, schema: dict[str, Any]) -> bool:
    if isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        if others is False and not set(value) <= set(known):
            return False
        if not set(schema.get("required", [])) <= set(value):
            return False
        others = {} if isinstance(others, bool) else others
        return all(fits(v, known.get(name, others)) for name, v in value.items())
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            return False
        return all(fits(item, schema.get("items", {})) for item in value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return schema.get("minimum", value) <= value <= schema.get("maximum", value)
    return True


def test_the_exported_file_is_up_to_date() -> None:
    exported = json.loads((SWEEPS / "schema.json").read_text(encoding="utf-8"))
    assert exported == SCHEMA, "write it again: fabricarlo schema > sweeps/schema.json"


def test_every_quantity_has_its_meaning_and_unit() -> None:
    fields = SCHEMA["properties"]
    for name, quantity in declared().items():
        for block in ("set", "draws"):
            description = fields[block]["properties"][name]["description"]
            assert description.startswith(quantity.meaning)
            assert quantity.unit == "1" or f"[{quantity.unit}" in description
        assert name in fields["outputs"]["items"]["enum"]


@pytest.mark.parametrize("path", sorted(SWEEPS.glob("*.yaml")), ids=lambda p: p.name)
def test_shipped_sweeps_are_right_and_fit_the_schema(path: Path) -> None:
    content = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    assert fits(content, SCHEMA)
    sweep = load_spec(path)
    assert sweep.name.replace("-", "_") == path.stem
    assert sweep.description


BASE = {"schema_version": 1, "sweep": "a", "seed": 1, "samples": 64, "outputs": ["step_time"]}
LAW = {"lognormal": {"median": "1 us", "p99": 3}}
MIXED = {"lognormal": {"median": 1, "cv": 3}}
RIGHT: list[dict[str, Any]] = [
    {},
    {"set": {"link_rate": "800 Gbit/s", "cooling": "air"}},
    {"axes": {"cooling": ["air"], "fabric": ["fabric/roce-800g"], "gpus": [1024]}},
    {"axes": {"cooling": ["cooling/air"]}},
    {"draws": {"hop_latency": LAW}},
    {"draws": {"hop_latency": {"times": LAW}}},
    {"draws": {"hop_latency": {"constant": 3}}},
    {"draws": {"hop_latency": {"empirical": {"csv": "a.csv"}}}},
    {"keep": {"samples": {"every": 3}}},
    {"copula": [{"draws": ["a", "b"], "correlation": 0.5}]},
]
WRONG: list[dict[str, Any]] = [
    {"sed": 1},
    {"set": {"link_rat": 3}},
    {"set": {"cooling": "water"}},
    {"set": {"link_rate": [3]}},
    {"axes": {"gpus": []}},
    {"axes": {"fabric": ["fabric/roce"]}},
    {"draws": {"hop_latency": MIXED}},
    {"draws": {"hop_latency": {"lognormal": {}, "uniform": {}}}},
    {"draws": {"hop_latency": 3}},
    {"base": ["gpu/h101"]},
    {"outputs": []},
    {"keep": {"samples": "often"}},
    {"samples": 0},
    {"sampler": "halton"},
]


@pytest.mark.parametrize("part", RIGHT, ids=str)
def test_what_is_right_fits(part: dict[str, Any]) -> None:
    assert fits(BASE | part, SCHEMA)


@pytest.mark.parametrize("part", WRONG, ids=str)
def test_what_is_wrong_does_not_fit(part: dict[str, Any]) -> None:
    assert not fits(BASE | part, SCHEMA)
