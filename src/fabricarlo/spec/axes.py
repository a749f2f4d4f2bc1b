"""The axes of a spec: numbers of a quantity, presets, or answers to a question."""

from collections.abc import Mapping
from typing import Any

from fabric_kernels.quantity import Quantity
from fabricarlo.catalog import presets, unknown_preset
from fabricarlo.sweep import Axis, Settings
from fabricarlo.units import readable
from fabricarlo.written import names
from fabricarlo.written.document import Document, Key
from fabricarlo.written.settings import answer
from fabricarlo.written.values import number

RESERVED = ("sample", "quantile", "design", "replicate", "bin", "rank", "sweep")
"""Dimensions of the dataset that no axis may be called after."""


def axes(
    document: Document, written: Mapping[str, Any], known: Mapping[str, Quantity]
) -> tuple[Axis, ...]:
    """The axes in the order of the file, without those that were refused."""
    found = (_axis(document, name, labels, known) for name, labels in written.items())
    return tuple(axis for axis in found if axis is not None)


def _axis(document: Document, name: str, labels: Any, known: Mapping[str, Quantity]) -> Axis | None:
    key: Key = ("axes", name)
    answers = names.questions()
    if not isinstance(labels, list):
        document.refuse(key, "is no list of labels; write [..., ...].")
        return None
    if not labels:
        document.refuse(key, "is empty; list at least one label, or remove the axis.")
        return None
    if any(isinstance(label, str) and _is_preset(label) for label in labels):
        return _preset_axis(document, key, labels, known)
    if name in answers:
        return _answer_axis(document, key, labels)
    if name in known:
        return _number_axis(document, key, labels, known[name])
    document.refuse(
        key,
        names.unknown(name, "a quantity or a question", (*known, *answers), "fabricarlo list")
        + " An axis of presets lists names like cooling/air.",
    )
    return None


def _is_preset(label: str) -> bool:
    """Whether a label is meant as a preset: 'cooling/air', not '800 Gbit/s'."""
    kinds = {name.partition("/")[0] for name in presets()}
    return label in presets() or label.partition("/")[0] in kinds or _looks_like_one(label)


def _looks_like_one(label: str) -> bool:
    return "/" in label and " " not in label and label[:1].isalpha()


def _axis_of(
    document: Document,
    key: Key,
    labels: list[float | str],
    settings: list[Settings],
    unit: str | None = None,
) -> Axis | None:
    for index, label in enumerate(labels):
        if label in labels[:index]:
            shown = readable(label, unit or "1") if isinstance(label, float) else label
            document.refuse((*key, index), f"{shown} stands twice; keep one.")
            return None
    return Axis(str(key[-1]), tuple(labels), tuple(settings), unit)


def _preset_axis(
    document: Document, key: Key, labels: list[Any], known: Mapping[str, Quantity]
) -> Axis | None:
    name, catalog = str(key[-1]), presets()
    if name in known or name in RESERVED or not name.isidentifier():
        document.refuse(key, f"{name!r} cannot name an axis of presets; choose another word.")
    strangers = [
        index
        for index, label in enumerate(labels)
        if not isinstance(label, str) or label not in catalog
    ]
    for index in strangers:
        document.refuse((*key, index), unknown_preset(labels[index]))
    if strangers:
        return None
    chosen = [catalog[label] for label in labels]
    return _axis_of(document, key, [p.label for p in chosen], [p.settings for p in chosen])


def _answer_axis(document: Document, key: Key, labels: list[Any]) -> Axis | None:
    question = str(key[-1])
    found = [answer(document, (*key, i), label, question) for i, label in enumerate(labels)]
    if None in found:
        return None
    chosen = [label for label in found if label is not None]
    return _axis_of(document, key, list(chosen), [Settings(choices={question: c}) for c in chosen])


def _number_axis(
    document: Document, key: Key, labels: list[Any], quantity: Quantity
) -> Axis | None:
    found = [number(document, (*key, i), label, quantity) for i, label in enumerate(labels)]
    values = [value for value in found if value is not None]
    if len(values) < len(found):
        return None
    settings = [Settings(values={quantity.name: value}) for value in values]
    return _axis_of(document, key, list(values), settings, quantity.unit)
