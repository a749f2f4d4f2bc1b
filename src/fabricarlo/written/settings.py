"""What a `set` block fixes, and how one block gives way to the next."""

from collections.abc import Iterable
from typing import Any

from fabric_kernels.quantity import Quantity
from fabricarlo.sweep import Draw, Settings
from fabricarlo.written import values
from fabricarlo.written.document import Document, Key
from fabricarlo.written.names import questions, unknown

SEE = "fabricarlo list quantities"


def settings(document: Document, key: Key, raw: Any, declared: dict[str, Quantity]) -> Settings:
    """Quantities and answers of a `set` block; refuses what is unknown or out of bounds."""
    fixed = Settings()
    answers = questions()
    for name, value in mapping(document, key, raw).items():
        here = (*key, name)
        if name in answers:
            choice = answer(document, here, value, name)
            if choice is not None:
                fixed.choices[name] = choice
        elif name in declared:
            number = values.number(document, here, value, declared[name])
            if number is not None:
                fixed.values[name] = number
        else:
            known = (*declared, *answers)
            document.refuse(here, unknown(name, "a quantity or a question", known, SEE))
    return fixed


def mapping(document: Document, key: Key, raw: Any) -> dict[str, Any]:
    """The entries of a mapping; an empty one where it is something else, which is refused."""
    if isinstance(raw, dict):
        return raw
    if raw is not None:
        document.refuse(key, "is no mapping; write one `name: value` a line.")
    return {}


def answer(document: Document, key: Key, raw: Any, question: str) -> str | None:
    """The name of an answer to a question; None when it was refused."""
    answers = questions()[question]
    if isinstance(raw, str) and raw in answers:
        return raw
    document.refuse(key, unknown(raw, f"an answer to {question}", answers))
    return None


def chosen(
    document: Document, key: Key, raw: list[Any], kind: str, known: Iterable[str], see: str = ""
) -> list[str]:
    """The known names of a list, each once; the others are refused."""
    names, found = list(known), []
    for index, name in enumerate(raw):
        if name not in names:
            document.refuse((*key, index), unknown(name, kind, names, see))
        elif name in found:
            document.refuse((*key, index), f"{name} stands twice; keep one.")
        else:
            found.append(name)
    return found


def draws(document: Document, key: Key, raw: Any, declared: dict[str, Quantity]) -> dict[str, Draw]:
    """Laws by quantity, in the order of the file."""
    found: dict[str, Draw] = {}
    for name, law in mapping(document, key, raw).items():
        here = (*key, name)
        if name in declared:
            made = values.draw(document, here, law, declared[name])
            if made is not None:
                found[name] = made
        elif name in questions():
            document.refuse(here, "is a choice and cannot be drawn; put its answers on an axis.")
        else:
            document.refuse(here, unknown(name, "a quantity", declared, SEE))
    return found


def merged(first: Settings, later: Settings) -> Settings:
    """Both, where the later wins: a value or a law replaces both, a relative law only a law."""
    replaced = set(later.values) | {n for n, d in later.draws.items() if d.relation == "is"}
    kept = {n: v for n, v in first.values.items() if n not in replaced}
    laws = {n: d for n, d in first.draws.items() if n not in replaced}
    return Settings(kept | later.values, laws | later.draws, first.choices | later.choices)
