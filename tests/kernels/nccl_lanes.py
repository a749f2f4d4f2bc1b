"""Cases of the reference as lanes of NCCL's cost model."""

import random
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import DTypeLike

from fabric_kernels.collective.nccl_model import (
    NCCL_ALGORITHMS,
    NCCL_PROTOCOLS,
    OPERATIONS,
    Able,
    Channels,
    Cost,
    Group,
    cost,
)
from fabric_kernels.inputs import CollectiveLibrary
from fabric_kernels.inputs.library import GENERATIONS, PROCESSORS
from tests.reference import nccl_cost
from tests.reference.nccl_cost import Case

ROUNDING = 2e-6  # float32, some ten operations
LANES = 64

COMPILED = {
    (operation, algorithms, protocols): jax.jit(
        lambda *given, o=operation, a=algorithms, p=protocols: cost(
            o, *given, algorithms=a, protocols=p
        )
    )
    for operation in OPERATIONS
    for algorithms in (NCCL_ALGORITHMS, *((name,) for name in NCCL_ALGORITHMS))
    for protocols in (NCCL_PROTOCOLS, ("simple",), ("ll128",))
}


def lanes(cases: Sequence[Case], dtype: DTypeLike = np.float32) -> tuple[object, ...]:
    """The arguments of `cost` after its operation, one lane for each case."""

    def column(*values: float) -> jax.Array:
        return jnp.asarray([values], dtype)

    def codes(names: Sequence[str], chosen: Sequence[str]) -> jax.Array:
        return column(*(names.index(name) for name in chosen))

    library = CollectiveLibrary(
        gpu_generation=codes(GENERATIONS, [c.generation for c in cases]),
        host_processor=codes(PROCESSORS, [c.host for c in cases]),
        library_channels=column(*(c.channels for c in cases)),
        library_nvlink_share=column(*(1 for _ in cases)),
        library_network_share=column(*(1 for _ in cases)),
        network_overhead=column(*(c.overhead * 1e-6 for c in cases)),
        network_plugin_latency=column(*(c.plugin * 1e-6 for c in cases)),
        ring_step_rule=column(*(c.old_ring for c in cases)),
        scale_up_link=column(*(c.pcie for c in cases)),
        tree_pattern=column(*(c.plain_tree for c in cases)),
    )
    rates = ((c.inside * 1e9, c.across * 1e9, c.multicast * 1e9) for c in cases)
    places = ((c.size, c.nodes, c.per_node) for c in cases)
    able = ((c.nvlink_switch_adds, c.fabric_adds) for c in cases)
    return (
        Group(*(column(*v) for v in zip(*places, strict=True))),
        Channels(*(column(*v) for v in zip(*rates, strict=True))),
        Able(*(column(*v) for v in zip(*able, strict=True))),
        library,
    )


def found(
    cases: Sequence[Case],
    algorithms: tuple[str, ...] = NCCL_ALGORITHMS,
    protocols: tuple[str, ...] = NCCL_PROTOCOLS,
) -> Cost:
    [operation] = {case.operation for case in cases}
    made = COMPILED[operation, algorithms, protocols](*lanes(cases))
    return Cost(*(np.asarray(part)[0] for part in made))


def drawn(operation: str, count: int, seed: int) -> list[Case]:
    """Machines of all sorts, and sizes around every step of the tables."""
    pick = random.Random(seed)
    cases = []
    while len(cases) < count:
        case = Case(
            operation=operation,
            size=pick.choice((63, 64, 2 ** pick.randint(5, 34), pick.randint(1, 2**24))),
            nodes=pick.choice((1, 2, 3, 4, 7, 8, 64, 4095, 4096, 8192)),
            per_node=pick.choice((1, 2, 3, 8, 72)),
            channels=pick.choice((1, 2, 8, 16, 24, 32, 64)),
            inside=pick.choice((10.0, 12.0, 24.0, 45.0)),
            across=pick.choice((5.0, 12.0, 24.0)),
            multicast=pick.choice((10.0, 24.0, 45.0)),
            generation=pick.choice(nccl_cost.GENERATIONS),
            host=pick.choice(PROCESSORS),
            overhead=pick.choice((1.0, 2.0, 5.0)),
            plugin=pick.choice((0.0, 3.0)),
            old_ring=pick.random() < 0.5,
            pcie=pick.random() < 0.2,
            plain_tree=pick.random() < 0.3,
            nvlink_switch_adds=pick.random() < 0.7,
            fabric_adds=pick.random() < 0.4,
        )
        if case.ranks > 1:
            cases.append(case)
    return cases
