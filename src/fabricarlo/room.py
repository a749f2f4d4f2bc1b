"""Whether what a sweep keeps finds room, asked before anything is written."""

import math
import os
import shutil
from pathlib import Path

import numpy as np

from fabricarlo.errors import SpecError
from fabricarlo.objects import is_url
from fabricarlo.plan import Plan
from fabricarlo.template import sample_arrays


def bytes_to_write(plan: Plan) -> int:
    """Bytes of kept samples before any codec."""
    if not plan.sweep.keep.samples:
        return 0
    kept = -(-plan.sweep.samples // plan.sweep.keep.every)
    cells = {a: math.prod(plan.shape[k] for k in a.axes) for a in sample_arrays(plan)}
    return kept * sum(np.dtype(a.dtype).itemsize * n for a, n in cells.items())


def size_text(size: int) -> str:
    """Bytes for people."""
    for prefix, factor in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if size >= factor:
            return f"{size / factor:,.1f} {prefix}B"
    return f"{size} B"


def refuse_without_room(plan: Plan, path: str | Path | None, there: int = 0) -> None:
    """Raise SpecError when the samples to keep are more than the disk, or the memory, has free.

    `there` of the bytes are in the store already.
    """
    if is_url(path):
        return  # an object store says nothing of its room
    needed = bytes_to_write(plan) - there
    free = _free_memory() if path is None else shutil.disk_usage(_existing(Path(path))).free
    if needed <= free:
        return
    every = 1 << math.ceil(math.log2(needed / max(free, 1)) + 1)
    where = "memory" if path is None else f"the disk of {path}"
    raise SpecError(
        [
            f"{plan.sweep.path or 'spec'}: keep.samples: {plan.sweep.name} would write {needed:,} "
            f"bytes ({size_text(needed)}) of samples, and {where} has {size_text(free)} free; "
            f"lower `samples`, keep only summaries (`keep: {{samples: false}}`), or one sample in "
            f"{every} (`keep: {{samples: {{every: {every}}}}}`)."
        ]
    )


def _existing(path: Path) -> Path:
    path = path.absolute()
    return next(p for p in (path, *path.parents) if p.exists())


def _free_memory() -> int:
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
