"""The kept samples of blocks: whole chunks only, each with its checksum."""

import sys
from collections.abc import Iterator
from typing import Any

import google_crc32c
import numpy as np
import zarr

from fabricarlo.layout import Block
from fabricarlo.objects import failures
from fabricarlo.plan import Plan
from fabricarlo.segment import ABSENT, NOT_WRITTEN, Checks, Written
from fabricarlo.store import SweepStore
from fabricarlo.template import SampleArray, sample_arrays

_BATCH = 4096  # blocks whose sizes are asked for at once


class SampleWriter:
    """Writes the kept samples of blocks, whole chunks only."""

    def __init__(self, store: SweepStore, plan: Plan) -> None:
        self.plan, self.store = plan, store
        self.arrays = sample_arrays(plan) if plan.sweep.keep.samples else ()
        group = (
            zarr.open_group(store.target, mode="r+", use_consolidated=False) if self.arrays else {}
        )
        self._stored: dict[str, Any] = {a.name: group[f"samples/{a.name}"] for a in self.arrays}

    def wanted(self, block: Block) -> list[SampleArray]:
        """Arrays that this block writes: draws shared by cells are written by the first of them."""
        return [
            a
            for a in self.arrays
            if all(s.start == 0 for k, s in enumerate(block.region) if k not in a.axes)
        ]

    def keys(self, block: Block) -> dict[str, str]:
        """Variable -> key of the chunk that this block writes."""
        extents = self.plan.layout.extents
        keys = {}
        for array in self.wanted(block):
            where = [block.region[k].start // extents[k] for k in array.axes]
            keys[array.name] = f"samples/{array.name}/c/" + "/".join(map(str, (*where, block.part)))
        return keys

    def write(self, block: Block, values: dict[str, np.ndarray]) -> Written:
        """Write the chunks of a block; values [cell, sample] per variable, every sample of it."""
        keys, plain, checksums = self.keys(block), {}, {}
        for array in self.wanted(block):
            kept = self._kept(array, block, values[array.source])
            data = kept.tobytes()
            checksums[array.name] = google_crc32c.value(data)
            if self._is_its_own_code(array, kept):
                plain[keys[array.name]] = data
            else:
                self._encode(array, block, kept)
        self.store.objects.put_all(plain)
        sizes = dict(zip(keys, self.store.objects.sizes(list(keys.values())), strict=True))
        return Written(block.chunk, block.part, block.stop, checksums, sizes)

    def kept(self, block: Block, values: dict[str, np.ndarray]) -> Iterator[tuple[str, np.ndarray]]:
        """What `write` would keep of these values, in the order of `stored`."""
        for array in self.wanted(block):
            yield array.name, self._kept(array, block, values[array.source])

    def checksums(self, block: Block, values: dict[str, np.ndarray]) -> dict[str, int]:
        """The checksums that `write` would record for these values."""
        return {n: google_crc32c.value(v.tobytes()) for n, v in self.kept(block, values)}

    def _is_its_own_code(self, array: SampleArray, kept: np.ndarray) -> bool:
        """Whether the bytes of a chunk are the bytes of its values, with nothing to encode."""
        whole = kept.shape == self._stored[array.name].chunks
        return whole and self.plan.sweep.keep.codec == "none" and sys.byteorder == "little"

    def _encode(self, array: SampleArray, block: Block, kept: np.ndarray) -> None:
        every, stored = self.plan.sweep.keep.every, self._stored[array.name]
        samples = slice(-(-block.start // every), -(-block.stop // every))
        # zarr cuts what lies beyond an array without a word
        assert samples.stop <= stored.shape[-1], f"{array.name} ends before {samples}"
        # a store in memory keeps the very array it is given, and the buffer is used again
        copied = kept.copy() if self.store.path is None else kept
        stored[(*(block.region[k] for k in array.axes), samples)] = copied

    def _kept(self, array: SampleArray, block: Block, values: np.ndarray) -> np.ndarray:
        keep = self.plan.sweep.keep
        shape = tuple(s.stop - s.start for s in block.region)
        grid = values[:, :: keep.every].reshape(*shape, -1)
        first = tuple(slice(None) if k in array.axes else 0 for k in range(len(shape)))
        grid = grid[first]
        if array.is_flag:
            return grid.astype(np.int8)
        return rounded(grid, keep.mantissa_bits) if keep.mantissa_bits else grid

    def names(self) -> tuple[str, ...]:
        """The variables that are kept, in the order of the ledger's columns."""
        return tuple(sorted(a.name for a in self.arrays))

    def damaged(self, checks: Checks) -> set[int]:
        """Blocks with a chunk that is missing or has another size than was written."""
        found: set[int] = set()
        for first in range(0, len(checks.blocks), _BATCH):
            found |= self._damaged(checks, range(first, min(first + _BATCH, len(checks.blocks))))
        return found

    def _damaged(self, checks: Checks, rows: range) -> set[int]:
        keys, owner, sizes = [], [], []
        for row in rows:
            number = self.plan.layout.number(*(int(n) for n in checks.blocks[row]))
            there = self.keys(self.plan.layout.at(number))
            for k, name in enumerate(checks.variables):
                if (size := int(checks.sizes[row, k])) == NOT_WRITTEN or name not in there:
                    continue
                keys.append(there[name])
                owner.append(number)
                sizes.append(None if size == ABSENT else size)
        found = self.store.objects.sizes(keys)
        return {n for n, want, got in zip(owner, sizes, found, strict=True) if got != want}

    def stored(self, block: Block) -> Iterator[tuple[str, np.ndarray | None]]:
        """The values of every chunk of a block as they can be read now; None where they cannot."""
        every = self.plan.sweep.keep.every
        samples = slice(-(-block.start // every), -(-block.stop // every))
        for array in self.wanted(block):
            where = (*(block.region[k] for k in array.axes), samples)
            try:
                yield array.name, np.asarray(self._stored[array.name][where])
            except failures():
                raise
            except Exception:  # whatever a codec makes of damaged bytes
                yield array.name, None


def rounded(values: np.ndarray, bits: int) -> np.ndarray:
    """float32 rounded half to even to `bits` mantissa bits; relative error <= 2^-(bits + 1)."""
    pattern = np.ascontiguousarray(values, np.float32).view(np.uint32)
    drop = np.uint32(23 - bits)
    half = (np.uint32(1) << (drop - np.uint32(1))) - np.uint32(1)
    odd = (pattern >> drop) & np.uint32(1)
    up = ((pattern + half + odd) >> drop) << drop
    return np.where(np.isfinite(values), up.view(np.float32), values)
