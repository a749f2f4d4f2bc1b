"""A part as bytes: a JSON header, then compressed arrays; no pickle.

Occupied bins mostly follow each other and most counts are small, so gaps and counts are stored as
16 bits with an escape. Little-endian on every machine; version 1 of the layout.
"""

import json
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabricarlo.summaries.histogram import histogram_of
from fabricarlo.summaries.state import Extremes, Part

_MAGIC = b"fabricarlo part 1\n"
_ESCAPE = 0xFFFF

_Arrays = dict[str, NDArray[Any]]


def to_bytes(part: Part) -> bytes:
    """The part, compact; the same part always gives the same bytes."""
    keys = part.histogram.keys()
    arrays: _Arrays = {
        **_narrow("gaps", np.diff(keys, prepend=np.int64(0))),
        **_narrow("counts", part.histogram.counts),
        "count": part.count,
        "nonfinite": part.nonfinite,
        "moments": np.array(list(part.nodes.values()), np.float64),
    }
    for side, extremes in (("top", part.top), ("bottom", part.bottom)):
        arrays[f"{side} values"] = extremes.values
        arrays[f"{side} samples"] = extremes.samples
    arrays |= {f"flag {name}": counts for name, counts in part.flags.items()}
    body = [a.astype(a.dtype.newbyteorder("<"), copy=False).tobytes() for a in arrays.values()]
    header = {
        "outputs": part.outputs,
        "replicates": part.replicates,
        "nodes": list(part.nodes),
        "flags": list(part.flags),
        "arrays": [(n, a.dtype.newbyteorder("<").str, a.shape) for n, a in arrays.items()],
    }
    head = json.dumps(header, separators=(",", ":")).encode()
    return b"".join(
        [_MAGIC, len(head).to_bytes(8, "little"), head, zlib.compress(b"".join(body), 1)]
    )


def from_bytes(data: bytes) -> Part:
    """The part that gave these bytes. Raises ValueError for anything else, a cut one included."""
    try:
        header, arrays = _read(bytes(data))
        gaps, counts = _wide("gaps", arrays), _wide("counts", arrays)
        rows = len(header["outputs"]) * header["replicates"]
        nodes = [(level, k) for level, k in header["nodes"]]
        return Part(
            outputs=tuple(header["outputs"]),
            replicates=header["replicates"],
            histogram=histogram_of(np.cumsum(gaps), counts, rows),
            top=Extremes(arrays["top values"], arrays["top samples"]),
            bottom=Extremes(arrays["bottom values"], arrays["bottom samples"]),
            count=arrays["count"],
            nonfinite=arrays["nonfinite"],
            nodes=dict(zip(nodes, arrays["moments"], strict=True)),
            flags={name: arrays[f"flag {name}"] for name in header["flags"]},
        )
    except (KeyError, TypeError, ValueError, zlib.error) as error:
        raise ValueError(
            f"{len(data):,} bytes are not a whole summary part ({error}): "
            "delete that checkpoint and run its blocks again."
        ) from None


def _read(data: bytes) -> tuple[dict[str, Any], _Arrays]:
    if not data.startswith(_MAGIC):
        raise ValueError(f"they begin with {data[:18]!r}, not with {_MAGIC!r}")
    start = len(_MAGIC) + 8
    length = int.from_bytes(data[start - 8 : start], "little")
    header = json.loads(data[start : start + length])
    body, place, arrays = zlib.decompress(data[start + length :]), 0, {}
    for name, kind, shape in header["arrays"]:
        dtype, size = np.dtype(kind), int(np.prod(shape, dtype=np.int64))
        array = np.frombuffer(body, dtype, size, place).reshape(shape)
        arrays[name] = array.astype(dtype.newbyteorder("="))
        place += size * dtype.itemsize
    return header, arrays


def _narrow(name: str, values: NDArray[np.int64]) -> _Arrays:
    short = np.minimum(values, _ESCAPE).astype(np.uint16)
    return {name: short, f"{name} escaped": values[values >= _ESCAPE]}


def _wide(name: str, arrays: _Arrays) -> NDArray[np.int64]:
    values = arrays[name].astype(np.int64)
    values[values == _ESCAPE] = arrays[f"{name} escaped"]
    return values
