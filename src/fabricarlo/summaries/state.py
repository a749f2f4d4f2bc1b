"""Part: the summary of some whole blocks of one cell; parts merge, and travel as bytes."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fabricarlo.summaries.bins import key_of, value_of
from fabricarlo.summaries.extremes import EMPTY, column_of_rank, key_of_rank
from fabricarlo.summaries.histogram import Histogram, merge_histograms
from fabricarlo.summaries.moments import Moments, Node, block_ranges, joined


@dataclasses.dataclass(frozen=True)
class Extremes:
    """The largest or smallest values of every row, best first, ties by the lower sample index.

    `kept` is 64, or all samples of a replicate in a cell so small that it shares a tile.
    """

    values: NDArray[np.float32]  # [outputs, replicates, kept]; NaN where there are fewer
    samples: NDArray[np.int64]  # index of the sample in its cell; -1 where there are fewer


@dataclasses.dataclass(frozen=True)
class Part:
    """What is kept of the samples of some whole blocks of one cell.

    Bitwise the same for the same blocks, however they were split, ordered and merged.
    """

    outputs: tuple[str, ...]  # without the flags
    replicates: int
    histogram: Histogram  # row = output * replicates + replicate
    top: Extremes
    bottom: Extremes
    count: NDArray[np.int64]  # [outputs, replicates], finite values
    nonfinite: NDArray[np.int64]  # [outputs, replicates]
    nodes: Mapping[Node, Moments]  # float64[3, outputs, replicates] of maximal aligned blocks
    flags: Mapping[str, NDArray[np.int64]]  # [replicates, codes + 1]; the last: not a code

    @property
    def samples(self) -> int:
        """The number of samples in the blocks, finite or not."""
        if self.outputs:
            return int((self.count[0] + self.nonfinite[0]).sum())
        return int(sum(next(iter(self.flags.values())).sum(axis=0))) if self.flags else 0

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """The numbers of the covered blocks, as disjoint half-open ranges in order."""
        return block_ranges(self.nodes)


def decoded(ranks: NDArray[np.int64], side: int, replicates: int, first_column: int) -> Extremes:
    """Extremes of ranks [outputs, replicates, kept]; side is 1 for the bottom, -1 for the top."""
    empty = ranks == EMPTY
    values = value_of(np.where(empty, 0, side * key_of_rank(ranks)).astype(np.int32))
    column = column_of_rank(ranks, first_column)
    samples = column * replicates + np.arange(replicates)[:, None]
    return Extremes(
        np.where(empty, np.float32(np.nan), values), np.where(empty, np.int64(-1), samples)
    )


def merge(parts: Sequence[Part]) -> Part:
    """The summary of the blocks of all parts, which belong to one cell.

    Raises ValueError when the parts summarise different things or share a block.
    """
    if not parts:
        raise ValueError("no parts to merge: give at least one.")
    for part in parts[1:]:
        _refuse_strangers(parts[0], part)
    if len(parts) == 1:
        return parts[0]
    nodes = joined(part.nodes for part in parts)
    return Part(
        outputs=parts[0].outputs,
        replicates=parts[0].replicates,
        histogram=merge_histograms(part.histogram for part in parts),
        top=_merge_extremes([part.top for part in parts], -1),
        bottom=_merge_extremes([part.bottom for part in parts], 1),
        count=sum((part.count for part in parts[1:]), parts[0].count),
        nonfinite=sum((part.nonfinite for part in parts[1:]), parts[0].nonfinite),
        nodes=nodes,
        flags={
            name: sum((part.flags[name] for part in parts[1:]), counts)
            for name, counts in parts[0].flags.items()
        },
    )


def _refuse_strangers(first: Part, other: Part) -> None:
    for what, one, two in (
        ("outputs", first.outputs, other.outputs),
        ("replicates", first.replicates, other.replicates),
        ("flags", _codes(first), _codes(other)),
    ):
        if one != two:
            raise ValueError(
                f"parts of different {what} do not merge: {one} and {two}; "
                "merge parts of one cell of one plan."
            )


def _codes(part: Part) -> dict[str, int]:
    return {name: counts.shape[1] - 1 for name, counts in part.flags.items()}


def _merge_extremes(all_of: Sequence[Extremes], side: int) -> Extremes:
    kept = all_of[0].values.shape[-1]
    values = np.concatenate([e.values for e in all_of], axis=-1)
    samples = np.concatenate([e.samples for e in all_of], axis=-1)
    keys = np.where(samples < 0, EMPTY, side * key_of(values).astype(np.int64))
    order = np.lexsort((samples, keys), axis=-1)[..., :kept]
    return Extremes(
        np.take_along_axis(values, order, axis=-1), np.take_along_axis(samples, order, axis=-1)
    )
