"""Print what a spec may name: quantities, presets, answers, laws. All of it from declarations."""

import inspect

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from fabric_kernels import catalogue
from fabricarlo.catalog import EVIDENCE, presets
from fabricarlo.errors import FabricarloError
from fabricarlo.laws import LAWS
from fabricarlo.units import readable
from fabricarlo.written.names import computed, declared

WIDTH = 150


def print_list(what: str | None) -> None:
    """Print one list, or all. Raises FabricarloError for a list that there is not."""
    if what is not None and what not in LISTS:
        raise FabricarloError(f"list: '{what}' is no list; there are {', '.join(LISTS)}.")
    console = Console()
    if not console.is_terminal:
        console.width = WIDTH
    for name in [what] if what else LISTS:
        for table in LISTS[name]():
            console.print(table)


def _table(title: str, *headings: str) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for k, heading in enumerate(headings):
        table.add_column(heading, no_wrap=k == 0)
    return table


def _quantities() -> list[Table]:
    table = _table("quantities", "name", "unit", "meaning", "default", "source", "computed by")
    by = computed()
    for name, q in declared().items():
        default = "" if q.default is None else readable(q.default, q.unit)
        table.add_row(name, q.unit, q.meaning, default, _plain(q.source), by.get(name, ""))
    return [table]


def _plain(text: str) -> str:
    return text.replace("[", "\\[")  # evidence marks are no markup


def _presets() -> list[Table]:
    marks = ", ".join(f"{mark} {meaning}" for mark, meaning in EVIDENCE.items())
    tables = []
    for preset in presets().values():
        title = f"{preset.name}: {preset.meaning}"
        table = _table(title, "name", "value", "evidence", "source")
        for name, entry in preset.entries.items():
            table.add_row(name, str(entry.written), entry.evidence, _plain(entry.source))
        tables.append(table)
    tables[-1].caption = f"evidence: {marks}"
    return tables


def _answers() -> list[Table]:
    table = _table("answers", "question", "answer", "what it is")
    for question, answers in catalogue.ANSWERS.items():
        for k, (name, function) in enumerate(answers.items()):
            first = (inspect.getdoc(function) or "").partition("\n")[0]
            table.add_row(
                question if k == 0 else "", name + (" (default)" if k == 0 else ""), first
            )
    return [table]


def _laws() -> list[Table]:
    table = _table("laws", "law", "parameters", "what it is")
    for name, kind in LAWS.items():
        forms = " | ".join(", ".join(form.roles) for form in kind.forms)
        table.add_row(name, forms, kind.meaning)
    return [table]


LISTS = {"quantities": _quantities, "presets": _presets, "answers": _answers, "laws": _laws}
