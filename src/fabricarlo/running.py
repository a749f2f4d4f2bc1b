"""`fabricarlo.run`: a spec in, a DataTree out."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import jax

from fabricarlo.errors import SpecError
from fabricarlo.interrupt import Interrupt
from fabricarlo.layout import BLOCK
from fabricarlo.progress import Reporter, Silent
from fabricarlo.reading import open as open_tree
from fabricarlo.session import Session
from fabricarlo.spec import load_spec
from fabricarlo.store import SweepStore
from fabricarlo.sweep import Sweep

if TYPE_CHECKING:
    import xarray as xr


def run(
    spec: str | Path | Sweep,
    out: str | Path | None = None,
    *,
    overrides: Sequence[str] = (),
    overwrite: bool = False,
    process: tuple[int, int] | None = None,
    elastic: bool = False,
    block: int | None = None,
    tile: int | None = None,
    devices: Sequence[jax.Device] | None = None,
    reporter: Reporter | None = None,
) -> "xr.DataTree":
    """Run a sweep, or go on with one, and return its DataTree (`/`, `/samples`, `/histograms`).

    `spec` is a path, YAML text or a Sweep; `out` a directory, the URL of an object store
    (s3://bucket/name), None for memory. `process` (K, N) takes the K-th of N shares of the blocks;
    `elastic` claims blocks one group after the other, beside other processes that do so. `block`
    is the lanes of a block, a power of two, by default 2^20; the numbers do not depend on it, nor
    on `devices`. `tile` is the lanes of the one compiled shape, also a power of two, by default
    what suits the device; a store keeps its own.

    Raises SpecError for bad input, StoreError for a store that is another sweep's or is held by a
    live process, BlocksFailed when a device could not compute some blocks, Interrupted after a
    signal. What was finished before is kept in every case.
    """
    if elastic and process is not None:
        raise SpecError(["--elastic claims blocks and --process takes a share: give one of them."])
    sweep = spec if isinstance(spec, Sweep) else load_spec(spec, overrides)
    store = SweepStore(out)
    reporter = reporter or Silent()
    found = list(devices or jax.local_devices())
    session = Session(
        sweep,
        store,
        None if elastic else process or (0, 1),
        BLOCK if block is None else block,
        found,
        tile,
        overwrite=overwrite,
        overrides=overrides,
    )
    session.prepare()
    with Interrupt().listening() as interrupt:
        session.work(interrupt, reporter)
    return open_tree(store.target if out is None else out)
