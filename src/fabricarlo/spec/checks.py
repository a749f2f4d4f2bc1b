"""What no part of a spec can see alone: who sets what, and whether everything fits together."""

from collections.abc import Iterator

from fabric_kernels.catalogue import DIMENSIONS, PERSISTENT
from fabric_kernels.quantity import Quantity
from fabricarlo.sweep import Axis, Draw, Settings, Sweep
from fabricarlo.written.document import Document
from fabricarlo.written.values import outside

MOST_DRAWS = 40
MOST_TAILS = 4
MOST_DRAWS_OF_A_DESIGN = 20


def check(document: Document, sweep: Sweep, known: dict[str, Quantity]) -> None:
    """Refuse what contradicts itself."""
    _axes_apart(document, sweep)
    _draws_against_axes(document, sweep)
    _sets_against_axes(document, sweep)
    _overrides_without_effect(document, sweep)
    _number_of_draws(document, sweep)
    _relative_draws_in_bounds(document, sweep, known)
    _tails(document, sweep)
    if sweep.samples < sweep.replicates:
        document.refuse(
            ("samples",), f"{sweep.samples} is below replicates ({sweep.replicates}); raise it."
        )


def _fixed_by(axis: Axis) -> dict[str, None]:
    """Quantities and questions that some label of an axis sets, in order."""
    return {
        name: None
        for s in axis.settings
        for part in (s.values, s.draws, s.choices)
        for name in part
    }


def _axes_apart(document: Document, sweep: Sweep) -> None:
    owner: dict[str, str] = {}
    for axis in sweep.axes:
        for name in _fixed_by(axis):
            if name in owner:
                document.refuse(
                    ("axes", axis.name),
                    f"sets {name}, which the axis {owner[name]} sets too; only one may.",
                )
            owner[name] = axis.name


def _draws_against_axes(document: Document, sweep: Sweep) -> None:
    for draw in sweep.draws:
        for axis in sweep.axes:
            if draw.relation == "is" and draw.quantity in _fixed_by(axis):
                document.refuse(
                    ("draws", draw.quantity),
                    f"would erase what the axis {axis.name} sets; make the law relative, "
                    "{times: ...} or {plus: ...}, or leave it out.",
                )


def _sets_against_axes(document: Document, sweep: Sweep) -> None:
    written = document.content.get("set")
    for name in written if isinstance(written, dict) else ():
        for axis in sweep.axes:
            if name in _fixed_by(axis):
                document.refuse(
                    ("set", name),
                    f"has no effect, because the axis {axis.name} sets it; remove one of the two.",
                )


def _overrides_without_effect(document: Document, sweep: Sweep) -> None:
    for draw in sweep.draws:
        key = ("set", draw.quantity)
        if key in document.overrides and draw.relation == "is":
            document.refuse(
                key, f"has no effect, because it is drawn; override draws.{draw.quantity} instead."
            )


def preset_draws(sweep: Sweep) -> Iterator[Draw]:
    """Laws inside presets (base, then axes, in order), without those that a draw replaces."""
    replaced = {draw.quantity for draw in sweep.draws if draw.relation == "is"}
    seen: set[str] = set()
    for settings in (sweep.settings, *(s for axis in sweep.axes for s in axis.settings)):
        for name, draw in settings.draws.items():
            if name not in replaced | seen:
                seen.add(name)
                yield draw


def _number_of_draws(document: Document, sweep: Sweep) -> None:
    inside = sum(1 for _ in preset_draws(sweep))
    most = MOST_DRAWS_OF_A_DESIGN if sweep.design else MOST_DRAWS
    if len(sweep.draws) + inside > most:
        why = " with design: sensitivity" if sweep.design else ""
        document.refuse(
            ("draws",),
            f"{len(sweep.draws)} draws and {inside} laws inside presets; at most {most} are "
            f"allowed{why}: set the least important.",
        )


def _tails(document: Document, sweep: Sweep) -> None:
    """A tail needs its weights, and a uniform that one sample has to itself."""
    if not sweep.tails:
        return
    if not sweep.keep.samples or sweep.keep.every > 1 or sweep.keep.mantissa_bits:
        document.refuse(
            ("tail",),
            "needs every sample with its weight, as computed; write `keep: {samples: true}`, "
            "without `every` and `mantissa_bits`.",
        )
    if sweep.design:
        document.refuse(("tail",), "and `design: sensitivity` do not go together; remove one.")
    if any(axis.name == "weight" for axis in sweep.axes):
        document.refuse(
            ("axes", "weight"),
            "has the name of what `tail` adds to the samples; call it otherwise.",
        )
    if len(sweep.tails) > MOST_TAILS:
        document.refuse(
            ("tail",),
            f"has {len(sweep.tails)} tails; at most {MOST_TAILS} are allowed, because every one "
            "more spreads the weights.",
        )
    for k, tail in enumerate(sweep.tails):
        leader = next((c.quantities[0] for c in sweep.copulas if tail.stream in c.quantities), None)
        if leader not in (None, tail.stream):
            document.refuse(
                ("tail", k, "stream"),
                f"{tail.stream} follows {leader} in a copula, so that its own uniform is no "
                f"quantile; name {leader}, which leads.",
            )
        if sweep.steps > 1 and tail.stream in DIMENSIONS and tail.stream not in PERSISTENT:
            document.refuse(
                ("tail", k, "stream"),
                f"{tail.stream} is drawn anew in each of {sweep.steps} steps; write `steps: 1`.",
            )


def _underneath(sweep: Sweep, declared: Quantity) -> list[float]:
    """The values that a relative draw may meet, as far as the file and the defaults say."""
    on_axes = [s.values[declared.name] for s in _labels(sweep) if declared.name in s.values]
    if on_axes:
        return on_axes
    fixed = sweep.settings.values.get(declared.name, declared.default)
    return [] if fixed is None else [fixed]


def _labels(sweep: Sweep) -> Iterator[Settings]:
    for axis in sweep.axes:
        yield from axis.settings


def _relative_draws_in_bounds(document: Document, sweep: Sweep, known: dict[str, Quantity]) -> None:
    for draw in sweep.draws:
        declared = known[draw.quantity]
        if draw.relation == "is":
            continue
        reach = draw.law.reach
        for value in _underneath(sweep, declared):
            ends = [value * r if draw.relation == "times" else value + r for r in reach]
            for end in (min(ends), max(ends)):
                if not declared.bounds[0] <= end <= declared.bounds[1]:
                    document.refuse(
                        ("draws", draw.quantity, draw.relation),
                        outside("the law reaches", end, declared),
                    )
                    break
