"""Variants and streams: what is compiled once, and where its uniforms come from."""

import dataclasses
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from fabric_kernels.catalogue import ANSWERS, PERSISTENT
from fabric_kernels.model import Model, ModelError, Slot
from fabricarlo.laws import Law
from fabricarlo.sweep import Settings

DESIGN = "design"
MOST_NUMBERS = 2**32 - 2  # of one sample and stream: the next is the key schedule's
SECOND = "@B"  # suffix of a stream's second matrix in a sensitivity design


@dataclasses.dataclass(frozen=True)
class Stream:
    """A uniform of every sample, or many of them: where its words come from."""

    name: str
    dimension: int | None  # None for a wide slot, which is no point of a sequence
    deep: bool
    second: int | None = None  # dimension of matrix B in a sensitivity design


@dataclasses.dataclass(frozen=True)
class Variable:
    """How a random quantity is made: what lies underneath, and the laws on top, in order."""

    quantity: str
    underneath: bool  # starts from the cell's value
    steps: tuple[tuple[str, tuple, str], ...]  # stream, law signature, relation


@dataclasses.dataclass(frozen=True)
class Variant:
    """One compiled program: structural choices, and what goes in and out."""

    choices: tuple[tuple[str, str], ...]
    model: Model = dataclasses.field(compare=False, hash=False)
    outputs: tuple[str, ...]
    inputs: tuple[str, ...]  # quantities that enter as numbers of the cell
    drawn: tuple[str, ...]  # quantities that enter as draws
    replaced: tuple[str, ...]  # computed quantities that the sweep replaces
    slots: tuple[str, ...]  # streams of stage slots with one uniform a sample
    wide: tuple[str, ...]  # streams of stage slots with many
    variables: tuple[Variable, ...]
    redrawn: tuple[str, ...] = ()  # stage slots that are drawn anew in every step of a sample
    varying: tuple[str, ...] = ()  # outputs, but flags, that differ between the steps of a sample


def noise(
    model: Model, outputs: tuple[str, ...], replaced: tuple[str, ...], slots: list[Slot], steps: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Streams that are drawn anew in every step of a sample, and numbers that vary with them.

    Flags are those of the first step. Nothing where a sample has one step. Raises ModelError for
    a slot that cannot be drawn so often.
    """
    if steps == 1:
        return (), ()
    redrawn = [s for s in slots if s.stream not in PERSISTENT]
    for slot in redrawn:
        if slot.count is None:
            raise ModelError(
                f"{slot.stream} takes any number of uniforms, so that steps cannot have their own: "
                'declare how many, Annotated[WideUniform, "slot", count], or write `steps: 1`.'
            )
        if steps * slot.count > MOST_NUMBERS:
            raise ModelError(
                f"{slot.stream} takes {slot.count:,} uniforms a step, so at most "
                f"{MOST_NUMBERS // slot.count:,} steps a sample are allowed, not {steps:,}."
            )
    streams = tuple(s.stream for s in redrawn)
    numbers = [n for n in outputs if not model.quantities[n].flags]
    varying = model.varying(numbers, replaced, streams)
    return streams, tuple(n for n in numbers if n in varying)


@dataclasses.dataclass(frozen=True)
class Cell:
    """What one point of the grid fixes."""

    settings: Settings
    labels: dict[str, float | str]
    numbers: dict[str, float]  # quantity -> SI value, defaults filled in
    laws: dict[tuple[str, int], Law]  # (quantity, step) -> law


def model_of(choices: dict[str, str]) -> Model:
    """The model of these choices; a question without one takes its first answer."""
    return _model(tuple(ANSWERS[q][choices.get(q, next(iter(ANSWERS[q])))] for q in ANSWERS))


@lru_cache(maxsize=64)
def _model(functions: tuple[Callable[..., Any], ...]) -> Model:
    """One model for all that choose the same: it remembers what it has traced."""
    return Model(*functions)


def merged(*settings: Settings) -> Settings:
    """Later settings win, quantity by quantity, whether by a value or by a law."""
    values, draws, choices = {}, {}, {}
    for s in settings:
        for name in s.values:
            draws.pop(name, None)
        values |= s.values
        for name, draw in s.draws.items():
            if draw.relation == "is":
                values.pop(name, None)
        draws |= s.draws
        choices |= s.choices
    return Settings(values, draws, choices)


def choices_of(settings: Settings) -> dict[str, str]:
    """The answer to every question; the first one where none is chosen."""
    return {q: settings.choices.get(q, next(iter(ANSWERS[q]))) for q in ANSWERS}
