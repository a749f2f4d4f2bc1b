"""Tiles that pack many small cells: summarised on the host, every cell whole within its tile.

All segments get the same width, that of a full cell, so that the bits of a cell do not depend on
what it was packed with.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from fabricarlo.summaries.bins import NOT_FINITE, bin_of_key, key_of
from fabricarlo.summaries.extremes import EMPTY, KEPT, Ranks, rank_of, smallest
from fabricarlo.summaries.histogram import Histogram, histogram_of, keys_of
from fabricarlo.summaries.moments import Moments, moments_of
from fabricarlo.summaries.state import Extremes, Part, decoded


def packed_parts(
    outputs: Mapping[str, NDArray[np.float32]],
    flags: Mapping[str, tuple[NDArray[np.float32], int]],
    cell: NDArray[np.integer],
    index: NDArray[np.integer],
    samples: int,
    replicates: int,
) -> dict[int, Part]:
    """The part of every cell of a tile; block number 0, as each cell is complete.

    outputs, flags: [replicates, columns] arrays, a flag with its number of codes; cell, index: of
    every column, -1 marks padding. Raises ValueError for a cell that is not whole in this tile.
    """
    width = -(-samples // replicates)
    starts = _starts(cell, index, width)
    columns = starts[:, None] + np.arange(width)
    number = np.arange(width) * replicates + np.arange(replicates)[:, None, None]
    counted = np.broadcast_to(number < samples, (replicates, *columns.shape))
    found = [_Summary(values[:, columns], counted) for values in outputs.values()]
    codes = {n: _code_counts(v[:, columns], counted, k) for n, (v, k) in flags.items()}
    histograms = _histograms(found, len(starts), replicates)
    return {
        int(which): Part(
            outputs=tuple(outputs),
            replicates=replicates,
            histogram=histograms[g],
            top=_extremes([s.top for s in found], -1, g, replicates),
            bottom=_extremes([s.bottom for s in found], 1, g, replicates),
            count=_column([s.moments[0] for s in found], g, replicates).astype(np.int64),
            nonfinite=_column([s.nonfinite for s in found], g, replicates).astype(np.int64),
            nodes={(0, 0): _node([s.moments for s in found], g, replicates)},
            flags={name: counts[:, g].copy() for name, counts in codes.items()},
        )
        for g, which in enumerate(cell[starts])
    }


def _starts(cell: NDArray[np.integer], index: NDArray[np.integer], width: int) -> NDArray[np.int64]:
    """The first column of every cell; refuses a cell that is not whole."""
    used = np.flatnonzero(cell >= 0)
    starts = used[index[used] == 0]
    columns = (starts[:, None] + np.arange(width)).ravel()
    whole = np.array_equal(columns, used)
    if whole:
        whole = np.array_equal(index[columns], np.tile(np.arange(width), len(starts)))
        whole &= np.array_equal(cell[columns], np.repeat(cell[starts], width))
    if not whole or len(np.unique(cell[starts])) != len(starts):
        raise ValueError(
            f"a packed tile holds a cell that is not whole: {len(used)} columns in use, "
            f"{len(starts)} cells begin; each cell needs its {width} columns in a row, from 0 on."
        )
    return starts


class _Summary:
    """One output of a tile, arrays [replicates, cells, ...]."""

    def __init__(self, values: NDArray[np.float32], counted: NDArray[np.bool_]) -> None:
        key = key_of(values)
        finite = counted & (np.abs(key) < NOT_FINITE)
        column = np.arange(values.shape[-1])
        ranks = np.sort(np.where(finite, rank_of(key, column), EMPTY), axis=-1)
        self.moments: Moments = moments_of(values, finite)
        self.nonfinite: NDArray[np.int64] = (counted & ~finite).sum(axis=-1)
        self.bottom: Ranks = smallest(ranks)
        self.top: Ranks = smallest(np.where(finite, rank_of(-key, column), EMPTY))
        self.bins, self.counts, self.segment = _runs(ranks)


def _runs(
    ranks: Ranks,
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """Bin, count and flat segment number of every occupied bin, from sorted ranks."""
    width = ranks.shape[-1]
    flat = ranks.ravel()
    bins = bin_of_key((flat >> 32).astype(np.int32))
    first = np.ones(len(flat), bool)
    first[1:] = bins[1:] != bins[:-1]
    first[::width] = True
    starts = np.flatnonzero(first)
    counts = np.diff(np.append(starts, len(flat)))
    real = flat[starts] != EMPTY
    return bins[starts][real], counts[real], (starts // width)[real]


def _histograms(found: list[_Summary], cells: int, replicates: int) -> list[Histogram]:
    keys, counts = [], []
    for output, summary in enumerate(found):
        replicate, cell = np.divmod(summary.segment, cells)
        row = (cell * len(found) + output) * replicates + replicate
        keys.append(keys_of(row, summary.bins))
        counts.append(summary.counts)
    rows = len(found) * replicates
    nothing = np.zeros(0, np.int64)
    every = histogram_of(
        np.concatenate([nothing, *keys]), np.concatenate([nothing, *counts]), cells * rows
    )
    cut = every.offsets[::rows] if rows else np.zeros(cells + 1, np.int64)
    return [
        Histogram(
            every.offsets[g * rows : (g + 1) * rows + 1] - cut[g],
            every.bins[cut[g] : cut[g + 1]].copy(),
            every.counts[cut[g] : cut[g + 1]].copy(),
        )
        for g in range(cells)
    ]


def _column(arrays: list[NDArray[np.generic]], cell: int, replicates: int) -> NDArray[np.generic]:
    return np.array([a[:, cell] for a in arrays]).reshape(len(arrays), replicates)


def _node(moments: list[Moments], cell: int, replicates: int) -> Moments:
    stacked = np.array([m[:, :, cell] for m in moments]).reshape(len(moments), 3, replicates)
    return np.ascontiguousarray(stacked.swapaxes(0, 1))


def _extremes(ranks: list[Ranks], side: int, cell: int, replicates: int) -> Extremes:
    chosen = np.array([r[:, cell] for r in ranks], np.int64)
    kept = ranks[0].shape[-1] if ranks else KEPT
    return decoded(chosen.reshape(len(ranks), replicates, kept), side, replicates, 0)


def _code_counts(
    flag: NDArray[np.float32], counted: NDArray[np.bool_], codes: int
) -> NDArray[np.int64]:
    """[replicates, cells, codes + 1]; the last counts what is not a code."""
    known = [counted & (flag == code) for code in range(codes)]
    counts = [k.sum(axis=-1) for k in known]
    counts.append(counted.sum(axis=-1) - sum(counts))
    return np.stack(counts, axis=-1)
