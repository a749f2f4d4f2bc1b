"""Presets: named sets of values with their sources, read from presets/*.yaml."""

import dataclasses
import functools
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from fabric_kernels import catalogue
from fabric_kernels.quantity import Quantity
from fabricarlo.sweep import Settings
from fabricarlo.written.document import Document, Key, parse
from fabricarlo.written.names import declared, unknown
from fabricarlo.written.settings import draws, mapping, merged, settings

EVIDENCE: dict[str, str] = {
    "M": "measured or tool output",
    "V": "vendor claim",
    "S": "secondary page",
    "C": "computed",
    "A": "assumption",
}
"""Evidence marks: how far to trust a number."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """One value of a preset as it is written, and where it is from."""

    written: Any
    source: str
    evidence: str


@dataclasses.dataclass(frozen=True)
class Preset:
    """A named set of values, laws and answers."""

    name: str  # kind/label
    meaning: str
    settings: Settings
    entries: Mapping[str, Entry]  # by quantity or question, for people

    @property
    def label(self) -> str:
        """The part after the slash: the label of an axis."""
        return self.name.partition("/")[2]


def presets() -> dict[str, Preset]:
    """Every preset by name, in the order of the files.

    Raises SpecError when a file is wrong.
    """
    return _read(tuple((q, tuple(a)) for q, a in catalogue.ANSWERS.items()))


@functools.cache
def _read(_answers: tuple[tuple[str, tuple[str, ...]], ...]) -> dict[str, Preset]:
    """Cached per state of the catalogue, so that an answer added at run time is seen."""
    found: dict[str, Preset] = {}
    known = declared()
    folder = files("fabricarlo") / "presets"
    for file in sorted(folder.iterdir(), key=lambda f: f.name):
        if not file.name.endswith(".yaml"):
            continue
        document = parse(file.read_text(encoding="utf-8"), f"presets/{file.name}")
        kind = file.name.removesuffix(".yaml")
        for label in mapping(document, (), document.content):
            preset = _preset(document, kind, label, known, found)
            found[preset.name] = preset
        document.stop_if_refused()
    return found


_RATE = re.compile(r"-\d+g(?=-|$)")


def unknown_preset(name: object) -> str:
    """Say that a preset is unknown, the nearest, and at which rates there are such fabrics."""
    text = unknown(name, "a preset", presets(), "fabricarlo list presets")
    stem = _RATE.sub("", str(name))
    if stem == str(name):
        return text
    rates = {n: p.settings.values["link_rate"] * 8e-9 for n, p in presets().items()
             if "link_rate" in p.settings.values}  # fmt: skip
    alike = [n for n in rates if _RATE.sub("", n) == stem]
    alike = alike or [n for n in rates if n.startswith(f"{stem}-")]
    if not alike:
        return text
    listed = ", ".join(f"{n} ({rates[n]:g} Gbit/s)" for n in alike)
    return f"{text} There is no other rate than those of {listed}."


KEYS = ("meaning", "base", "set", "draws")


def _preset(
    document: Document,
    kind: str,
    label: str,
    known: dict[str, Quantity],
    before: Mapping[str, Preset],
) -> Preset:
    body = mapping(document, (label,), document.content[label])
    for key in body:
        if key not in KEYS:
            document.refuse((label, key), unknown(key, "a key", KEYS))
    entries = {
        name: entry
        for block in ("set", "draws")
        for name, raw in mapping(document, (label, block), body.get(block)).items()
        if (entry := _entry(document, (label, block, name), raw)) is not None
    }
    written = {
        block: {n: entries[n].written for n in body.get(block) or {} if n in entries}
        for block in ("set", "draws")
    }
    fixed = settings(document, (label, "set"), written["set"], known)
    laws = draws(document, (label, "draws"), written["draws"], known)
    fixed = dataclasses.replace(fixed, draws=laws)
    built: dict[str, Entry] = {}
    below = Settings()
    for name in body.get("base") or ():
        if name not in before:
            document.refuse((label, "base"), unknown(name, "a preset read before this", before))
            continue
        below, built = merged(below, before[name].settings), built | dict(before[name].entries)
    fixed = merged(below, fixed)
    return Preset(f"{kind}/{label}", str(body.get("meaning", "")), fixed, built | entries)


def _entry(document: Document, key: Key, raw: Any) -> Entry | None:
    if not isinstance(raw, dict) or set(raw) != {"value", "source", "evidence"}:
        document.refuse(key, "needs value, source and evidence, so that no number is without one.")
        return None
    if raw["evidence"] not in EVIDENCE:
        marks = ", ".join(f"{mark} ({meaning})" for mark, meaning in EVIDENCE.items())
        document.refuse((*key, "evidence"), f"{raw['evidence']!r} is no mark; known: {marks}.")
        return None
    return Entry(raw["value"], str(raw["source"]), raw["evidence"])
