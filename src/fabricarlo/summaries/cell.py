"""The device side of one large cell within one block: counts on the device, the rest follows."""

from functools import reduce
from typing import NamedTuple

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray

from fabricarlo.summaries.bins import NOT_FINITE, bin_of_key, key_of
from fabricarlo.summaries.candidates import Candidates
from fabricarlo.summaries.device import (
    SLOTS,
    WINDOW,
    ZERO_SLOT,
    Accumulators,
    Device,
    Programs,
    TileStatistics,
)
from fabricarlo.summaries.histogram import Histogram, histogram_of, keys_of
from fabricarlo.summaries.moments import Moments, merge_moments
from fabricarlo.summaries.state import Part

_MOST_COLUMNS = 2**31 - 1  # of a block: device counts are int32
_SAMPLED = 4096  # values of the first tile that place a window


KeysAndCounts = tuple[NDArray[np.int64], NDArray[np.int64]]
_NOTHING: KeysAndCounts = (np.zeros(0, np.int64), np.zeros(0, np.int64))


class Tile(NamedTuple):
    """One tile of a large cell."""

    values: tuple[Array, ...]
    flags: tuple[Array, ...]
    first: int  # index of its first column
    valid: NDArray[np.int32]  # [replicates], leading columns that count


def _on_one_device(tile: Tile) -> tuple[Device, Tile]:
    """A tile split over devices, brought together: a split sum would have other bits."""
    arrays = tile.values + tile.flags
    device = min(arrays[0].devices(), key=lambda d: d.id)
    if any(len(array.devices()) > 1 for array in arrays):
        values, flags = jax.device_put((tile.values, tile.flags), device)
        tile = tile._replace(values=values, flags=flags)
    return device, tile


class CellSummary:
    """Summary of one cell's tiles in one block; the host works one tile behind the device."""

    def __init__(
        self, programs: Programs, outputs: tuple[str, ...], flags: tuple[str, ...]
    ) -> None:
        self._programs = programs
        self._outputs = outputs
        self._flags = flags
        self._columns = 0
        self._accumulators: dict[Device, Accumulators] = {}
        self._bases = np.zeros(0, np.int32)
        self._waiting: tuple[Tile, TileStatistics] | None = None
        self._candidates = Candidates(len(outputs), programs.shape)
        self._moments: dict[int, Moments] = {}  # first column -> of that tile
        self._outside: list[KeysAndCounts] = []
        rows = (len(outputs), programs.shape.replicates)
        self._count = np.zeros(rows, np.int64)
        self._nonfinite = np.zeros(rows, np.int64)
        self._lowest = np.full(len(outputs), NOT_FINITE)
        self._highest = np.full(len(outputs), -NOT_FINITE)

    def add(self, tile: Tile) -> None:
        """Give a tile to the device, then settle the tile before it."""
        self._columns += int(tile.valid.max())
        if self._columns > _MOST_COLUMNS:
            raise ValueError(
                f"a block of more than {_MOST_COLUMNS:,} columns could overflow its counts: "
                "choose smaller blocks."
            )
        if not self._accumulators:
            self._bases = np.array([self._base(v, tile) for v in tile.values], np.int32)
        device, tile = _on_one_device(tile)
        counts = self._accumulators.pop(device, None) or self._programs.accumulators(device)
        arguments = tile.values, tile.flags, tile.valid, self._bases
        self._accumulators[device], statistics = self._programs.summarise(counts, *arguments)
        self.settle()
        self._waiting = tile, statistics

    def _values(self, array: Array) -> NDArray[np.float32]:
        shape = self._programs.shape
        host = np.asarray(array).astype(np.float32, copy=False)
        return np.broadcast_to(host, (shape.replicates, shape.columns))

    def _base(self, array: Array, tile: Tile) -> int:
        """The first bin of the window: around everything if that fits, else around the most."""
        values = self._values(array)[:, : max(1, int(tile.valid.max()))]
        key = key_of(values[:, :: max(1, values.size // _SAMPLED)])
        bins = np.sort(bin_of_key(key[(np.abs(key) < NOT_FINITE) & (key != 0)]))
        if not len(bins):
            return 0
        if bins[-1] - bins[0] < WINDOW:
            return int(bins[0] + bins[-1]) // 2 - WINDOW // 2
        inside = np.searchsorted(bins, bins + WINDOW) - np.arange(len(bins))
        return int(bins[np.argmax(inside)])

    def settle(self) -> None:
        """Read the statistics of the tile that waits, and do the host's share of its work."""
        if self._waiting is None:
            return
        (tile, statistics), self._waiting = self._waiting, None
        if tile.first in self._moments:
            raise ValueError(f"the tile from column {tile.first} came twice: add each tile once.")
        statistics = jax.tree.map(np.asarray, statistics)
        finite = statistics.finite.astype(np.int64)
        moments = [finite.astype(np.float64), statistics.mean, statistics.centred]
        self._moments[tile.first] = np.stack(moments)
        self._count += finite
        self._nonfinite += tile.valid - finite
        np.minimum(self._lowest, statistics.lowest.min(axis=(1, 2)), out=self._lowest)
        np.maximum(self._highest, statistics.highest.max(axis=(1, 2)), out=self._highest)
        for output in np.flatnonzero(statistics.outside.any(axis=1)):
            self._count_outside(int(output), tile)
        self._settle_extremes(tile, statistics)

    def _settle_extremes(self, tile: Tile, statistics: TileStatistics) -> None:
        if statistics.best:
            self._candidates.offer_selected(statistics, tile.first)
            return
        lanes = self._candidates.lanes(statistics, tile.first)
        self._candidates.offer(
            lanes, lambda k: self._values(tile.values[k]), tile.first, tile.valid
        )

    def _count_outside(self, output: int, tile: Tile) -> None:
        key = key_of(self._values(tile.values[output]))
        bins = bin_of_key(key)
        place = bins - self._bases[output]
        outside = (np.abs(key) < NOT_FINITE) & (bins != 0) & ((place < 0) | (place >= WINDOW))
        outside &= np.arange(key.shape[1]) < tile.valid[:, None]
        row = np.nonzero(outside)[0] + output * key.shape[0]
        found = np.unique(keys_of(row, bins[outside]), return_counts=True)
        self._outside.append(found)

    def part(self, number: int) -> Part:
        """Settle everything; the part of this cell in block `number` of the cell."""
        self.settle()
        first = min(self._moments)
        part = Part(
            outputs=self._outputs,
            replicates=self._programs.shape.replicates,
            histogram=self._histogram(),
            top=self._candidates.top(first),
            bottom=self._candidates.bottom(first),
            count=self._count,
            nonfinite=self._nonfinite,
            nodes={
                (0, number): reduce(merge_moments, [m for _, m in sorted(self._moments.items())])
            },
            flags=self._flag_counts(),
        )
        for device, counts in self._accumulators.items():
            self._programs.give_back(device, counts)
        return part

    def _histogram(self) -> Histogram:
        rows = self._count.size
        windows, others = [_NOTHING], [_NOTHING, *self._outside]
        for accumulators in self._accumulators.values():
            for output, array in enumerate(accumulators.histograms):
                table = np.asarray(array).reshape(-1, SLOTS)
                windows.append(self._occupied(output, table))
                others.append(self._zeros(output, table))
        # the windows are one ascending run on each device: the few others become one too
        few = histogram_of(*_joined(others), rows)
        return histogram_of(*_joined([*windows, (few.keys(), few.counts)]), rows)

    def _occupied(self, output: int, table: NDArray[np.int32]) -> KeysAndCounts:
        """Of the occupied slots; only the range that occurred is looked at."""
        base = int(self._bases[output])
        ends = bin_of_key(np.array([self._lowest[output], self._highest[output]], np.int32))
        start, stop = np.clip(ends - base + [0, 1], 0, WINDOW)
        counts = table[:, start:stop]
        row, place = np.divmod(np.flatnonzero(counts != 0), max(1, stop - start))
        keys = keys_of(row + output * len(table), place + (base + start))
        return keys, counts[row, place].astype(np.int64)

    def _zeros(self, output: int, table: NDArray[np.int32]) -> KeysAndCounts:
        row = np.flatnonzero(table[:, ZERO_SLOT])
        keys = keys_of(row + output * len(table), np.zeros_like(row))
        return keys, table[row, ZERO_SLOT].astype(np.int64)

    def _flag_counts(self) -> dict[str, NDArray[np.int64]]:
        found = {}
        for number, name in enumerate(self._flags):
            shape = (self._programs.shape.replicates, self._programs.shape.codes[number] + 1)
            each = [np.asarray(a.flags[number]) for a in self._accumulators.values()]
            found[name] = np.sum(each, axis=0, dtype=np.int64).reshape(shape)
        return found


def _joined(several: list[KeysAndCounts]) -> KeysAndCounts:
    keys, counts = zip(*several, strict=True)
    return np.concatenate(keys), np.concatenate(counts)
