"""Vega as one script, and charts as PNG: both from vl-convert, which carries them along."""

import re
from typing import Any

from fabricarlo.errors import FabricarloError

GRAMMAR = "6."
"""The major version of Vega-Lite that the charts are written in."""


def _vl_convert() -> Any:
    try:
        import vl_convert
    except ModuleNotFoundError as error:
        raise FabricarloError(
            "report: the chart library is not installed; install it with "
            "pip install 'fabricarlo[report]' (the package vl-convert-python)."
        ) from error
    return vl_convert


def _version(library: Any) -> str:
    """The newest Vega-Lite of our grammar that the library carries."""
    fitting = [v for v in library.get_vegalite_versions() if str(v).startswith(GRAMMAR)]
    if not fitting:
        raise FabricarloError(
            "report: this vl-convert-python has no Vega-Lite 6; install one from 1.9 on."
        )
    return str(max(fitting, key=lambda v: [int(n) for n in v.split(".")]))


def script() -> str:
    """Vega, Vega-Lite and Vega-Embed; sets `window.vegaEmbed`, safe inside a script element."""
    library = _vl_convert()
    text = str(library.javascript_bundle(vl_version=_version(library)))
    return re.sub("</(script)", r"<\\/\1", text, flags=re.IGNORECASE)


def png(chart: dict[str, Any], scale: float = 2.0) -> bytes:
    """A chart drawn without a browser."""
    library = _vl_convert()
    return bytes(library.vegalite_to_png(chart, vl_version=_version(library), scale=scale))
