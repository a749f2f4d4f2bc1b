"""The summary program: one compiled function a tile shape, apart from the model's program.

Fused into the model's program it would make XLA compute the random numbers once more for each
reduction. It holds no number of the sweep: the place of a histogram's window and the number of
valid columns are inputs.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from fabricarlo.summaries.bins import FIRST_NORMAL, NOT_FINITE, bin_of_key, key_of_bits
from fabricarlo.summaries.extremes import KEPT

Device = Any  # jax.Device is a variable to type checkers

WINDOW = 2**16  # bins of a device histogram: 32 octaves; the host counts what lies outside
ZERO_SLOT = WINDOW  # zero is far from every normal number, so it has its own place
LOST_SLOT = WINDOW + 1
SLOTS = WINDOW + 2


class Accumulators(NamedTuple):
    """Counts that stay on the device over a block; donated to the program and returned."""

    histograms: tuple[Array, ...]  # an output: int32[replicates * SLOTS]
    flags: tuple[Array, ...]  # a flag: int32[replicates * (codes + 1)], the last for no code


class TileStatistics(NamedTuple):
    """What the host needs of one tile, small. Lanes: column j belongs to lane j mod lanes."""

    finite: Array  # int32[outputs, replicates]
    outside: Array  # int32[outputs, replicates]: finite, not zero, not in the window
    lowest: Array  # int32[outputs, replicates, lanes]: smallest key, NOT_FINITE where none
    highest: Array  # int32[outputs, replicates, lanes]: largest key, -NOT_FINITE where none
    mean: Array  # float64[outputs, replicates]
    centred: Array  # float64[outputs, replicates]
    best: tuple[Array, ...]  # with device selection: top and bottom keys and columns


class TileShape(NamedTuple):
    """The static part of the program."""

    replicates: int
    columns: int
    codes: tuple[int, ...]  # number of codes of each flag
    select_on_device: bool

    @property
    def lanes(self) -> int:
        """The width of the vector accumulators."""
        return int(np.gcd(self.columns, 256))


class Programs:
    """The compiled programs of one tile shape, and accumulators to use again."""

    def __init__(self, shape: TileShape, outputs: int) -> None:
        self.shape = shape
        self._outputs = outputs
        self._spare: dict[Device, list[Accumulators]] = {}

    def accumulators(self, device: Device) -> Accumulators:
        """Zeroed accumulators on a device."""
        if self._spare.get(device):
            return self._spare[device].pop()

        def zeros(width: int) -> Array:
            return jax.device_put(np.zeros(self.shape.replicates * width, np.int32), device)

        histograms = tuple(zeros(SLOTS) for _ in range(self._outputs))
        return Accumulators(histograms, tuple(zeros(codes + 1) for codes in self.shape.codes))

    def give_back(self, device: Device, accumulators: Accumulators) -> None:
        """Zero accumulators that nobody reads any more, for the next block."""
        self._spare.setdefault(device, []).append(_cleared(accumulators))

    def summarise(
        self,
        accumulators: Accumulators,
        values: tuple[Array, ...],
        flags: tuple[Array, ...],
        valid: NDArray[np.int32],
        bases: NDArray[np.int32],
    ) -> tuple[Accumulators, TileStatistics]:
        """Add one tile to the accumulators, which are donated; returns before it is done.

        values, flags: arrays [replicates, columns], or that broadcast to it; valid: [replicates],
        how many leading columns count; bases: [outputs], the first bin of each window. Sums run in
        float64 whatever the global setting is: float32 sums would bias a mean by more than the
        Sobol' points leave.
        """
        with jax.enable_x64(True):  # noqa: FBT003 - JAX takes it so
            return _summarise(self.shape, accumulators, values, flags, valid, bases)


@partial(jax.jit, donate_argnums=0)
def _cleared(accumulators: Accumulators) -> Accumulators:
    return jax.tree.map(lambda counts: counts.at[:].set(0), accumulators)


# one cache for all variants: they differ in the model, not in how it is summarised
@partial(jax.jit, static_argnums=0, donate_argnums=1)
def _summarise(
    shape: TileShape,
    accumulators: Accumulators,
    values: tuple[Array, ...],
    flags: tuple[Array, ...],
    valid: Array,
    bases: Array,
) -> tuple[Accumulators, TileStatistics]:
    size = (shape.replicates, shape.columns)
    column = jax.lax.broadcasted_iota(jnp.int32, size, 1)
    counted = column < valid[:, None]
    histograms, statistics = [], []
    for number, (counts, value) in enumerate(zip(accumulators.histograms, values, strict=True)):
        value = jnp.broadcast_to(value.astype(jnp.float32), size)
        key = key_of_bits(jax.lax.bitcast_convert_type(value, jnp.int32))
        finite = counted & (jnp.abs(key) < NOT_FINITE)
        slot, outside = _slot(bin_of_key(key), finite, bases[number])
        histograms.append(_scattered(counts, slot, SLOTS))
        statistics.append(_statistics(shape, value, key, finite, outside))
    codes = tuple(
        _scattered(counts, _code(jnp.broadcast_to(flag, size), counted, count), count + 1)
        for counts, flag, count in zip(accumulators.flags, flags, shape.codes, strict=True)
    )
    return Accumulators(tuple(histograms), codes), _stacked(shape, statistics)


def _stacked(shape: TileShape, statistics: list[TileStatistics]) -> TileStatistics:
    if statistics:
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *statistics)
    rows, lanes = (0, shape.replicates), (0, shape.replicates, shape.lanes)
    small, wide, exact = jnp.zeros(rows, jnp.int32), jnp.zeros(lanes, jnp.int32), jnp.zeros(rows)
    return TileStatistics(small, small, wide, wide, exact, exact, ())


def _slot(bins: Array, finite: Array, base: Array) -> tuple[Array, Array]:
    place = bins - base
    inside = finite & (place >= 0) & (place < WINDOW)
    zero = finite & (bins == 0)
    slot = jnp.where(zero, ZERO_SLOT, jnp.where(inside, place, LOST_SLOT))
    return slot, finite & ~inside & ~zero


def _code(flag: Array, counted: Array, codes: int) -> Array:
    """The code of a flag; `codes` for what is none, and -1 past the end for a padded lane."""
    code = flag.astype(jnp.int32)
    known = (code >= 0) & (code < codes) & (code.astype(flag.dtype) == flag)
    return jnp.where(counted, jnp.where(known, code, codes), -1)


def _scattered(counts: Array, slot: Array, width: int) -> Array:
    """Counts with one added at slot[r, c] of each row r; a negative slot adds nothing."""
    row = jax.lax.broadcasted_iota(jnp.int32, slot.shape, 0) * width
    place = jnp.where(slot < 0, counts.shape[0], row + slot)
    return counts.at[place.reshape(-1)].add(1, mode="drop")


def _statistics(
    shape: TileShape, value: Array, key: Array, finite: Array, outside: Array
) -> TileStatistics:
    def lanes(array: Array) -> Array:
        return array.reshape(shape.replicates, -1, shape.lanes)

    def summed(array: Array) -> Array:
        # first over rows of lanes, which vectorises, then over the lanes, which is short
        return jnp.sum(jnp.sum(lanes(array), axis=1, dtype=array.dtype), axis=1, dtype=array.dtype)

    count = summed(finite.astype(jnp.int32))
    divisor = jnp.maximum(count, 1).astype(jnp.float64)
    # some devices flush subnormals to zero when they convert: so all do
    normal = finite & (jnp.abs(key) >= FIRST_NORMAL)
    wide = jnp.where(normal, value.astype(jnp.float64), 0.0)
    # one pass about a value of the row itself, in float64: nothing cancels
    pivot = wide[:, :1]
    deviation = jnp.where(finite, wide - pivot, 0.0)
    left_over = summed(deviation)
    mean = pivot[:, 0]
    centred = summed(deviation * deviation) - left_over * left_over / divisor
    low, high = jnp.where(finite, key, NOT_FINITE), jnp.where(finite, key, -NOT_FINITE)
    best: tuple[Array, ...] = ()
    if shape.select_on_device:
        kept = min(KEPT, shape.columns)
        best = (*jax.lax.top_k(high, kept), *jax.lax.top_k(-low, kept))
    return TileStatistics(
        finite=count,
        outside=summed(outside.astype(jnp.int32)),
        lowest=jnp.min(lanes(low), axis=1),
        highest=jnp.max(lanes(high), axis=1),
        mean=mean + left_over / divisor,
        centred=jnp.maximum(centred, 0.0),
        best=best,
    )
