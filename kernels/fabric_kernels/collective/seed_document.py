"""The formula that the project began with, for comparison only: never a default."""

import jax.numpy as jnp
from jax import Array

from fabric_kernels.collective import ALGORITHMS, Collective
from fabric_kernels.inputs import ScaleOut
from fabric_kernels.model import ModelError
from fabric_kernels.operation import ALL_REDUCE, Operation
from fabric_kernels.path import Path
from fabric_kernels.pattern import Ring, Traffic
from fabric_kernels.workload import Workload

BITS_PER_BYTE = 8


def seed_document(
    operation: Operation, workload: Workload, path: Path, scale_out: ScaleOut
) -> Collective:
    """The seed document's all-reduce, with its units put right.

        t = 2 (g - 1) / g x payload / link_rate + log2(g) hop_latency

    Never a default. It is wrong: it adds the latency of a tree, log2(g) hops, to the bandwidth of
    a ring, which needs 2 (g - 1) of them; it knows no NVLink domain, no headers and no
    oversubscription. Its worked case (100,000 ranks, 3.6e12 B, 1e11 B/s, hops of 1.2 us) gives
    71.9993 s; the ring's own latency would be 0.24 s.
    """
    return _seed_document(operation, workload, path, scale_out.link_rate)


def seed_document_as_written(
    operation: Operation, workload: Workload, path: Path, scale_out: ScaleOut
) -> Collective:
    """The seed document's all-reduce as it was printed: bytes divided by bits per second.

        t = 2 (g - 1) / g x payload / (8 link_rate) + log2(g) hop_latency

    Never a default. Wrong by the factor 8 besides what is wrong with `seed_document`: its worked
    case gives 8.99993 s, where a link of 800 Gbit/s needs 72 s for the bytes alone.
    """
    return _seed_document(operation, workload, path, scale_out.link_rate * BITS_PER_BYTE)


def _seed_document(operation: Operation, workload: Workload, path: Path, rate: Array) -> Collective:
    if operation.calls != (ALL_REDUCE,):
        raise ModelError(f"seed_document has no {operation.calls[0]}: choose ring.")
    ranks = workload.data_parallel
    steps, hops = 2 * (ranks - 1), jnp.log2(ranks)
    one = jnp.ones_like(ranks)
    pattern = Ring(ranks, steps, workload.payload / ranks, one, one)
    code = jnp.full_like(hops, ALGORITHMS.index("seed_document"))
    return Collective(
        nvlink_transfer_time=jnp.zeros_like(workload.payload),
        fabric_transfer_time=steps / ranks * workload.payload / rate,
        exchange_latency=hops * path.hop_latency,
        fabric_hops=hops,
        collective_algorithm=code,
        collective_protocol=jnp.zeros_like(code),
        traffic=(Traffic((pattern,), workload.concurrent_groups),),
    )
