"""Who meets at the fullest link: read off patterns and routing."""

import jax.numpy as jnp
import numpy as np
import pytest

from fabric_kernels.collective import Collective
from fabric_kernels.incast.traffic import senders
from fabric_kernels.inputs import Contention
from fabric_kernels.path import Path
from fabric_kernels.pattern import Barrier, Doubling, Line, Pattern, Ring, Tree
from fabric_kernels.quantity import quantities
from fabric_kernels.workload import Workload
from tests.answers import answer, record_of


def one(value: float) -> jnp.ndarray:
    return jnp.asarray([value], jnp.float32)


RANKS = 64.0
PATTERNS: list[tuple[Pattern, float]] = [
    (Ring(one(RANKS), one(126), one(1e6), one(1), one(1)), 1),
    (Doubling(one(RANKS), one(12), one(1e6), one(1), one(1)), 1),
    (Line(one(3), one(1e6), one(1)), 1),
    (Tree(one(RANKS), one(6), one(2), one(2), one(8), one(1e6), one(1), one(1)), 2),
    (Tree(one(2), one(1), one(2), one(2), one(8), one(1e6), one(1), one(1)), 1),
    (Barrier(one(RANKS * 63), one(1), one(1e6), one(1)), 8),  # everyone to everyone, 8 at once
    (Barrier(one(RANKS), one(63), one(1e6), one(1)), 1),  # in rounds
]


@pytest.mark.parametrize(("pattern", "expected"), PATTERNS)
def test_senders_of_each_pattern(pattern: Pattern, expected: float):
    contention = record_of(Contention, {"concurrent_peers": [8.0]}, np.float32)
    assert float(senders(pattern, one(RANKS), contention)[0]) == expected


def test_the_fuller_of_routing_and_pattern_and_who_else_is_there():
    known = {**quantities(Workload), **quantities(Collective), **quantities(Path)}
    given_ = dict.fromkeys(known, 1.0) | {
        "data_parallel": 64,
        "collision_efficiency": 1,
        "flows_per_link": [1.0, 5.0, 5.0, 5.0],
        "flows_per_port": [2, 2, 2, 2],
        "background_flows": [0, 0, 3, 3],
        "switch_hops": [3, 3, 3, 1],  # the last stays behind its leaf: no uplink counts
    }
    found = answer("incast", "traffic", given_)
    assert list(found["flows_per_bottleneck"]) == [2, 5, 8, 5]
    assert list(found["senders_per_receiver"]) == [1, 1, 1, 1]
