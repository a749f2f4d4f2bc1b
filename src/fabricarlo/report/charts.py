"""The charts, as Vega-Lite specifications: the same ones draw the page and the PNG files.

`$VALUE`, `$COLOUR`, `$X` and `$Y` stand for what the reader chooses; `fill` puts it there. Every
colour is of Okabe and Ito's palette or of cividis, which colour-blind readers tell apart.
"""

import json
from typing import Any

PALETTE = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#999999", "#000000")
PARTS = ("#bbbbbb", "#e69f00", "#0072b2", "#56b4e9", "#d55e00", "#cc79a7", "#009e73", "#000000")
FONT = "system-ui, 'Segoe UI', Helvetica, Arial, sans-serif"
Chart = dict[str, Any]

CONFIG: Chart = {
    "font": FONT,
    "background": "white",
    "view": {"stroke": None},
    "axis": {
        "gridColor": "#e6e6e6",
        "labelLimit": 300,
        "titleFontWeight": 500,
        "labelFontSize": 12,
        "titleFontSize": 12,
    },
    "legend": {
        "orient": "top",
        "labelLimit": 220,
        "columns": 4,
        "titleFontWeight": 500,
        "labelFontSize": 12,
        "titleFontSize": 12,
    },
    "range": {"category": list(PALETTE)},
}


def chart(title: str, body: Chart, *, height: int = 0, row: str = "", step: int = 0) -> Chart:
    """A chart as wide as its place; as high as it says, or `step` for every value of `row`.

    (Vega-Lite's own steps cannot be fitted to a width without a warning.)
    """
    made = {"$schema": "https://vega.github.io/schema/vega-lite/v6.json", "description": title}
    fit = {"type": "fit-x", "contains": "padding"}
    made |= {"data": {"name": "rows"}, "width": "container", "autosize": fit, "config": CONFIG}
    made |= {"usermeta": {"row": row, "step": step}} if row else {"height": height}
    return made | body


def _field(name: str, kind: str, title: str | None = None, **more: Any) -> Chart:
    return {"field": name, "type": kind, "title": title} | more


def _row(**more: Any) -> Chart:
    return _field("cell", "nominal", None, sort=None, **more)


def _tips(*fields: tuple[str, str, str]) -> list[Chart]:
    """Field, kind ('n' for a number, 't' for text) and title of what hovering shows."""
    kinds: dict[str, Chart] = {
        "n": {"type": "quantitative", "format": ",.5~g"},
        "p": {"type": "quantitative", "format": ".2%"},
        "t": {"type": "nominal"},
    }
    return [{"field": f, "title": title} | kinds[k] for f, k, title in fields]


def _level_tips(levels: list[str]) -> list[Chart]:
    each = ((p.replace(".", "_"), "n", p) for p in levels)
    return _tips(("cell", "t", "design"), ("mean", "n", "mean"), *each)


def ranges(levels: list[str]) -> Chart:
    """A line over the kept quantiles of each cell, thick between the inner ones, a dot: median."""
    keys = [p.replace(".", "_") for p in levels]
    last = len(keys) - 1
    outer, inner = (0, last), (1, last - 1) if last > 2 else (0, last)
    middle = min(range(last + 1), key=lambda k: abs(float(levels[k][1:]) - 50))
    tips = _level_tips(levels)
    x = _field(keys[outer[0]], "quantitative", "$VALUE", scale={"zero": False})
    layers: list[Chart] = [
        {"mark": {"type": "rule", "color": PALETTE[0], "strokeWidth": 1.5},
         "encoding": {"x": x, "x2": {"field": keys[outer[1]]}, "y": _row(), "tooltip": tips}},
        {"mark": {"type": "bar", "color": PALETTE[0], "height": 8},
         "encoding": {"x": _field(keys[inner[0]], "quantitative", "$VALUE"),
                      "x2": {"field": keys[inner[1]]},
                      "y": _row(), "tooltip": tips}},
        {"mark": {"type": "point", "filled": True, "fill": "white", "stroke": PALETTE[0],
                  "strokeWidth": 2, "size": 60, "opacity": 1},
         "encoding": {"x": _field(keys[middle], "quantitative", "$VALUE"), "y": _row(),
                      "tooltip": tips}},
    ]  # fmt: skip
    bar, line = (f"{levels[a]} to {levels[b]}" for a, b in (inner, outer))
    note = f"dot: {levels[middle]}; bar: {bar}; line: {line}"
    return chart(f"range per design ({note})", {"layer": layers}, row="cell", step=22)


def density() -> Chart:
    """The distribution of every cell, as lines."""
    tips = _tips(("cell", "t", "design"), ("value", "n", "value"), ("share", "p", "share"))
    return chart("distribution of each design", {
        "mark": {"type": "line", "interpolate": "monotone", "strokeWidth": 2, "tooltip": True},
        "encoding": {
            "x": _field("value", "quantitative", "$VALUE", scale={"zero": False}),
            "y": _field("share", "quantitative", "share of samples", axis={"format": "%"}),
            "color": _field("$COLOUR", "nominal", "$COLOUR", sort=None),
            "detail": {"field": "cell"}, "tooltip": tips,
        },
    }, height=260)  # fmt: skip


def exceedance() -> Chart:
    """Share of samples above a value, logarithmic: the tail is on the right."""
    tips = _tips(("cell", "t", "design"), ("value", "n", "value"), ("above", "p", "above it"))
    scale = {"type": "log", "domain": [1e-4, 1]}
    return chart("share of samples above a value", {
        "mark": {"type": "line", "strokeWidth": 2, "point": {"size": 14}, "clip": True},
        "encoding": {
            "x": _field("value", "quantitative", "$VALUE", scale={"zero": False}),
            "y": _field("above", "quantitative", "share above", scale=scale,
                        axis={"format": "~p", "values": [1, 0.1, 0.01, 0.001, 0.0001]}),
            "color": _field("$COLOUR", "nominal", "$COLOUR", sort=None),
            "detail": {"field": "cell"}, "order": {"field": "value"}, "tooltip": tips,
        },
    }, height=300)  # fmt: skip


def parts(names: list[str]) -> Chart:
    """Bars that add up to the step time."""
    tips = _tips(("cell", "t", "design"), ("part", "t", "part"), ("value", "n", "$VALUE"),
                 ("share", "p", "share"))  # fmt: skip
    return chart("where the step time goes", {
        "mark": {"type": "bar", "tooltip": True},
        "encoding": {
            "x": _field("value", "quantitative", "$VALUE", stack="zero"), "y": _row(),
            "color": _field("part", "nominal", None, scale={"domain": names,
                            "range": list(PARTS[: len(names)])}),
            "order": {"field": "order"}, "tooltip": tips,
        },
    }, row="cell", step=22)  # fmt: skip


def _errors(value: str, low: str, high: str, title: str, row: Chart, tips: list[Chart]) -> Chart:
    colour = {"field": "$COLOUR", "type": "nominal", "title": "$COLOUR", "sort": None}
    dodge = {"yOffset": {"field": "$COLOUR", "sort": None}}
    x = _field(value, "quantitative", title)
    return {"layer": [
        {"mark": {"type": "rule", "color": "#333333"}, "data": {"values": [{}]},
         "encoding": {"x": {"datum": 0}}},
        {"mark": {"type": "rule", "strokeWidth": 2},
         "encoding": {"x": _field(low, "quantitative", title), "x2": {"field": high}, "y": row,
                      "color": colour, "tooltip": tips} | dodge},
        {"mark": {"type": "point", "filled": True, "size": 55, "opacity": 1},
         "encoding": {"x": x, "y": row, "color": colour, "tooltip": tips} | dodge},
    ]}  # fmt: skip


def differences() -> Chart:
    """Shift from the first label of an axis to each other, with 95 % intervals."""
    ends = (("low", "n", "low"), ("high", "n", "high"), ("relative", "p", "relative"))
    tips = _tips(("others", "t", "all else"), ("label", "t", "to"), ("shift", "n", "shift"), *ends)
    row = _field("others", "nominal", None, sort=None)
    body = _errors("shift", "low", "high", "shift, $VALUE", row, tips)
    return chart("paired differences", json.loads(json.dumps(body).replace("$COLOUR", "label")),
                 row="others", step=30)  # fmt: skip


def indices() -> Chart:
    """Share of variance that each draw explains, with 95 % intervals."""
    tips = _tips(("draw", "t", "draw"), ("kind", "t", "index"), ("index", "p", "share"),
                 ("low", "p", "low"), ("high", "p", "high"))  # fmt: skip
    y = _field("draw", "nominal", None, sort=None)
    x = {"axis": {"format": "%"}, "title": "share of the variance"}
    dodge = {"yOffset": {"field": "kind", "sort": None}}
    colour = _field("kind", "nominal", None, sort=None)
    return chart("what matters most", {"layer": [
        {"mark": {"type": "bar", "tooltip": True},
         "encoding": {"x": _field("index", "quantitative") | x, "y": y, "color": colour,
                      "tooltip": tips} | dodge},
        {"mark": {"type": "rule", "strokeWidth": 2, "color": "black"},
         "encoding": {"x": _field("low", "quantitative") | x, "x2": {"field": "high"}, "y": y,
                      "tooltip": tips} | dodge},
    ]}, row="draw", step=26)  # fmt: skip


def heat(levels: list[str]) -> Chart:
    """A statistic over two axes."""
    tips = _level_tips(levels)
    x = _field("$X", "nominal", "$X", sort=None, axis={"labelAngle": 0, "grid": False})
    y = _field("$Y", "nominal", "$Y", sort=None, axis={"grid": False})
    dark = {"test": "datum.rank < 0.5", "value": "white"}
    text = {"field": "shown", "type": "quantitative", "format": ",.4~g"}
    colour = _field("shown", "quantitative", "$VALUE", scale={"scheme": "cividis", "zero": False},
                    legend={"gradientLength": 200})  # fmt: skip
    return chart("two axes", {"layer": [
        {"mark": {"type": "rect", "stroke": "white"},
         "encoding": {"x": x, "y": y, "color": colour, "tooltip": tips}},
        {"mark": {"type": "text", "fontSize": 13},
         "encoding": {"x": x, "y": y, "text": text, "tooltip": tips,
                      "color": {"condition": dark, "value": "black"}}},
    ]}, row="$Y", step=46)  # fmt: skip


def shares() -> Chart:
    """Bars of the share of samples with each value of a flag."""
    tips = _tips(("cell", "t", "design"), ("value", "t", "value"), ("share", "p", "share"))
    return chart("shares of samples", {
        "mark": {"type": "bar", "tooltip": True},
        "encoding": {
            "x": _field("share", "quantitative", "share of samples", stack="normalize",
                        axis={"format": "%"}),
            "y": _row(), "color": _field("value", "nominal", None, sort=None), "tooltip": tips,
        },
    }, row="cell", step=22)  # fmt: skip


def fill(made: Chart, choice: dict[str, str], rows: list[dict[str, Any]]) -> Chart:
    """A chart with rows, and what the reader chose, in it."""
    text = json.dumps(made)
    for name, chosen in choice.items():
        text = text.replace(name, json.dumps(chosen)[1:-1])
    filled = json.loads(text) | {"datasets": {"rows": rows}}
    if "usermeta" in filled:
        row, step = filled["usermeta"]["row"], filled["usermeta"]["step"]
        filled["height"] = step * len({str(r[row]) for r in rows})
    return filled
