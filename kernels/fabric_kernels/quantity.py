"""Quantities and records: the one place where a number gets its name, unit and meaning."""

import dataclasses
import math
from typing import Any, TypeVar, dataclass_transform

from fabric_kernels.tree import as_tree

_Record = TypeVar("_Record")


@dataclasses.dataclass(frozen=True)
class Quantity:
    """What one number means. Its name is the field's name: flat and unique over all records."""

    unit: str  # UDUNITS spelling as CF wants it; "1" for a pure number
    meaning: str  # becomes long_name, the row in the docs and the description in the schema
    bounds: tuple[float, float] = (-math.inf, math.inf)
    default: float | None = None
    source: str = ""  # where the default comes from, with its evidence mark
    integer: bool = False
    flags: tuple[str, ...] = ()  # meaning of the codes 0, 1, 2 ... of a flag
    name: str = ""


def quantity(
    unit: str,
    meaning: str,
    *,
    bounds: tuple[float, float] = (-math.inf, math.inf),
    default: float | None = None,
    source: str = "",
    integer: bool = False,
    flags: tuple[str, ...] = (),
) -> Any:
    """Declare one field of a record.

    A default needs a source, so that no number enters a result without one.
    """
    if default is not None and not source:
        raise TypeError(
            f"the default {default} of {meaning!r} has no source: say where it is from."
        )
    declared = Quantity(unit, meaning, bounds, default, source, integer, flags)
    return dataclasses.field(metadata={"quantity": declared})


def structure() -> Any:
    """Declare a field that tells later stages how something is built: no number to be asked for.

    A pytree whose shape is known when a model is built. A sweep cannot give it, so the stage that
    answers a record with such a field always runs.
    """
    return dataclasses.field(metadata={"structure": True})


@dataclass_transform(
    frozen_default=True, kw_only_default=True, field_specifiers=(quantity, structure)
)
def record(cls: type[_Record]) -> type[_Record]:
    """Make cls a frozen dataclass that JAX sees as a pytree; a field is a quantity or a structure.

    Raises TypeError for a field without unit and meaning.
    """
    made: Any = dataclasses.dataclass(frozen=True, kw_only=True)(cls)
    fields = dataclasses.fields(made)
    for field in fields:
        if not field.metadata.keys() & {"quantity", "structure"}:
            raise TypeError(
                f"{cls.__name__}.{field.name} has no unit: declare it with quantity(unit, meaning)."
            )
    return as_tree(made)


def quantities(cls: type) -> dict[str, Quantity]:
    """Name -> quantity for every field of a record, in the order of declaration.

    None for an abstract answer, whose fields are those of the law that is chosen.
    """
    if not dataclasses.is_dataclass(cls):
        return {}
    return {
        f.name: dataclasses.replace(f.metadata["quantity"], name=f.name)
        for f in dataclasses.fields(cls)
        if "quantity" in f.metadata
    }


def has_structure(cls: type) -> bool:
    """Whether a record has a field that no number stands for."""
    fields = dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()
    return any("structure" in f.metadata for f in fields)
