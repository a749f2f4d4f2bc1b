"""The page: text, controls and data put into the template."""

import html
import json
from importlib.resources import files
from typing import Any

from fabricarlo.report import charts
from fabricarlo.report.answer import cautions, sentences
from fabricarlo.report.facts import MAIN, Facts
from fabricarlo.report.library import script
from fabricarlo.report.tables import KEY_QUANTILES, Table, key_of

MOST_AT_ONCE = 36
"""Designs that are shown until the reader asks for all."""
TABS = {
    "answer": "Answer",
    "distributions": "Distributions",
    "parts": "Where it goes",
    "differences": "Differences",
    "sensitivities": "What matters",
    "map": "Map",
    "flags": "Limits",
    "samples": "Samples",
    "spec": "Spec",
}
NARROW = "\u00a0%"  # a number and its unit stay on one line
MISSING = {
    "density": "The store has no histogram of this output on this page.",
    "exceedance": "The store has no histogram of this output on this page.",
    "parts": f"The store has no parts of the step time: ask for outputs such as {MAIN}_compute.",
    "differences": "There is nothing to compare: one design, or no histograms in the store.",
    "indices": "No sensitivities of this output here: they need kept samples of what is drawn.",
    "shares": "The store has no flags: ask for an output such as limiting_reason.",
}
PROVENANCE = (
    "plan",
    "seed",
    "samples",
    "sampler",
    "replicates",
    "steps",
    "tail",
    "device",
    "versions",
)
PROVENANCE = (*PROVENANCE, "fabricarlo_version", "state")


def page(facts: Facts, tables: dict[str, Table]) -> str:
    """The whole page as HTML."""
    attrs = facts.attrs
    title = str(attrs.get("title") or facts.name)
    question = str(attrs.get("description") or "").strip()
    parts = {
        "TITLE": html.escape(title),
        "QUESTION": f'<p class="question">{html.escape(question)}</p>' if question else "",
        "FACTS": html.escape(_facts_line(facts)),
        "CAUTIONS": "".join(f'<p class="caution">{html.escape(c)}</p>' for c in cautions(facts)),
        "TABS": _tabs(),
        "CONTROLS": _controls(facts),
        "PANELS": _panels(facts, tables),
        "VERSION": html.escape(str(attrs.get("fabricarlo_version", ""))),
        "STYLE": _asset("page.css"),
        "DATA": json.dumps(_data(facts, tables), separators=(",", ":")).replace("</", "<\\/"),
        "LIBRARY": script(),
        "SCRIPT": _asset("page.js"),
    }
    pieces = _asset("page.html").split("@")
    # every odd piece is the name of a place, where it is one
    return "".join(p if k % 2 == 0 else parts[p] for k, p in enumerate(pieces))


def _asset(name: str) -> str:
    return (files("fabricarlo.report") / name).read_text(encoding="utf-8")


def _facts_line(facts: Facts) -> str:
    attrs = facts.attrs
    cells = len(facts.cells)
    designs = f"{cells:,} designs" if cells != 1 else "one design"
    kept = "" if facts.results.attrs.get("state") == "finished" else f" · {attrs.get('state')}"
    return (
        f"{designs} × {int(attrs.get('samples', 0)):,} samples · {attrs.get('sampler')} points, "
        f"seed {attrs.get('seed')} · intervals 95 %{kept}"
    )


def _tabs() -> str:
    return "".join(
        f'<button role="tab" data-panel="{name}" aria-controls="{name}" '
        f'aria-selected="false">{text}</button>'
        for name, text in TABS.items()
    )


def _select(label: str, kind: str, key: str, options: list[tuple[str, str]], chosen: str) -> str:
    made = "".join(
        f'<option value="{html.escape(v)}"{" selected" if v == chosen else ""}>'
        f"{html.escape(t)}</option>"
        for v, t in options
    )
    return (
        f'<label>{html.escape(label)}<select data-kind="{kind}" data-key="{html.escape(key)}">'
        f"{made}</select></label>"
    )


def filters(facts: Facts) -> list[int]:
    """The label that each axis is fixed at when the page opens, -1 for all of them."""
    chosen, shown = [-1] * len(facts.axes), len(facts.cells)
    for k in range(len(facts.axes)):
        if shown > MOST_AT_ONCE and facts.shape[k][1] > 1:
            chosen[k], shown = 0, shown // facts.shape[k][1]
    return chosen


def _controls(facts: Facts) -> str:
    outputs = [(str(k), n) for k, n in enumerate(facts.numbers)]
    made = [_select("output", "output", "", outputs, str(facts.numbers.index(facts.main)))]
    for k, (axis, n) in enumerate(facts.shape):
        if n > 1:
            options = [("-1", "all"), *((str(j), t) for j, t in enumerate(facts.labels[axis]))]
            made.append(_select(axis, "filter", str(k), options, str(filters(facts)[k])))
    several = [axis for axis, n in facts.shape if n > 1]
    if len(several) > 1:
        options = [(axis, axis) for axis in several]
        made.append(_select("colour of lines", "choice", "colour", options, several[0]))
    return "".join(made)


def _chart(name: str) -> str:
    return f'<div class="chart" id="chart-{name}" role="img" aria-label="{name}"></div>'


def _section(name: str, body: str) -> str:
    return f'<section id="{name}" role="tabpanel"><h2>{TABS[name]}</h2>{body}</section>'


ONE_CELL = '<p class="note one-cell"></p>'


def _panels(facts: Facts, tables: dict[str, Table]) -> str:
    found = "".join(
        f"<li>{html.escape(s.replace(' %', NARROW))}</li>" for s in sentences(facts, tables)
    )
    table = '<p class="note" id="numbers-note"></p><div class="scroll"><table id="numbers"></table>'
    bodies = {
        "answer": f'<ol class="findings">{found}</ol>{_chart("overview")}{table}</div>',
        "distributions": f"<p class='note'>{_ranges_note(facts)}</p>{_chart('ranges')}"
        f"<h2>Density</h2>{_chart('density')}<h2>Tail: share of samples above a value</h2>"
        f"{_chart('exceedance')}",
        "parts": _parts_panel(tables),
        "differences": _differences_panel(facts),
        "sensitivities": _indices_note(facts) + ONE_CELL + _chart("indices"),
        "map": _map_panel(facts),
        "flags": _flags_panel(facts),
        "samples": _samples_panel(tables),
        "spec": _spec_panel(facts),
    }
    return "".join(_section(name, body) for name, body in bodies.items())


def _ranges_note(facts: Facts) -> str:
    return html.escape(charts.ranges(facts.levels)["description"].capitalize() + ".")


def _parts_panel(tables: dict[str, Table]) -> str:
    have = dict.fromkeys(r[1] for r in tables["parts"].rows) if "parts" in tables else ["mean"]
    options = [(of, "mean step" if of == "mean" else f"{of} of the step time") for of in have]
    note = (
        "Parts add up to the step time, effects switched on in a fixed order. Parts of a quantile "
        "are means over the samples around it."
    )
    control = _select("of", "choice", "of", options, "mean")
    return f'<p class="note">{note}</p><div class="controls">{control}</div>{_chart("parts")}'


def _differences_panel(facts: Facts) -> str:
    several = [(str(k), axis) for k, (axis, n) in enumerate(facts.shape) if n > 1]
    levels = [(f"p{100 * q:g}", f"p{100 * q:g}") for q in KEY_QUANTILES]
    controls = _select("along", "choice", "axis", several or [("0", "-")], "0")
    controls += _select("quantile", "choice", "level", levels, "p99")
    note = (
        "Shift of a quantile from the first label of an axis to each other. All designs are under "
        "the same luck, so what they share cancels; bars are 95 % intervals over replicates."
    )
    body = f'<p class="note">{note}</p><div class="controls">{controls}</div>'
    return body + _chart("differences")


def _indices_note(facts: Facts) -> str:
    text = (
        "Sobol' indices: first order is the share of variance that knowing one quantity alone "
        "would remove; total is what is left when all others are known."
        if facts.design is not None
        else "First-order Sobol' indices, from the samples: the share of variance that knowing one "
        "quantity alone would remove. Draws that are correlated share theirs."
    )
    return f'<p class="note">{html.escape(text)}</p>'


def _map_panel(facts: Facts) -> str:
    options = [(str(k), axis) for k, axis in enumerate(facts.axes)] or [("0", "-")]
    several = [str(k) for k, (_, n) in enumerate(facts.shape) if n > 1] or ["0"]
    x, y = several[-1], several[-2] if len(several) > 1 else options[0][0]
    levels = [(key_of(p), p) for p in ("mean", *facts.levels)]
    wanted = key_of(facts.levels[facts.nearest(0.99)])
    controls = _select("across", "choice", "x", options, x)
    controls += _select("down", "choice", "y", options, y)
    controls += _select("statistic", "choice", "statistic", levels, wanted)
    note = '<p class="note" id="heat-note"></p>'
    if not facts.axes:
        return '<p class="note">The sweep has no axes.</p>'
    return f'<div class="controls">{controls}</div>{note}{_chart("heat")}'


def _flags_panel(facts: Facts) -> str:
    if not facts.flags:
        return _chart("shares")
    control = _select("flag", "choice", "flag", [(n, n) for n in facts.flags], facts.flags[0])
    return f'<div class="controls">{control}</div>{_chart("shares")}'


def _samples_panel(tables: dict[str, Table]) -> str:
    if "samples" not in tables:
        return '<p class="note">The store kept no samples, or has too many designs to show any.</p>'
    note = "The first samples, and those with the largest main output; in SI units."
    table = '<div class="scroll"><table id="sample-table"></table></div>'
    return f'<p class="note">{note}</p>{ONE_CELL}{table}'


def _spec_panel(facts: Facts) -> str:
    attrs = facts.attrs
    entries = [(n, attrs[n]) for n in PROVENANCE if n in attrs]
    lines = "".join(
        f"<dt>{html.escape(str(k))}</dt><dd>{html.escape(str(v))}</dd>" for k, v in entries
    )
    spec = html.escape(str(attrs.get("spec", "")))
    return f"<dl>{lines}</dl><h2>The spec as written</h2><pre>{spec}</pre>"


def _data(facts: Facts, tables: dict[str, Table]) -> dict[str, Any]:
    outputs = [
        {"name": n, "symbol": facts.scale(n).symbol, "meaning": facts.meaning(n)}
        for n in facts.numbers
    ]
    return {
        "main": facts.numbers.index(facts.main),
        "step": facts.numbers.index(MAIN) if MAIN in facts.numbers else 0,
        "filters": filters(facts),
        "axes": [{"name": a, "labels": facts.labels[a]} for a in facts.axes],
        "cells": [list(c) for c in facts.cells],
        "outputs": outputs,
        "levels": [{"name": p, "key": key_of(p)} for p in facts.levels],
        "missing": MISSING,
        "charts": drawn(facts),
        "tables": {name: table.as_json() for name, table in tables.items()},
    }


def drawn(facts: Facts) -> dict[str, charts.Chart]:
    """The chart of every view."""
    levels = facts.levels
    names = [n.removeprefix(f"{MAIN}_") for n in facts.parts]
    return {
        "overview": charts.ranges(levels),
        "ranges": charts.ranges(levels),
        "density": charts.density(),
        "exceedance": charts.exceedance(),
        "parts": charts.parts(names),
        "differences": charts.differences(),
        "indices": charts.indices(),
        "heat": charts.heat(levels),
        "shares": charts.shares(),
    }
