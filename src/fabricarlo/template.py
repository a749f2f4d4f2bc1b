"""The arrays of a store: names, dimensions, chunks and attributes, all from the declarations."""

import dataclasses
from typing import Any

import numpy as np
import zarr
from zarr.codecs import BloscCodec

from fabric_kernels.quantity import Quantity
from fabricarlo.derived import WEIGHT
from fabricarlo.plan import Plan

MISSING = -1
"""Fill of counts: not computed, which is neither zero nor undefined."""
CONVENTIONS = "CF-1.11"
TEXT = np.dtypes.StringDType()


@dataclasses.dataclass(frozen=True)
class SampleArray:
    """One variable of the group `samples`, and where blocks lie in it."""

    name: str
    axes: tuple[int, ...]  # positions of its axes among the sweep's
    is_flag: bool
    source: str  # the quantity

    @property
    def dtype(self) -> str:
        """float32; int8 for a flag."""
        return "int8" if self.is_flag else "float32"


def sample_arrays(plan: Plan) -> tuple[SampleArray, ...]:
    """Outputs (and weights) over every axis, and draws over the axes along which they differ."""
    everywhere = tuple(range(len(plan.axes)))
    position = {a.name: k for k, a in enumerate(plan.axes)}
    outputs = [
        SampleArray(n, everywhere, is_flag=bool(plan.known[n].flags), source=n)
        for n in plan.outputs
    ]
    if plan.sweep.tails:
        outputs.append(SampleArray(WEIGHT, everywhere, is_flag=False, source=WEIGHT))
    draws = [
        SampleArray(
            # an axis of that name holds what lies underneath the draw
            f"{n}_drawn" if n in position else n,
            tuple(position[a] for a in plan.axes_of(n)),
            is_flag=False,
            source=n,
        )
        for n in plan.random
        if n not in plan.sweep.outputs
    ]
    return (*outputs, *draws)


def attributes(declared: Quantity, **more: Any) -> dict[str, Any]:
    """CF attributes of a quantity."""
    flags = {}
    if declared.flags:
        flags = {
            "flag_values": list(range(len(declared.flags))),
            "flag_meanings": " ".join(declared.flags),
        }
    return {"units": declared.unit, "long_name": declared.meaning} | flags | more


def compressor(codec: str, itemsize: int) -> Any:
    """The codec of kept samples: none, or blosc with zstd, the best of those measured."""
    if codec == "none":
        return None
    return BloscCodec(cname="zstd", clevel=1, shuffle="shuffle", typesize=itemsize)


def write_axes(group: zarr.Group, plan: Plan) -> None:
    """Coordinates of the sweep's axes."""
    for axis in plan.axes:
        if axis.name in group:
            continue
        numeric = axis.unit is not None
        labels = np.array(axis.labels, np.float64 if numeric else TEXT)
        if numeric and axis.name in plan.known:
            attrs = attributes(plan.known[axis.name])
        else:
            attrs = {"long_name": f"axis {axis.name} of the sweep", "units": "1"}
        write(group, axis.name, labels, (axis.name,), attrs)


def write(
    group: zarr.Group, name: str, values: np.ndarray, dims: tuple[str, ...], attrs: dict[str, Any]
) -> None:
    """A whole array at once; compressed, since these are small or sparse."""
    values = np.asarray(values)
    if values.dtype == np.dtype(object) or values.dtype.kind == "U":
        values = values.astype(TEXT)
    array = create(group, name, values.shape, values.dtype, dims, attrs)
    array[...] = values


def fill_of(dtype: np.dtype[Any]) -> Any:
    """What stands where nothing is written: NaN, empty text, or -1 for counts."""
    return np.nan if dtype.kind == "f" else ("" if dtype.kind == "T" else MISSING)


def create(
    group: zarr.Group,
    name: str,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    dims: tuple[str, ...],
    attrs: dict[str, Any],
    chunks: tuple[int, ...] | None = None,
) -> zarr.Array:
    """An array of results without values yet; one of that name is replaced."""
    counted = {"_FillValue": MISSING} if dtype == np.int64 else {}
    return group.create_array(
        name,
        shape=shape,
        chunks=tuple(max(1, n) for n in (chunks or shape)),
        dtype=dtype,
        dimension_names=dims,
        attributes=attrs | counted,
        fill_value=fill_of(dtype),
        overwrite=True,
    )


def create_samples(root: zarr.Group, plan: Plan) -> None:
    """The empty group `samples`: chunk = block, fill = NaN, no coordinate along `sample`."""
    group = root.require_group("samples")
    write_axes(group, plan)
    layout, keep = plan.layout, plan.sweep.keep
    kept = -(-layout.samples // keep.every)
    chunk = -(-layout.samples_per_block // keep.every)
    for array in sample_arrays(plan):
        if array.name in group:
            continue
        more: dict[str, Any] = {}
        if keep.mantissa_bits is not None and not array.is_flag:
            more = {"mantissa_bits": keep.mantissa_bits}
        if keep.every > 1:
            more |= {"every": keep.every}
        group.create_array(
            array.name,
            shape=(*(layout.shape[k] for k in array.axes), kept),
            chunks=(*(layout.extents[k] for k in array.axes), chunk),
            dtype=array.dtype,
            dimension_names=(*(plan.axes[k].name for k in array.axes), "sample"),
            attributes=attributes(plan.known[array.source], **more),
            fill_value=MISSING if array.is_flag else np.nan,
            compressors=compressor(keep.codec, np.dtype(array.dtype).itemsize),
        )
