"""Count, mean and centred second moment, merged so that the bits do not depend on the order.

Moments are float64[3, ...]: count, mean, sum of squared deviations from the mean. Floating point
addition is not associative, so blocks are merged along one fixed binary tree over their numbers:
whoever computed them, in whatever order, adds the same pairs.
"""

from collections.abc import Iterable, Mapping
from functools import reduce

import numpy as np
from numpy.typing import NDArray

Moments = NDArray[np.float64]
Node = tuple[int, int]  # (level, k): the blocks k 2^level .. (k + 1) 2^level - 1


def merge_moments(left: Moments, right: Moments) -> Moments:
    """Moments of the union of two samples; either may be empty.

    Source: T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating formulae and a pairwise algorithm
    for computing sample variances", Stanford STAN-CS-79-773 (1979), equation 2.1.
    """
    count = left[0] + right[0]
    share = right[0] / np.maximum(count, 1.0)
    delta = right[1] - left[1]
    centred = left[2] + right[2] + delta * delta * (left[0] * share)
    return np.stack([count, left[1] + delta * share, centred])


def moments_of(values: NDArray[np.float32], finite: NDArray[np.bool_]) -> Moments:
    """Moments along the last axis, masked, by two passes in float64; subnormals count as zero."""
    count = finite.sum(axis=-1).astype(np.float64)
    divisor = np.maximum(count, 1.0)
    normal = finite & (np.abs(values) >= np.finfo(np.float32).tiny)
    wide = np.where(normal, values, np.float32(0)).astype(np.float64)
    mean = wide.sum(axis=-1) / divisor
    deviation = np.where(finite, wide - mean[..., None], 0.0)
    # the second pass also sees what rounding left in the mean, and takes it out of both
    left_over = deviation.sum(axis=-1)
    centred = (deviation * deviation).sum(axis=-1) - left_over * left_over / divisor
    return np.stack([count, mean + left_over / divisor, np.maximum(centred, 0.0)])


def joined(nodes: Iterable[Mapping[Node, Moments]]) -> dict[Node, Moments]:
    """The maximal nodes that these sets of nodes cover together.

    Raises ValueError when a block is in two of them: it would be counted twice.
    """
    found: dict[Node, Moments] = {}
    for some in nodes:
        for node, moments in some.items():
            if node in found:
                raise ValueError(_twice(node))
            found[node] = moments
    _refuse_overlaps(found)
    level = 0
    while any(each >= level for each, _ in found):  # pairs of one level make nodes of the next
        for k in sorted(k for each, k in found if each == level and k % 2 == 0):
            if (level, k + 1) in found:
                pair = found.pop((level, k)), found.pop((level, k + 1))
                found[level + 1, k // 2] = merge_moments(*pair)
        level += 1
    return dict(sorted(found.items(), key=lambda item: first_block(item[0])))


def first_block(node: Node) -> int:
    """The first block of a node."""
    return node[1] << node[0]


def block_ranges(nodes: Iterable[Node]) -> list[tuple[int, int]]:
    """The blocks that the nodes cover, as disjoint half-open ranges in order."""
    ranges: list[tuple[int, int]] = []
    for level, k in sorted(nodes, key=first_block):
        start, stop = k << level, (k + 1) << level
        if ranges and ranges[-1][1] == start:
            ranges[-1] = ranges[-1][0], stop
        else:
            ranges.append((start, stop))
    return ranges


def total(nodes: Mapping[Node, Moments]) -> Moments:
    """The moments of all nodes, merged from the first block to the last."""
    return reduce(merge_moments, (nodes[n] for n in sorted(nodes, key=first_block)))


def _refuse_overlaps(nodes: Mapping[Node, Moments]) -> None:
    reached = 0
    for node in sorted(nodes, key=first_block):
        if first_block(node) < reached:
            raise ValueError(_twice(node))
        reached = (node[1] + 1) << node[0]


def _twice(node: Node) -> str:
    start, stop = block_ranges([node])[0]
    return (
        f"blocks {start} to {stop - 1} are in two of the parts to merge and would be counted "
        "twice: merge each block once."
    )
