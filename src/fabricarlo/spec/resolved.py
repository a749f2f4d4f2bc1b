"""The content of a sweep that decides its numbers, as plain JSON data."""

import math
from typing import Any

from fabricarlo.laws import Law
from fabricarlo.sweep import Axis, Draw, Settings, Sweep, Tail


def resolved(sweep: Sweep) -> dict[str, Any]:
    """Everything that a plan's hash covers, in a canonical form.

    Left out are description, text, path and `samples` (more samples extend a store). The order
    of draws and axes counts; that of `set` does not. Numbers are in SI.
    """
    return {
        "schema_version": 1,
        "sweep": sweep.name,
        "seed": sweep.seed,
        "sampler": sweep.sampler,
        "replicates": sweep.replicates,
        "design": sweep.design,
        "steps": sweep.steps,
        "settings": _settings(sweep.settings),
        "axes": [_axis(axis) for axis in sweep.axes],
        "draws": [_draw(draw) for draw in sweep.draws],
        "copulas": [
            {"quantities": list(c.quantities), "correlation": [list(row) for row in c.correlation]}
            for c in sweep.copulas
        ],
        "independent": sorted(sweep.independent),
        "outputs": list(sweep.outputs),
        **({"tails": [_tail(tail) for tail in sweep.tails]} if sweep.tails else {}),
        "keep": {
            "samples": sweep.keep.samples,
            "every": sweep.keep.every,
            "quantiles": list(sweep.keep.quantiles),
            "codec": sweep.keep.codec,
            "mantissa_bits": sweep.keep.mantissa_bits,
        },
    }


def _settings(settings: Settings) -> dict[str, Any]:
    return {
        "values": dict(sorted(settings.values.items())),
        "draws": [_draw(draw) for draw in settings.draws.values()],
        "choices": dict(sorted(settings.choices.items())),
    }


def _tail(tail: Tail) -> dict[str, Any]:
    return {
        "stream": tail.stream,
        "probability": tail.probability,
        "upper": tail.upper,
        "share": tail.share,
    }


def _axis(axis: Axis) -> dict[str, Any]:
    return {
        "name": axis.name,
        "labels": list(axis.labels),
        "unit": axis.unit,
        "settings": [_settings(settings) for settings in axis.settings],
    }


def _draw(draw: Draw) -> dict[str, Any]:
    return {"quantity": draw.quantity, "relation": draw.relation, "law": _law(draw.law)}


def _law(law: Law) -> dict[str, Any]:
    return {"kind": law.kind} | {name: _json(value) for name, value in law.parameters}


def _json(value: float | tuple[float, ...]) -> Any:
    if isinstance(value, tuple):
        return [_json(v) for v in value]
    return value if math.isfinite(value) else str(value)  # an open end of a truncated law
