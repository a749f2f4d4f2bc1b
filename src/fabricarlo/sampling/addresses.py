"""Keys of the streams: a key is a digest of the address, so that no two streams are related."""

from collections.abc import Sequence
from functools import cache
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

RULE = 1
"""Version of the rule that turns addresses into uniforms (not of the package)."""


@cache
def stream_key(seed: int, stream: str, replicate: int, high: int) -> tuple[int, int]:
    """The two 32-bit key words of one stream, replicate and upper half of the sample number.

    They are the first 8 bytes, big-endian, of the SHA-256 (FIPS 180-4) of
    ``1/seed/stream/replicate/high``, where 1 is `RULE` and high = n >> 32. The text is read back
    uniquely even if the stream's name has a slash: the other four parts are integers.
    """
    digest = sha256(f"{RULE}/{seed}/{stream}/{replicate}/{high}".encode()).digest()
    return int.from_bytes(digest[:4], "big"), int.from_bytes(digest[4:8], "big")


def stream_keys(
    seed: int, streams: Sequence[str], replicates: Sequence[int] | int, high: int
) -> NDArray[np.uint32]:
    """Keys of several streams and replicates, uint32 [stream, replicate, 2].

    `replicates` are the replicate numbers, or how many there are, counted from 0.
    """
    numbers = range(replicates) if isinstance(replicates, int) else replicates
    return _table(seed, tuple(streams), tuple(numbers), high)


@cache
def _table(
    seed: int, streams: tuple[str, ...], replicates: tuple[int, ...], high: int
) -> NDArray[np.uint32]:
    keys = [[stream_key(seed, stream, r, high) for r in replicates] for stream in streams]
    table = np.array(keys, dtype=np.uint32).reshape(len(streams), len(replicates), 2)
    table.flags.writeable = False
    return table
