"""Constants of NCCL's own cost model.

Source of every number: NVIDIA/nccl v2.30.7 (commit 5067397c), `src/graph/tuning.cc` [M]. Times in
s, rates in B/s. NCCL gives no spread, nor the machines that they come from.
"""

from typing import NamedTuple

_MICROSECOND = 1e-6
_GIGA = 1e9

Row = tuple[float, float, float]
"""Values for one, two, and more than two nodes; or for the protocols LL, LL128 and Simple."""


def _us(*values: float) -> Row:
    first, second, third = (value * _MICROSECOND for value in values)
    return first, second, third


def _gb(*values: float) -> Row:
    first, second, third = (value * _GIGA for value in values)
    return first, second, third


PROTOCOLS = ("ll", "ll128", "simple")
"""In the order of every row of latencies, and in which NCCL tries them."""


class Latency(NamedTuple):
    """Latencies of one algorithm for LL, LL128 and Simple; 0 where there is no such protocol."""

    base: Row
    nvlink: Row  # one hop over NVLink
    pcie: Row
    network: Row


LATENCIES = {
    "double_binary_tree": Latency(
        _us(6.8, 14.0, 8.4), _us(0.6, 1.25, 4.0), _us(1.0, 1.9, 4.0), _us(5.0, 8.5, 14.0)
    ),
    "ring": Latency(
        _us(6.6, 14.0, 8.4), _us(0.6, 1.9, 3.4), _us(1.0, 2.5, 5.7), _us(2.7, 4.0, 14.0)
    ),
    "collnet_direct": Latency(_us(0, 0, 0), _us(0, 0, 3.7), _us(0, 0, 3.7), _us(0, 0, 31)),
    "collnet_chain": Latency(_us(0, 0, 0), _us(0, 0, 2.8), _us(0, 0, 2.8), _us(0, 0, 30)),
    "nvls": Latency(_us(0, 0, 0), _us(0, 0, 25), _us(0, 0, 25), _us(0, 0, 18)),
    "nvls_tree": Latency(_us(0, 0, 0), _us(0, 0, 25), _us(0, 0, 25), _us(0, 0, 20.9)),
    "pat": Latency(_us(8.0, 8.0, 8.0), _us(4, 4, 4), _us(4, 4, 4), _us(0, 0, 14)),
}
"""By algorithm, in the order in which NCCL tries them."""

DIRECT_ARITY_LATENCY = 0.4 * _MICROSECOND
"""CollNet direct: serialisation for every further GPU of a node."""

PAT_RANK_LATENCY = 2.8 * _MICROSECOND
"""PAT: for every rank."""

PAT_NETWORK_SHARE = 1 / 3.5
"""PAT: share of a network hop that a level costs."""

LL_LIMIT = (_gb(39, 39, 20.4), _gb(87.7, 22.5, 19.0), _gb(141, 45, 35), _gb(282, 90, 70))
"""Most that LL carries. Rows: the generation on one node, else 0, or 1 with AMD processors."""

RING_LL128_LIMIT = (_gb(20, 20, 20), _gb(20, 20, 20), _gb(36.7, 36.7, 36.7), _gb(40, 40, 40))
"""Most that one channel carries, rows by generation (Volta, Ampere, Hopper, Blackwell)."""

TREE_LL128_LIMIT = (
    _gb(20, 20, 20),
    _gb(20, 20, 20),
    _gb(36.7, 36.7, 29),
    _gb(55.6, 31.67, 20),
)

TREE_LIMIT = (_gb(26.5, 18.5, 10), _gb(24, 23.6, 17.8), _gb(38.7, 41.4, 36), _gb(70, 42.8, 24))

NVLS_TREE_LIMIT = (_gb(26.5, 18.5, 10), _gb(24, 23.6, 17.8), _gb(0, 57.7, 45.5), _gb(0, 96, 80))

NVLS_EFFICIENCY = (0.0, 0.0, 0.85, 0.74)
"""Share of the NVLink rate that reduction in the switch reaches, by generation; 0: has none."""

NVLS_ARITY = 32
"""Most GPUs of a domain, and most channels, with which NVLS gathers or scatters."""

RING_PLATEAU = (1.9, 1.4, 1.4, 1.4)
"""Ring, Simple, all-reduce over several nodes: factor on the latency, by generation."""

PLATEAU_BYTES = 64
"""From so many bytes for each rank and channel on."""

TREE_CORRECTION = {
    "ll": (
        1, 1, 1, 1, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5,
        0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1, 1, 1,
    ),
    "ll128": (
        1, 1, 1, 1, 1, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6,
        0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1, 1,
    ),
    "simple": (
        0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5,
        0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9,
    ),
}  # fmt: skip
"""Factor on a tree's rate for messages of 64 B x 2^k to twice that, k = 0 ... 22; else 1."""

TREE_CORRECTION_START = 64
