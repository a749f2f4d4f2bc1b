"""YAML text to a Sweep, with every error of the file at once."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast, get_args

from pydantic import BaseModel, ValidationError

from fabric_kernels.quantity import Quantity
from fabricarlo.catalog import presets, unknown_preset
from fabricarlo.errors import SpecError
from fabricarlo.spec import checks
from fabricarlo.spec.axes import axes
from fabricarlo.spec.copulas import copulas
from fabricarlo.spec.structure import CopulaBlock, KeepBlock, Spec, TailBlock
from fabricarlo.spec.tails import tails
from fabricarlo.sweep import Keep, Settings, Sweep
from fabricarlo.written import names
from fabricarlo.written.document import Document, Key, override, read
from fabricarlo.written.settings import SEE, chosen, draws, merged, settings

_BLOCKS = {"keep": KeepBlock, "copula": CopulaBlock, "tail": TailBlock}


def load_spec(path_or_text: str | Path, overrides: Sequence[str] = ()) -> Sweep:
    """Read a spec and check everything that can be checked without a plan.

    `path_or_text` is a file, or the YAML text itself (a str of several lines). `overrides` are
    texts `KEY=VALUE`: KEY is a path of keys joined by dots, and a quantity alone is short for
    `set.quantity`. Raises SpecError with all messages.
    """
    document, text = read(path_or_text)
    if not isinstance(document.content, dict):
        raise SpecError([f"{document.name}: is no mapping; a spec has keys like sweep and seed."])
    override(document, overrides, tuple(Spec.model_fields))
    spec = _structure(document)
    known = names.declared()
    sweep = _sweep(document, spec, known, text)
    checks.check(document, sweep, known)
    document.stop_if_refused()
    return sweep


_STAND_IN = {
    "schema_version": 1,
    "sweep": "refused",
    "seed": 0,
    "samples": 64,
    "outputs": ["step_time"],
}


def _structure(document: Document) -> Spec:
    """The file's structure; refused keys are replaced so that the other checks still run."""
    fields = Spec.model_fields
    empty = {k for k, v in document.content.items() if v is None and k in fields}
    content = {
        k: v for k, v in document.content.items() if k not in empty or fields[k].is_required()
    }
    try:
        return Spec.model_validate(content)
    except ValidationError as error:
        for found in error.errors():
            if found["type"] != "bool_type":  # the mapping beside it says what is wrong
                _refuse(document, cast(dict[str, Any], found))
        broken = {found["loc"][0] for found in error.errors()}
    return Spec.model_validate(_STAND_IN | {k: v for k, v in content.items() if k not in broken})


def _refuse(document: Document, found: dict[str, Any]) -> None:
    """One error of pydantic in our words; its path has no names of union members."""
    key: Key = tuple(p for p in found["loc"] if p not in ("bool", "EveryBlock"))
    block = _block(key[:-1])
    if found["type"] == "extra_forbidden":
        document.refuse(key, names.unknown(key[-1], "a key", block.model_fields))
    elif found["type"] == "missing":
        meaning = block.model_fields[str(key[-1])].description
        document.refuse(key[:-1], f"{key[-1]} is missing. It is: {meaning}.")
    elif found["type"] == "literal_error":
        document.refuse(key, f"{found['input']!r} is not allowed; {_choices(block, key)}.")
    else:
        document.refuse(key, f"{_reason(found)}.{_meaning(key)}")


def _reason(found: dict[str, Any]) -> str:
    value, context = found["input"], found.get("ctx", {})
    shown = "this" if isinstance(value, dict | list) else repr(value)
    match found["type"]:
        case "value_error":
            return str(context["error"])
        case "greater_than_equal":
            return f"{shown} is below {context['ge']}"
        case "less_than_equal":
            return f"{shown} is above {context['le']}"
        case "greater_than":
            return f"{shown} is not above {context['gt']}"
        case "less_than":
            return f"{shown} is not below {context['lt']}"
        case "string_pattern_mismatch":
            return f"{shown} may hold letters, digits and . _ - only, without spaces"
        case "string_type":
            return f"{shown} is no text"
        case "dict_type" | "model_type":
            return f"{shown} is no mapping; write one `name: value` a line"
        case "list_type":
            return f"{shown} is no list; write [..., ...]"
        case _:
            return f"{shown}: {found['msg']}"


def _block(key: Key) -> type[BaseModel]:
    return _BLOCKS.get(str(key[0]), Spec) if key else Spec


def _meaning(key: Key) -> str:
    field = Spec.model_fields.get(str(key[0])) if key else None
    return f" It is: {field.description}." if field and field.description else ""


def _choices(block: type[BaseModel], key: Key) -> str:
    annotation = block.model_fields[str(key[-1])].annotation
    values = [a for a in get_args(annotation) if a is not type(None)]
    while values and get_args(values[0]):
        values = list(get_args(values[0]))
    return "write " + " or ".join(str(v) for v in values)


def _sweep(document: Document, spec: Spec, known: dict[str, Quantity], text: str) -> Sweep:
    base = _base(document, spec.base)
    fixed = merged(base, settings(document, ("set",), spec.set, known))
    drawn = draws(document, ("draws",), spec.draws, known)
    outputs = chosen(document, ("outputs",), spec.outputs, "a quantity", known, SEE)
    if not spec.outputs:
        document.refuse(("outputs",), "is empty; list at least one quantity.")
    return Sweep(
        name=spec.sweep,
        seed=spec.seed,
        samples=spec.samples,
        outputs=tuple(outputs),
        settings=fixed,
        axes=axes(document, spec.axes, known),
        draws=tuple(drawn.values()),
        copulas=copulas(document, spec.copula, spec.draws),
        sampler=spec.sampler,
        replicates=spec.replicates,
        independent=tuple(
            chosen(document, ("independent",), spec.independent, "an axis", spec.axes)
        ),
        design=spec.design,
        steps=spec.steps,
        tails=tails(document, spec.tail, spec.draws),
        keep=_keep(spec.keep),
        description=spec.description,
        text=text,
        path="" if document.name == "spec" else document.name,
    )


def _keep(block: KeepBlock) -> Keep:
    return Keep(
        samples=block.samples is not False,
        every=1 if isinstance(block.samples, bool) else block.samples.every,
        quantiles=tuple(block.quantiles),
        codec=block.codec,
        mantissa_bits=block.mantissa_bits,
    )


def _base(document: Document, written: Sequence[Any]) -> Settings:
    catalog, base = presets(), Settings()
    for index, name in enumerate(written):
        if not isinstance(name, str) or name not in catalog:
            document.refuse(("base", index), unknown_preset(name))
        elif name in written[:index]:
            document.refuse(("base", index), f"{name} stands twice; keep one.")
        else:
            base = merged(base, catalog[name].settings)
    return base
