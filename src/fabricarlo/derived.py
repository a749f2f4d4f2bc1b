"""Quantities that the engine makes: statistics over the steps of a sample, and weights."""

import dataclasses
from collections.abc import Container, Iterable, Mapping

from fabric_kernels.quantity import Quantity

WEIGHT = "weight"
"""Variable of the samples of a sweep with tails."""

STEP_STATISTICS = {"_p99_of_steps": "99 % quantile", "_maximum_of_steps": "largest"}
"""Suffix of a result -> what of the steps of a sample it is; the mean has no suffix."""


def of_steps(declared: Quantity, steps: int) -> dict[str, Quantity]:
    """What becomes of a quantity that differs between the steps of a sample: the results by name.

    Unit and bounds are the quantity's; a mean of whole numbers is not whole.
    """
    texts = {"": "mean"} | STEP_STATISTICS
    return {
        declared.name + suffix: dataclasses.replace(
            declared,
            name=declared.name + suffix,
            meaning=f"{declared.meaning}, {text} of the {steps} steps of a sample",
            default=None,
            source="",
            integer=False,
        )
        for suffix, text in texts.items()
    }


def results(
    outputs: Iterable[str], varying: Container[str], steps: int, known: Mapping[str, Quantity]
) -> dict[str, Quantity]:
    """What a sweep's results hold, in order: the outputs, statistics beside those that vary."""
    found: dict[str, Quantity] = {}
    for name in outputs:
        declared = known[name]
        found |= of_steps(declared, steps) if name in varying else {name: declared}
    return found


WEIGHT_DECLARED = Quantity(
    "1",
    "weight of a sample: probability of its draws over that with which they were drawn",
    bounds=(0.0, float("inf")),
    name=WEIGHT,
)
