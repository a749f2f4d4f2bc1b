"""NCCL's cost model: against a second writing of its formulas and against NCCL's own log."""

import dataclasses
import json
from collections.abc import Sequence

import jax
import numpy as np
import pytest

from fabric_kernels.collective import ALGORITHMS, PROTOCOLS
from fabric_kernels.collective.nccl_model import (
    NCCL_ALGORITHMS,
    NCCL_PROTOCOLS,
    OPERATIONS,
    Cost,
    cost,
    tables,
)
from tests.kernels.nccl_lanes import COMPILED, LANES, ROUNDING, drawn, found, lanes
from tests.reference import nccl_cost
from tests.reference.nccl_cost import Case
from tests.tables import reference_table

REFERENCE_NAMES = {"tree": "double_binary_tree"}


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
