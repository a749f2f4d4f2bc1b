"""NCCL's cost model: against a second writing of its formulas and against NCCL's own log."""

import dataclasses
import json
import random
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import DTypeLike

from fabric_kernels.collective import ALGORITHMS, PROTOCOLS
from fabric_kernels.collective.nccl_model import (
    NCCL_ALGORITHMS,
    NCCL_PROTOCOLS,
    OPERATIONS,
    Able,
    Channels,
    Cost,
    Group,
    channels_of,
    cost,
    tables,
)
from fabric_kernels.inputs import CollectiveLibrary
from fabric_kernels.inputs.library import GENERATIONS, PROCESSORS
from fabric_kernels.model import ModelError
from fabric_kernels.quantity import quantities
from tests.reference import nccl_cost
from tests.reference.nccl_cost import Case
from tests.tables import reference_table

REFERENCE_NAMES = {"tree": "double_binary_tree"}
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


def disagreements(cases: Sequence[Case], made: Cost) -> list[Case]:
    """Cases in which time, algorithm or protocol is not the reference's."""
    wrong = []
    for k, case in enumerate(cases):
        times = nccl_cost.times(case)
        algorithm, protocol = min(times, key=times.__getitem__)
        expected = (REFERENCE_NAMES.get(algorithm, algorithm), protocol)
        chosen = (ALGORITHMS[int(made.algorithm[k])], PROTOCOLS[int(made.protocol[k])])
        off = abs(made.time[k] * 1e6 / times[algorithm, protocol] - 1)
        if off > ROUNDING or chosen != expected:
            wrong.append(case)
    return wrong


@pytest.mark.parametrize("operation", OPERATIONS)
def test_time_and_choice_are_those_of_a_second_writing(operation: str):
    cases = drawn(operation, 2000, seed=1)
    assert not disagreements(cases, found(cases))
    chosen = {min(t, key=t.__getitem__) for t in map(nccl_cost.times, cases)}
    assert len(chosen) >= (9 if operation == "all_reduce" else 5), "the cases reach too little"


def test_the_comparison_would_see_a_wrong_kernel(monkeypatch: pytest.MonkeyPatch):
    cases = drawn("all_reduce", 2000, seed=1)
    flipped = [dataclasses.replace(case, old_ring=not case.old_ring) for case in cases]
    assert disagreements(cases, found(flipped))
    row = tables.LATENCIES["double_binary_tree"]
    shifted = row._replace(network=(5.1e-6, *row.network[1:]))
    monkeypatch.setitem(tables.LATENCIES, "double_binary_tree", shifted)
    made = jax.jit(lambda *given: cost("all_reduce", *given))(*lanes(cases))
    assert disagreements(cases, Cost(*(np.asarray(part)[0] for part in made)))


def test_the_formulas_in_double_precision():
    cases = drawn("all_reduce", 200, seed=2)
    with jax.enable_x64(np.dtype(np.float64) == np.float64):
        made = COMPILED["all_reduce", NCCL_ALGORITHMS, NCCL_PROTOCOLS](*lanes(cases, np.float64))
        times = np.asarray(made.time)[0] * 1e6
    expected = [min(nccl_cost.times(case).values()) for case in cases]
    assert times.dtype == np.float64
    assert times == pytest.approx(expected, rel=1e-12)


def test_the_library_s_own_log_and_the_rows_of_its_formula():
    """Issue 1453 of NVIDIA/nccl prints 86069.96875 us; rows of the present rule beside it."""
    rows = [r for r in reference_table("peer_cases.csv") if "ring_simple" in r["case"]]
    assert len(rows) >= 3
    for row in rows:
        given_ = json.loads(row["inputs_json"])
        rate = given_["bw_per_channel_GBps"]
        case = Case(
            operation="all_reduce",
            size=given_["bytes"],
            nodes=given_["nodes"],
            per_node=given_["gpus_per_node"],
            channels=given_["channels"],
            inside=rate,
            across=rate,
            overhead=given_["net_overhead_us"],
            old_ring=row["case"] == "nccl_log_ring_simple_8GiB",
        )
        time = found([case] * LANES, ("ring",), ("simple",)).time[0] * 1e6
        assert time == pytest.approx(float(row["value"]), rel=1e-6), row["case"]


def test_worked_times_at_8192_nodes():
    """1 GiB, 16 channels of 24 GB/s, 8 GPUs a node: three formulas by hand."""
    case = Case("all_reduce", 2**30, 8192, 8, 16, 24.0, 24.0, 24.0)
    ranks, steps = 65536, 2 * 65535
    ring = 1.4 * (8.4 + (steps - 16382) * 3.4 + 16382 * 14) + 2**30 / (384e3 * ranks / steps)
    tree = 14 + 2 * (7 * 1.25 + 13 * 8.5) + 2**30 / (0.92 * 384e3 * 120 / 128 / 2)
    nvls_tree = 25 + 2 * 13 * 20.9 + 2**30 / (384e3 * ranks / steps)
    asked = {"ring": "simple", "double_binary_tree": "ll128", "nvls_tree": "simple"}
    times = {n: found([case] * LANES, (n,), (p,)).time[0] * 1e6 for n, p in asked.items()}
    assert times["ring"] == pytest.approx(ring, rel=1e-6)
    assert times["double_binary_tree"] == pytest.approx(tree, rel=1e-6)
    assert times["nvls_tree"] == pytest.approx(nvls_tree, rel=1e-6)
    assert found([case] * LANES).time[0] * 1e6 == pytest.approx(nvls_tree, rel=1e-6)


def test_steps_of_the_tree_table_are_exact_at_powers_of_two():
    """64 B x 2^k and the float below it, as integers that NCCL would shift."""
    sizes = [2**power - below for power in range(6, 24) for below in (0, 1)]
    sizes += [2**power - 2 ** (power - 24) for power in range(24, 31)]  # the float32 below
    cases = [Case("all_reduce", size, 4, 8) for size in sizes]
    times = found(cases, ("double_binary_tree",), ("simple",)).time * 1e6
    assert times == pytest.approx([nccl_cost.tree(c, "simple") for c in cases], rel=ROUNDING)


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


@pytest.mark.parametrize("operation", OPERATIONS)
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


@pytest.mark.parametrize("operation", OPERATIONS)
def test_gradients_are_finite(operation: str):
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
    arguments = (jnp.float32(v) for v in (450e9, 400e9))
    channels = channels_of(library, jnp.float32(4), *arguments)
    assert float(channels.across) == pytest.approx(24e9, rel=1e-6)
    assert float(channels.multicast) == pytest.approx(18 * 20.6e9 / 16, rel=0.006)
    assert float(channels.inside) == pytest.approx(float(channels.multicast), rel=1e-6)
