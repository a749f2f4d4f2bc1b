"""Compute finished blocks again, and compare them with what the store has."""

from typing import Protocol

import jax
import numpy as np

from fabricarlo.blocks import Buffers, Computed, Worker
from fabricarlo.engine import Engine
from fabricarlo.interrupt import Interrupt
from fabricarlo.layout import Block
from fabricarlo.plan import Plan
from fabricarlo.samples import SampleWriter
from fabricarlo.segment import NOT_WRITTEN, Checks, fingerprint

CLOSE = 1e-5  # relative, of outputs where device or versions differ
SHARE = 1e-3  # of the samples that may lie at a threshold and be further apart


class Noted(Protocol):
    """Where differences are written down."""

    recomputed: list[int]
    comparison: str
    problems: list[str]
    damaged_blocks: set[int]


def recompute(
    plan: Plan, writer: SampleWriter, rows: dict[int, Checks], probe: str, found: Noted
) -> None:
    """Compute these blocks; `rows` is what the ledger says of each.

    Bitwise where this device and these versions give the bits of the store's probe tile. Elsewhere
    kept draws bitwise and kept outputs to 1e-5 in all but 1 of 1000 samples.
    """
    engine = Engine(plan, jax.local_devices())
    worker, buffers = Worker(plan, engine, Interrupt()), Buffers(plan)
    same = engine.probe() == probe
    found.comparison = (
        "bitwise"
        if same
        else f"draws bitwise, outputs to {CLOSE:g} in all but {SHARE:g} of the samples: this "
        "device or these versions give other last bits than those that wrote the store"
    )
    for number, checks in sorted(rows.items()):
        block = plan.layout.at(number)
        names = {a.source for a in writer.wanted(block)}
        computed = worker.compute(block, buffers, names)
        assert computed is not None
        wrong = _bits(writer, computed, checks) if same else _distances(writer, computed, block)
        found.recomputed.append(number)
        if wrong:
            found.damaged_blocks.add(number)
            texts = ", ".join(wrong)
            found.problems.append(f"block {number}: computed again, {texts} differs from the store")


def _bits(writer: SampleWriter, computed: Computed, checks: Checks) -> list[str]:
    sums = writer.checksums(computed.block, computed.values)
    wrong = []
    for k, name in enumerate(checks.variables):
        written = checks.sizes[0, k] != NOT_WRITTEN
        if written and sums.get(name) != int(checks.sums[0, k]):
            wrong.append(name)
    if fingerprint(computed.parts) != int(checks.prints[0, 0]):
        wrong.append("the summary")
    return wrong


def _distances(writer: SampleWriter, computed: Computed, block: Block) -> list[str]:
    outputs, wrong = set(writer.plan.outputs), []
    for (name, stored), (_, ours) in zip(
        writer.stored(block), writer.kept(block, computed.values), strict=True
    ):
        if stored is None:
            wrong.append(name)
            continue
        apart = stored != ours
        apart &= ~(np.isnan(stored) & np.isnan(ours))
        if name not in outputs:
            different = bool(apart.any())
        else:
            with np.errstate(invalid="ignore"):
                far = np.abs(stored - ours) > CLOSE * np.abs(ours)
            different = float((apart & (far | ~np.isfinite(stored))).mean()) > SHARE
        if different:
            wrong.append(name)
    return wrong
