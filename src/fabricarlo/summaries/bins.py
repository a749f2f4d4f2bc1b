"""Log-linear bins over all of float32, found by shifting the bit pattern.

A bin is one of 2^11 equal slices of an octave, so its relative half width is at most 2^-12. Bins
are signed and ordered as the values are: 0 is zero alone (of either sign), +1 and -1 hold the
subnormals (magnitude below 2^-126), +-(2 + 2048 e + slice) the normal numbers of octave
2^(e - 126). The range ends with float32 itself (bin 520,193 is the last finite one), so nothing
finite lies below or above it; infinities and NaN have no bin.

Source: the HdrHistogram idea (a linear slice of a power of two) on IEEE 754 patterns, without its
configurable range.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

MANTISSA_BITS = 11
LAST_BIN = 254 * 2**MANTISSA_BITS + 1
NOT_FINITE = 0x7F800000  # the magnitude key of infinity; NaN lies above it
FIRST_NORMAL = 0x00800000  # the magnitude key of 2^-126

_SHIFT = 23 - MANTISSA_BITS
_FIRST_NORMAL_BIN = 2
_OFFSET = (FIRST_NORMAL >> _SHIFT) - _FIRST_NORMAL_BIN

# int32 of NumPy or of JAX: both run the same operators below, hence the same bits
_Integers = Any


def key_of_bits(bits: _Integers) -> _Integers:
    """The int32 that orders as the float32 with these bits does; both zeros give 0.

    Antisymmetric, key(-x) = -key(x); |key| >= NOT_FINITE means infinite or NaN.
    """
    sign = bits >> 31
    return ((bits & 0x7FFFFFFF) ^ sign) - sign


def bin_of_key(key: _Integers) -> _Integers:
    """The bin (int32) of a finite value, by its key."""
    sign = key >> 31
    magnitude = (key ^ sign) - sign
    normal = -(magnitude >= FIRST_NORMAL).astype(np.int32)
    subnormal = (magnitude > 0).astype(np.int32)
    unsigned = (normal & ((magnitude >> _SHIFT) - _OFFSET)) | (~normal & subnormal)
    return (unsigned ^ sign) - sign


def key_of(values: NDArray[np.float32]) -> NDArray[np.int32]:
    """The ordered key of every float32."""
    return key_of_bits(np.ascontiguousarray(values, np.float32).view(np.int32))


def value_of(keys: NDArray[np.int32]) -> NDArray[np.float32]:
    """The float32 of every key; zero comes back as +0."""
    keys = np.ascontiguousarray(keys, np.int32)
    bits = np.abs(keys).view(np.uint32) | ((keys < 0).astype(np.uint32) << np.uint32(31))
    return bits.view(np.float32)


def bin_of(values: NDArray[np.float32]) -> NDArray[np.int32]:
    """The bin of every finite float32; meaningless where a value is not finite."""
    return bin_of_key(key_of(values))


def _magnitude(edge: NDArray[np.int64]) -> NDArray[np.float64]:
    """The lower end of an unsigned bin >= 2 as a float64: octave times slice, exactly."""
    octave, part = np.divmod(edge - _FIRST_NORMAL_BIN, 2**MANTISSA_BITS)
    return np.ldexp(1.0 + part / 2**MANTISSA_BITS, octave - 126)


def edges(bins: NDArray[np.integer]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower and upper end of every bin, exact in float64; the bin of zero is [0, 0].

    A positive bin holds low <= x < high, a negative one low < x <= high.
    """
    bins = np.asarray(bins, np.int64)
    unsigned = np.abs(bins)
    inner = np.where(unsigned >= _FIRST_NORMAL_BIN, _magnitude(unsigned), 0.0)
    outer = np.where(unsigned >= 1, _magnitude(np.maximum(unsigned, 1) + 1), 0.0)
    return np.where(bins < 0, -outer, inner), np.where(bins < 0, -inner, outer)
