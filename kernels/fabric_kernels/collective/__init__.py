"""Collective: how long does the data exchange take when nothing goes wrong?"""

from jax import Array

from fabric_kernels.pattern import Traffic
from fabric_kernels.quantity import quantity, record, structure

ALGORITHMS = (
    "ring",
    "double_binary_tree",
    "recursive_halving_doubling",
    "hierarchical",
    "hierarchical_tree",
    "hierarchical_halving_doubling",
    "nvls",
    "nvls_tree",
    "sharp",
    "nvls_sharp",
    "direct",
    "pairwise",
    "collnet_direct",
    "collnet_chain",
    "pat",
    "seed_document",
)
"""Algorithms by code; a new one is appended, so that stored codes keep their meaning."""

PROTOCOLS = ("simple", "ll", "ll128")
"""Protocols by code: large messages, small ones, and small ones over NVLink in 128 bytes."""


@record
class Collective:
    """How long does the data exchange take when nothing goes wrong?"""

    nvlink_transfer_time: Array = quantity(
        "s", "transfer inside the NVLink domain", bounds=(0, 1e6)
    )
    fabric_transfer_time: Array = quantity(
        "s", "transfer across the fabric without congestion", bounds=(0, 1e6)
    )
    exchange_latency: Array = quantity(
        "s", "sum of the hop floors on the critical path", bounds=(0, 1e4)
    )
    fabric_hops: Array = quantity(
        "1", "hops across the fabric on the critical path", bounds=(0, 1e8)
    )
    collective_algorithm: Array = quantity(
        "1", "algorithm of the data exchange", bounds=(0, len(ALGORITHMS) - 1), flags=ALGORITHMS
    )
    collective_protocol: Array = quantity(
        "1", "protocol of the data exchange", bounds=(0, len(PROTOCOLS) - 1), flags=PROTOCOLS
    )
    traffic: tuple[Traffic, ...] = structure()
