"""How a law is written: its forms and what each parameter is."""

import dataclasses
from collections.abc import Mapping
from typing import Literal

from fabricarlo.laws.law import Parameter

PERT_WEIGHT = 4.0

Role = Literal["value", "spread", "number", "values", "numbers"]


@dataclasses.dataclass(frozen=True)
class Form:
    """One way to write a law: the role of every parameter, and the optional ones' defaults.

    A value is in the quantity's unit, a spread in the unit of its differences, a number is pure.
    """

    roles: Mapping[str, Role]
    optional: Mapping[str, Parameter | None] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class LawKind:
    """A kind of law: what it is, and its forms."""

    meaning: str
    forms: tuple[Form, ...]


def _form(optional: Mapping[str, Parameter | None] | None = None, **roles: Role) -> Form:
    return Form(roles, optional or {})


LAWS: dict[str, LawKind] = {
    "constant": LawKind("always the same value", (_form(value="value"),)),
    "uniform": LawKind("equally likely from low to high", (_form(low="value", high="value"),)),
    "loguniform": LawKind(
        "equally likely in the logarithm from low to high", (_form(low="value", high="value"),)
    ),
    "normal": LawKind("Gaussian", (_form(mean="value", deviation="spread"),)),
    "truncated_normal": LawKind(
        "Gaussian, given that it lies between low and high (one end may be left out)",
        (
            _form(
                {"low": None, "high": None},
                mean="value",
                deviation="spread",
                low="value",
                high="value",
            ),
        ),
    ),
    "lognormal": LawKind(
        "the logarithm is Gaussian; cv is deviation over mean",
        (
            _form(median="value", sigma="number"),
            _form(median="value", p99="value"),
            _form(mean="value", cv="number"),
        ),
    ),
    "gamma": LawKind(
        "gamma; cv is deviation over mean",
        (_form(shape="number", scale="value"), _form(mean="value", cv="number")),
    ),
    "weibull": LawKind(
        "Weibull; a shape below 1 has a long tail",
        (_form(shape="number", scale="value"), _form(shape="number", mean="value")),
    ),
    "beta": LawKind(
        "beta between low and high (0 and 1 for pure numbers)",
        (
            _form(
                {"low": None, "high": None},
                alpha="number",
                beta="number",
                low="value",
                high="value",
            ),
        ),
    ),
    "pert": LawKind(
        "beta with a given mode; weight (4) says how sharp",
        (_form({"weight": PERT_WEIGHT}, low="value", mode="value", high="value", weight="number"),),
    ),
    "triangular": LawKind(
        "density rises to the mode and falls", (_form(low="value", mode="value", high="value"),)
    ),
    "generalised_pareto": LawKind(
        "power-law tail from location on; shape is the tail index, below 1",
        (_form(location="value", scale="spread", shape="number"),),
    ),
    "shifted_exponential": LawKind(
        "location plus an exponential of mean scale", (_form(location="value", scale="spread"),)
    ),
    "spikes": LawKind(
        "base, and with the given probability an exponential of mean spike on top",
        (_form(base="value", spike="spread", probability="number"),),
    ),
    "empirical": LawKind(
        "quantiles at probabilities from 0 to 1, linear between; csv has probability,value lines",
        (_form(probabilities="numbers", values="values"),),
    ),
    "discrete": LawKind(
        "one of some numbers, with weights (default equal)",
        (_form({"weights": None}, values="values", weights="numbers"),),
    ),
}
"""Every law of a spec, by name."""
