"""Read a store, write its page."""

from pathlib import Path

import xarray as xr

from fabricarlo.analysis import AnalysisError
from fabricarlo.errors import StoreError
from fabricarlo.objects import reason_of
from fabricarlo.reading import open as open_tree
from fabricarlo.report.facts import facts_of
from fabricarlo.report.images import write_images
from fabricarlo.report.page import page
from fabricarlo.report.tables import tables


def write_report(store: str | Path, out: str | Path, *, png: bool = False) -> list[Path]:
    """Write the page of a store, and its charts beside it if wanted; the paths written.

    Raises StoreError for what is no store, one whose sweep is not finished, or a page that cannot
    be written.
    """
    target = Path(out)
    if target.is_dir() or not target.parent.is_dir():
        raise StoreError(f"{out} cannot be written: name a file in a folder that exists.")
    return write_page(open_tree(store), str(store), target, png=png)


def write_page(tree: xr.DataTree, name: str, target: Path, *, png: bool = False) -> list[Path]:
    """The same of a store that is open, or was made in memory."""
    try:
        facts = facts_of(tree, name)
    except AnalysisError as error:
        raise StoreError(f"{name}: {error}") from error
    made = tables(facts)
    text = page(facts, made)
    try:
        target.write_text(text, encoding="utf-8")
        return [target, *(write_images(facts, made, target) if png else [])]
    except OSError as error:
        raise StoreError(
            f"{error.filename or target} cannot be written: {reason_of(error)}; make room, give "
            "permission or choose another --out."
        ) from error
