"""Write docs/quantities.md and docs/model.md from the declarations and docstrings.

python docs/generate.py            # rewrite the pages
python docs/generate.py --check    # exit 1 where a page is not current
"""

import argparse
import dataclasses
import importlib
import inspect
import math
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import fabric_kernels
from fabric_kernels.catalogue import ANSWERS
from fabric_kernels.quantity import Quantity, quantities
from fabricarlo.laws import LAWS, Form
from fabricarlo.units import UNITS

HERE = Path(__file__).parent
HEAD = """<!-- written by docs/generate.py: change the declarations, then run it -->
# Quantities, answers, laws and units

A quantity is declared once. Its name below is its name in a spec, in the dataset and in messages;
its unit is the unit of a bare number in a spec and of the variable in a store. Any quantity may
be set, swept or drawn, also one that an answer computes: then that value takes its place.

Marks in a source: [M] measured or tool output, [V] vendor's claim, [S] secondary page,
[C] computed here, [A] assumption.
"""


def records(module_name: str) -> list[type]:
    """Records that a module declares itself, in the order of the file."""
    module = importlib.import_module(module_name)
    own = [
        c
        for c in vars(module).values()
        if isinstance(c, type) and c.__module__ == module_name and dataclasses.is_dataclass(c)
    ]
    return [c for c in own if any("quantity" in f.metadata for f in dataclasses.fields(c))]


def first_line(thing: object) -> str:
    """The summary of a docstring."""
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def number(value: float) -> str:
    """Short, and exact where the declaration is."""
    mantissa, is_power, power = f"{value:.7g}".partition("e")
    return f"{mantissa}e{int(power)}" if is_power else mantissa


def interval(quantity: Quantity) -> str:
    """Allowed values in words."""
    if quantity.flags:
        return ", ".join(f"{k} {name}" for k, name in enumerate(quantity.flags))
    low, high = quantity.bounds
    whole = "whole, " if quantity.integer else ""
    if math.isinf(low) and math.isinf(high):
        return f"{whole}any"
    return f"{whole}{number(low)} to {number(high)}"


def table(record: type) -> Iterator[str]:
    """A record's quantities as a table."""
    yield "| name | unit | meaning | allowed | default | source of the default |"
    yield "|---|---|---|---|---|---|"
    for name, q in quantities(record).items():
        default = "" if q.default is None else number(q.default)
        row = (f"`{name}`", f"`{q.unit}`", q.meaning, interval(q), default, q.source)
        yield f"| {' | '.join(row)} |"


def section(record: type, level: str) -> Iterator[str]:
    """Heading, summary and table of a record."""
    yield f"{level} {record.__name__}\n\n{first_line(record)}\n"
    yield from table(record)
    yield ""


def question(name: str) -> Iterator[str]:
    """A question: its records, its answers, and what only some answers need."""
    package = f"fabric_kernels.{name}"
    module = importlib.import_module(package)
    yield f"## {first_line(module)}\n"
    for record in records(package):
        if quantities(record):
            yield from table(record)
            yield ""
    answers = ANSWERS.get(name, {})
    if answers:
        yield "| answer | what it is |\n|---|---|"
    for k, (answer, function) in enumerate(answers.items()):
        yield f"| `{answer}`{' (default)' if k == 0 else ''} | {first_line(function)} |"
    yield ""
    for found in pkgutil.iter_modules(module.__path__, f"{package}."):
        for record in records(found.name):
            yield from section(record, "###")


def parameters(form: Form) -> str:
    """A form of a law: `low`, `high`; an optional parameter in brackets."""
    return ", ".join(f"[`{n}`]" if n in form.optional else f"`{n}`" for n in form.roles)


def laws() -> Iterator[str]:
    """Every law with its forms."""
    yield "| law | parameters | what it is |\n|---|---|---|"
    for name, kind in LAWS.items():
        forms = " or ".join(map(parameters, kind.forms))
        yield f"| `{name}` | {forms} | {kind.meaning} |"
    yield ""


def units() -> Iterator[str]:
    """Every spelling of a unit, by what it measures."""
    spellings: dict[str, list[str]] = {}
    for symbol, unit in UNITS.items():
        spellings.setdefault(unit.dimension, []).append(f"`{symbol}`")
    yield "| kept as | may be written in |\n|---|---|"
    for dimension, symbols in spellings.items():
        if dimension != "bit":  # known only to be refused by name
            yield f"| `{dimension}` | {' '.join(symbols)} |"
    yield ""


def inputs() -> list[type]:
    """Records that no answer produces, file by file."""
    package = importlib.import_module("fabric_kernels.inputs")
    names = [m.name for m in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")]
    return [record for name in names for record in records(name)]


MODEL = """<!-- written by docs/generate.py: change the docstrings, then run it -->
# The model: every question, every answer, its formula and its source

One sample is one configuration and one synchronous training step on it. An answer is a function
of quantities ([quantities.md](quantities.md) has their units); a spec chooses one answer a
question.
"""


def model() -> str:
    """The page of formulas: the docstring of every answer."""
    lines = [MODEL]
    for name, answers in ANSWERS.items():
        lines.append(f"## {first_line(importlib.import_module(f'fabric_kernels.{name}'))}\n")
        for k, (answer, function) in enumerate(answers.items()):
            lines.append(f"### `{name}: {answer}`{' (default)' if k == 0 else ''}\n")
            lines.append(f"```text\n{inspect.getdoc(function) or ''}\n```\n")
    return "\n".join(lines).rstrip() + "\n"


def quantities_page() -> str:
    """The page of quantities, answers, laws and units."""
    names = [m.name for m in pkgutil.iter_modules(fabric_kernels.__path__) if m.ispkg]
    listed = [*ANSWERS, *sorted(set(names) - {*ANSWERS, "calls", "maths", "inputs"})]
    lines = [HEAD, "# What a sweep may vary\n"]
    for record in inputs():
        lines += section(record, "##")
    lines.append("# What the model answers\n")
    for name in listed:
        lines += question(name)
    lines += ["# Laws\n", *laws(), "# Units\n", *units()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


PAGES = {"quantities.md": quantities_page, "model.md": model}


def main() -> int:
    """Write or check the pages."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing")
    check, status = parser.parse_args().check, 0
    for name, make in PAGES.items():
        path, made = HERE / name, make()
        if not check:
            path.write_text(made, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != made:
            print(f"{path} is not current: run python docs/generate.py", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
