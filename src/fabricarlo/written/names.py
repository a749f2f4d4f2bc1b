"""The names a person may use: quantities, questions and answers, and the nearest to a wrong one."""

import dataclasses
import difflib
import inspect
from collections.abc import Iterable, Iterator

from fabric_kernels import catalogue, inputs
from fabric_kernels.model import Stage, question_of
from fabric_kernels.quantity import Quantity, quantities

_SHORT = 12  # so many names are listed in full


def questions() -> dict[str, tuple[str, ...]]:
    """Question -> its answers, of the catalogue."""
    return {question: tuple(answers) for question, answers in catalogue.ANSWERS.items()}


def declared() -> dict[str, Quantity]:
    """Every quantity of the catalogue's stages and of the inputs, by name."""
    return {
        name: quantity for record in _records() for name, quantity in quantities(record).items()
    }


def computed() -> dict[str, str]:
    """Quantity -> the question whose answers compute it."""
    return {
        name: question_of(stage.answers)
        for stage in _stages()
        if dataclasses.is_dataclass(stage.answers)
        for name in quantities(stage.answers)
    }


def _stages() -> Iterator[Stage]:
    for answers in catalogue.ANSWERS.values():
        yield from (Stage.of(function) for function in answers.values())


def _records() -> dict[type, None]:
    """Records in the order of declaration: inputs first, then those of the stages."""
    own = (r for r in vars(inputs).values() if inspect.isclass(r) and dataclasses.is_dataclass(r))
    found = dict.fromkeys(own)
    for stage in _stages():
        for record in (*stage.needs.values(), stage.answers):
            if dataclasses.is_dataclass(record):
                found[record] = None
    return found


def unknown(name: object, kind: str, known: Iterable[str], see: str = "") -> str:
    """Say that a name is unknown, what is known or how to see it, and the nearest."""
    names = list(known)
    text = f"{name!r} is not {kind}."
    near = difflib.get_close_matches(str(name), names, n=1)
    if len(names) <= _SHORT or not (see or near):
        text += f" Known: {', '.join(names) or 'none'}."
    elif see:
        text += f" All are shown by `{see}`."
    return text + (f" Did you mean {near[0]}?" if near else "")
