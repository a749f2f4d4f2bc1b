"""NCCL's choice: invariants, what a machine must have, refusals, gradients."""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric_kernels.collective import ALGORITHMS
from fabric_kernels.collective.nccl_model import (
    NCCL_ALGORITHMS,
    OPERATIONS,
    Group,
    channels_of,
    cost,
)
from fabric_kernels.inputs import CollectiveLibrary
from fabric_kernels.inputs.library import PROCESSORS
from fabric_kernels.model import ModelError
from fabric_kernels.quantity import quantities
from tests.kernels.nccl_lanes import LANES, ROUNDING, drawn, found, lanes
from tests.reference import nccl_cost
from tests.reference.nccl_cost import Case

MACHINES = st.builds(
    Case,
    operation=st.sampled_from(OPERATIONS),
    size=st.just(1),
    nodes=st.integers(1, 20000),
    per_node=st.integers(1, 144),
    channels=st.integers(1, 64),
    inside=st.floats(1, 100),
    across=st.floats(1, 100),
    multicast=st.floats(1, 100),
    generation=st.sampled_from(nccl_cost.GENERATIONS),
    host=st.sampled_from(PROCESSORS),
    overhead=st.floats(0, 10),
    plugin=st.floats(0, 100),
    old_ring=st.booleans(),
    pcie=st.booleans(),
    plain_tree=st.booleans(),
    nvlink_switch_adds=st.booleans(),
    fabric_adds=st.booleans(),
)
INVARIANT = settings(max_examples=60, derandomize=True, deadline=None)


def over_sizes(machine: Case, sizes: Sequence[int]) -> list[Case]:
    return [dataclasses.replace(machine, size=size) for size in sizes]


@INVARIANT
@given(MACHINES)
def test_twice_the_bytes_never_take_less(machine: Case):
    """Inside a step of the table times grow too; across one only doubling must."""
    made = found(over_sizes(machine, [2**k for k in range(LANES // 2)] * 2))
    times = made.time[: LANES // 2]
    assert np.all(np.diff(times) >= 0)
    step = found(over_sizes(machine, [2**22 + k * 2**16 for k in range(LANES)]))
    same = np.diff(step.algorithm) == 0
    assert np.all(np.diff(step.time)[same] >= -1e-6 * step.time[1:][same])


@INVARIANT
@given(MACHINES)
def test_parts_add_up_and_one_rank_alone_takes_no_time(machine: Case):
    made = found(over_sizes(machine, [2**34] * LANES))
    assert made.time == pytest.approx(made.transfer + made.latency, rel=ROUNDING)
    assert np.all(np.isfinite(made.time))
    assert np.all((made.time > 0) == (machine.ranks > 1))


@pytest.mark.parametrize("operation", ["all_reduce", "all_gather"])
def test_the_choice_is_the_fastest_that_is_allowed(operation: str):
    cases = drawn(operation, LANES, seed=3)
    chosen = found(cases)
    best = np.full(LANES, np.inf)
    for algorithm in NCCL_ALGORITHMS:
        try:
            alone = found(cases, (algorithm,))
        except ModelError:
            continue
        assert np.all(chosen.time <= alone.time)
        assert np.all(alone.algorithm == ALGORITHMS.index(algorithm))
        best = np.minimum(best, alone.time)
    assert np.array_equal(best, chosen.time)


@pytest.mark.parametrize(
    ("algorithm", "machine"),
    [
        ("nvls", {"generation": "ampere"}),
        ("nvls", {"nvlink_switch_adds": False}),
        ("nvls", {"per_node": 2}),
        ("nvls", {"pcie": True}),
        ("nvls", {"channels": 1}),
        ("nvls", {"nodes": 2}),
        ("nvls_tree", {"nodes": 1}),
        ("collnet_chain", {"nodes": 2, "fabric_adds": False}),
        ("collnet_direct", {"nodes": 2, "fabric_adds": True, "pcie": True}),
    ],
)
def test_what_a_machine_lacks_is_never_chosen(algorithm: str, machine: dict[str, object]):
    here = dataclasses.replace(Case("all_reduce", 2**20, 1, 8), **machine)
    assert np.all(np.isinf(found([here] * LANES, (algorithm,)).time))


def test_pat_is_for_one_gpu_a_node():
    one, eight = (Case("all_gather", 2**20, 64, per_node) for per_node in (1, 8))
    times = found([one] * 32 + [eight] * 32, ("pat",)).time
    assert np.all(np.isfinite(times) == ([True] * 32 + [False] * 32))


@pytest.mark.parametrize("operation", ["all_to_all", "point_to_point"])
def test_operations_without_a_model_are_refused(operation: str):
    with pytest.raises(ModelError, match=f"no cost model of {operation}, only of all_reduce"):
        cost(operation, *lanes([Case("all_reduce", 1, 1, 8)]))


def test_restrictions_that_leave_nothing_are_refused():
    given_ = lanes([Case("all_reduce", 1, 1, 8)])
    with pytest.raises(ModelError, match="NCCL has no all_reduce by pat with ll"):
        cost("all_reduce", *given_, algorithms=("pat",), protocols=("ll",))
    with pytest.raises(ModelError, match="'tree' is none of NCCL's: choose from double"):
        cost("all_reduce", *given_, algorithms=("tree",))


def test_gradients_are_finite():
    operation = "all_reduce"
    cases = [*drawn(operation, LANES, seed=4), Case(operation, 2**20, 1, 1)]
    arguments = lanes(cases)
    slopes = jax.jit(jax.grad(lambda given_: cost(operation, *given_).time.sum()))(arguments)
    for slope in jax.tree.leaves(slopes):
        assert np.all(np.isfinite(slope))
    assert np.any(np.asarray(slopes[1].across) < 0)


def test_channels_of_eight_ports_of_400_gbit_s():
    """H100: 16 channels of 24 GB/s across; NVLink 4 holds 20.6 of 25 GB/s a link."""
    names = {n: q.default for n, q in quantities(CollectiveLibrary).items()}
    library = CollectiveLibrary(
        **{n: jnp.float32(0 if value is None else value) for n, value in names.items()}
    )
    arguments = [jnp.float32(v) for v in (450e9, 400e9)]
    eight, one = (Group(*map(jnp.float32, (1, 4, ranks))) for ranks in (8, 1))
    channels = channels_of(library, eight, *arguments)
    assert float(channels.across) == pytest.approx(24e9, rel=1e-6)
    assert float(channels.multicast) == pytest.approx(18 * 20.6e9 / 16, rel=0.006)
    assert float(channels.inside) == pytest.approx(float(channels.multicast), rel=1e-6)
    wide = channels_of(library, eight, arguments[0], 2 * arguments[1])  # one of 8 leaves the node
    assert float(wide.across) == pytest.approx(float(wide.multicast) * 8 / 7, rel=1e-6)
    free = channels_of(library, one, *arguments)  # no NVLink on its way
    assert float(free.across) == float(free.inside) == pytest.approx(24e9, rel=1e-6)
