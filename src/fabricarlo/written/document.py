"""A YAML 1.2 file with the position of every key, and the list of what is wrong with it."""

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path as FilePath
from typing import Any

from fabricarlo.errors import SpecError

Key = tuple[str | int, ...]  # where in the file: ("draws", "gpus", "uniform", "low")

_LARGEST_FILE = 10_000_000
_MOST_KEYS = 200_000


def dotted(key: Key) -> str:
    """A key path as text: axes.gpus[2]."""
    text = ""
    for part in key:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


@dataclasses.dataclass
class Document:
    """The plain content of a file, where each key stands, and the messages collected so far."""

    name: str
    content: Any
    positions: dict[Key, tuple[int, int]]  # line and column, from 1
    messages: dict[str, None] = dataclasses.field(default_factory=dict)
    overrides: dict[Key, str] = dataclasses.field(default_factory=dict)

    def refuse(self, key: Key, text: str) -> None:
        """Note one error; every error of the file is reported at once."""
        message = f"{self.place(key)}: {dotted(key)}: {text}" if key else f"{self.name}: {text}"
        self.messages[message] = None

    def place(self, key: Key) -> str:
        """file:line:column of a key or the nearest key around it, or the override of a part."""
        for overridden, written in self.overrides.items():
            if overridden[: len(key)] == key:
                return f"--set {written}"
        for length in range(len(key), 0, -1):
            if (override := self.overrides.get(key[:length])) is not None:
                return f"--set {override}"
            if (position := self.positions.get(key[:length])) is not None:
                return f"{self.name}:{position[0]}:{position[1]}"
        return self.name

    def stop_if_refused(self) -> None:
        """Raise SpecError with every message, in the order of the file."""
        if self.messages:
            raise SpecError(sorted(self.messages, key=_line_number))


def _line_number(message: str) -> tuple[int, int]:
    parts = message.split(": ", 1)[0].rsplit(":", 2)
    return (int(parts[1]), int(parts[2])) if len(parts) == 3 and parts[2].isdigit() else (0, 0)


def read(source: str | FilePath) -> tuple[Document, str]:
    """Read a file, or the text itself when it is a str of several lines; also gives the text.

    Raises SpecError when there is no such file or it is not YAML.
    """
    if not isinstance(source, str | FilePath):
        found = type(source).__name__
        raise SpecError([f"spec: a {found} was given; give the path of a file, or YAML text."])
    if isinstance(source, str) and "\n" in source:
        return parse(source, "spec"), source
    path = FilePath(source)
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise SpecError([f"{path}: is larger than 10 MB; a spec is a short text."])
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise SpecError([f"{path}: no such file."]) from None
    except OSError as error:
        raise SpecError([f"{path}: cannot be read: {error.strerror}."]) from None
    except UnicodeDecodeError as error:
        raise SpecError([f"{path}: is not UTF-8 text (byte {error.start})."]) from None
    return parse(text, str(path)), text


def parse(text: str, name: str) -> Document:
    """Parse YAML 1.2 text. Raises SpecError when it is not YAML."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        walked = list(itertools.islice(_walk(YAML(typ="rt").compose(text), ()), _MOST_KEYS))
        if len(walked) == _MOST_KEYS:
            raise ValueError("it has too many keys; an alias may repeat one another")
        loader = YAML(typ="rt")
        loader.allow_duplicate_keys = True  # they are reported below, all of them, with positions
        content = _plain(loader.load(text))
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
        raise SpecError([f"{place}: not YAML: {_explained(error.problem)}."]) from None
    except (YAMLError, ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise SpecError([f"{name}: not YAML: {reason}."]) from None
    document = Document(name, content, {})
    for key, node, twice in walked:
        mark = node.start_mark
        document.positions.setdefault(key, (mark.line + 1, mark.column + 1))
        if twice:
            first = document.positions[key][0]
            document.messages[
                f"{name}:{mark.line + 1}:{mark.column + 1}: {dotted(key)}: "
                f"stands twice (first in line {first}); keep one."
            ] = None
    return document


def _explained(problem: str | None) -> str:
    if problem and "'\\t'" in problem:
        return "a tab cannot indent or start a value; use spaces"
    return problem or "it cannot be read"


def _walk(node: Any, key: Key) -> Iterator[tuple[Key, Any, bool]]:
    """(key, node of the key or item, whether the key stood before) through the tree."""
    from ruamel.yaml.nodes import MappingNode, SequenceNode

    if isinstance(node, MappingNode):
        seen: set[str] = set()
        for name, value in node.value:
            part = str(name.value)
            yield (*key, part), name, part in seen
            seen.add(part)
            yield from _walk(value, (*key, part))
    elif isinstance(node, SequenceNode):
        for index, item in enumerate(node.value):
            yield (*key, index), item, False
            yield from _walk(item, (*key, index))


def _plain(value: Any) -> Any:
    """The same content in Python's own types; anything else becomes its text."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if value is None or isinstance(value, bool):
        return value
    if "Boolean" in type(value).__name__:
        return bool(value)
    for kind in (int, float):
        if isinstance(value, kind):
            return kind(value)
    return str(value)


def override(document: Document, texts: Sequence[str], roots: Sequence[str]) -> None:
    """Put `KEY=VALUE` texts into the content; a first part that is no root key stands in `set`."""
    for text in texts:
        written, equals, value_text = text.partition("=")
        parts = tuple(written.strip().split("."))
        if not equals or not all(parts):
            document.messages[
                f"--set {text}: is not KEY=VALUE; write e.g. link_rate='400 Gbit/s'."
            ] = None
            continue
        if parts[0] not in roots:
            parts = ("set", *parts)
        try:
            value = parse(value_text, "").content
        except SpecError as error:
            reason = error.messages[0].partition("not YAML: ")[2]
            document.messages[f"--set {written}: {value_text!r} is not YAML: {reason}"] = None
            continue
        _put(document, parts, value, written.strip())


def _put(document: Document, parts: tuple[str, ...], value: Any, written: str) -> None:
    inside = document.content
    for length, part in enumerate(parts[:-1], start=1):
        if inside.get(part) is None:
            inside[part] = {}
        inside = inside[part]
        if not isinstance(inside, dict):
            where = dotted(parts[:length])
            document.messages[f"--set {written}: {where} has no keys; set it as a whole."] = None
            return
    inside[parts[-1]] = value
    document.overrides[parts] = written
