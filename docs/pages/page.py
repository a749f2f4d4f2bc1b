"""What a page of results is, and how it is made."""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

import xarray as xr

import fabricarlo
from fabricarlo.plan import Plan
from fabricarlo.spec import load_spec

ROOT = Path(__file__).resolve().parents[2]
STORES = ROOT / ".cache" / "pages"

Stores = Mapping[str, xr.DataTree]
"""Finished stores by the name of their sweep."""


@dataclasses.dataclass(frozen=True)
class Page:
    """One page: the sweeps that it reads, and how it is written.

    `write` takes the stores and the folder of figures, and returns the page in Markdown.
    """

    name: str
    sweeps: tuple[str, ...]
    write: Callable[[Stores, Path], str]


def spec_path(sweep: str) -> Path:
    """The spec of a shipped sweep."""
    return ROOT / "sweeps" / f"{sweep}.yaml"


def plan_of(sweep: str) -> str:
    """The hash of a shipped sweep as it is now."""
    return Plan(load_spec(spec_path(sweep))).hash


def stamp(page: Page) -> str:
    """The first line of a page: what it was made from."""
    made = ", ".join(f"{sweep} {plan_of(sweep)[:12]}" for sweep in page.sweeps)
    return f"<!-- written by `make pages` from the plans {made}: change the sweep, then run it -->"


def made(page: Page, stores: Stores, folder: Path) -> str:
    """The whole text of a page; its figures are written into the folder."""
    return f"{stamp(page)}\n{page.write(stores, folder).strip()}\n"


def stores_of(page: Page, samples: int | None) -> Stores:
    """Run the sweeps of a page where no finished store is at hand, and open them."""
    stores = {}
    for sweep in page.sweeps:
        store = STORES / f"{sweep}-{plan_of(sweep)[:12]}-{samples or 'all'}.zarr"
        overrides = [f"samples={samples}"] if samples else []
        stores[sweep] = fabricarlo.run(spec_path(sweep), store, overrides=overrides)
    return stores
