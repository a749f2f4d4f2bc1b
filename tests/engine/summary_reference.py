"""What a summary should say, by plain Python and exact fractions: slow, and nothing of ours."""

import math
from collections import Counter
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from fabricarlo.summaries.state import Part
from fabricarlo.summaries.summariser import Columns, Summariser
from fabricarlo.summaries.wire import to_bytes

KEPT = 64
Table = dict[str, NDArray[np.float32]]  # name -> [replicates, columns of the whole cell]


def bin_by_hand(value: float) -> int:
    """The bin of a finite float32, from its fraction and exponent."""
    if value == 0:
        return 0
    fraction, exponent = math.frexp(abs(value))  # value = fraction 2^exponent, 1/2 <= fraction < 1
    slices = 2**11
    bin_ = (
        1 if exponent < -125 else 2 + slices * (exponent + 125) + int((2 * fraction - 1) * slices)
    )
    return bin_ if value > 0 else -bin_


def row_of(table: Table, name: str, replicate: int, samples: int) -> list[tuple[float, int]]:
    """(value, sample) of the finite samples of one row."""
    row = table[name][replicate]
    pairs = ((float(v), n * len(table[name]) + replicate) for n, v in enumerate(row))
    return [(v, i) for v, i in pairs if i < samples and math.isfinite(v)]


def assert_summarises(part: Part, table: Table, samples: int) -> None:
    """Every count, bin, extreme and moment of a complete part is that of the table."""
    replicates = part.replicates
    for output, name in enumerate(part.outputs):
        for replicate in range(replicates):
            rows = row_of(table, name, replicate, samples)
            here = (output, replicate)
            bins, counts = part.histogram.row(output * replicates + replicate)
            expected = sorted(Counter(bin_by_hand(v) for v, _ in rows).items())
            assert list(zip(bins.tolist(), counts.tolist(), strict=True)) == expected, here
            assert part.count[here] == len(rows)
            assert part.nonfinite[here] == len(range(replicate, samples, replicates)) - len(rows)
            _assert_extremes(part, here, rows)
            _assert_moments(part, here, [v for v, _ in rows])
    assert part.samples == samples


def _assert_extremes(part: Part, here: tuple[int, int], rows: list[tuple[float, int]]) -> None:
    for extremes, sign in ((part.top, -1), (part.bottom, 1)):
        best = sorted(rows, key=lambda pair: (sign * pair[0], pair[1]))[:KEPT]
        filled = extremes.samples[here] >= 0
        found = zip(extremes.values[here][filled], extremes.samples[here][filled], strict=True)
        assert [(float(v), int(i)) for v, i in found] == best, here
        assert np.all(np.isnan(extremes.values[here][~filled]))


def _assert_moments(part: Part, here: tuple[int, int], values: list[float]) -> None:
    """To 1e-13 of the root mean square, which is what float64 sums allow for these lengths."""
    assert len(part.nodes) == 1
    count, mean, centred = next(iter(part.nodes.values()))[(slice(None), *here)]
    assert count == len(values)
    if not values:
        assert (mean, centred) == (0, 0)
        return
    exact = [Fraction(v if abs(v) >= 2.0**-126 else 0) for v in values]  # subnormals count as 0
    middle = sum(exact) / len(exact)
    squares = sum((v - middle) ** 2 for v in exact)
    size = math.sqrt(max(float(sum(v * v for v in exact) / len(exact)), 0.0))
    assert abs(mean - float(middle)) <= 1e-13 * size
    assert abs(centred - float(squares)) <= 1e-11 * float(squares) + 1e-25 * size * size


def large_blocks(
    summariser: Summariser,
    table: Table,
    blocks: dict[int, list[int]],
    width: int,
    *,
    devices: tuple[object, ...] = (),
) -> list[Part]:
    """The parts of cell 7, whose tiles come in this order: {block: [number of tile, ...]}."""
    import jax

    parts = []
    for number, tiles in blocks.items():
        block = summariser.block(number)
        for turn, tile in enumerate(tiles):
            columns = np.arange(tile * width, (tile + 1) * width)
            length = next(iter(table.values())).shape[1]
            cell = np.where(columns < length, 7, -1).astype(np.int32)
            arrays = {
                n: padded(v[:, columns[0] : columns[0] + width], width) for n, v in table.items()
            }
            outputs = {n: jnp.asarray(a) for n, a in arrays.items()}
            if devices:
                outputs = jax.device_put(outputs, devices[turn % len(devices)])
            block.add(outputs, Columns(cell, columns))
        parts.append(block.finish()[7])
    return parts


def padded(values: NDArray[np.float32], width: int) -> NDArray[np.float32]:
    """With rubbish in the columns that are padding."""
    return np.pad(values, [(0, 0), (0, width - values.shape[1])], constant_values=-1e30)


def same_bits(one: Part, other: Part) -> bool:
    """Whether two parts are equal to the last bit."""
    return to_bytes(one) == to_bytes(other)
