"""What a plan refuses beside the spec's own rules: names that clash, and what a stage cannot do."""

import inspect
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any

from fabric_kernels.catalogue import REFUSALS
from fabric_kernels.quantity import quantities
from fabricarlo.sweep import Sweep

TAKEN = ("sample", "quantile", "bound", "replicate", "rank", "samples", "histograms", "_run")
"""Dimensions and groups of a store, which no axis may be called."""


def wrong_names(sweep: Sweep) -> Iterator[str]:
    """Names and sizes that a store could not hold."""
    every = sweep.keep.every
    if every & (every - 1) or every > 2**15:
        yield f"keep.samples.every: {every} is not a power of two up to 32768."
    elif sweep.sampler == "sobol" and every > sweep.replicates:
        # every 2^a-th point of a Sobol' sequence fills only a 2^-a-th of its first dimension
        yield (
            f"keep.samples.every: {every} with {sweep.replicates} replicates would keep a part of "
            f"each Sobol' sequence, which is no fair sample; write {sweep.replicates} or less, or "
            f"replicates: {min(every, 64)}."
        )
    for axis in (a.name for a in sweep.axes):
        if axis in (*TAKEN, "design"):
            yield f"axes.{axis}: a store has a dimension or group of that name; call it otherwise."
        for output in sweep.outputs:
            if axis == output:
                yield (
                    f"outputs: {output} is an axis, so its values are a coordinate of the store "
                    "already; leave it out."
                )
            elif axis.startswith(f"{output}_"):
                yield (
                    f"axes.{axis}: begins with the name of the output {output}, as its statistics "
                    "do in the store; call it otherwise."
                )


class _Drawn(Exception):
    """A refusal reads a quantity that is no constant."""


class _Constants:
    """Stands for a record of which only the constants are known."""

    def __init__(self, values: dict[str, float]) -> None:
        self._values = values

    def __getattr__(self, name: str) -> float:
        try:
            return self._values[name]
        except KeyError:
            raise _Drawn(name) from None


Refusal = Callable[..., str | None]
"""Why an answer cannot be given for some constants, or None where it can."""


Condition = tuple[Refusal, list[str], int]
"""A refusal, the constants that it asks for, and how many records it reads."""


def conditions(stages: Iterable[Callable[..., Any]], random: Container[str]) -> list[Condition]:
    """What these stages may refuse; what is drawn is no constant."""
    found = []
    for stage in stages:
        if (refusal := REFUSALS.get(stage)) is not None:
            records = inspect.get_annotations(refusal, eval_str=True)
            records.pop("return")
            names = (n for r in records.values() for n in quantities(r))
            found.append((refusal, [n for n in names if n not in random], len(records)))
    return found


def asked(refusal: Refusal, known: dict[str, float], records: int) -> str | None:
    """What a refusal says; nothing where it needs what is drawn: such samples are counted."""
    try:
        return refusal(*[_Constants(known)] * records)
    except _Drawn:
        return None
