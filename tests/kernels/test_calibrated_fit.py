"""The fit of the calibrated collectives, and what it says of published tables."""

import dataclasses
import math

import numpy as np
import pytest

from fabricarlo.nccl_tests import Measured, Row, Run
from fabricarlo.validation.calibration import (
    LARGE,
    SMALL,
    START,
    errors_of,
    fit,
    predict,
    shipped,
)
from fabricarlo.validation.calibration_tables import (
    DAMAGED,
    Measurement,
    fabric_of,
    measurement,
    measurements,
    usable,
)
from tests.tables import reference_path, reference_table

SIZES = 2.0 ** np.arange(3, 34)


@pytest.fixture(scope="module")
def tables() -> list[Measurement]:
    index = reference_table("nccl/index.csv")
    folder = reference_path("nccl/index.csv").parent
    every = [found for _, found in measurements(index, folder)]
    return [found for found in every if not isinstance(found, str) and usable(found)]


def large_errors(errors: list[np.ndarray], tables: list[Measurement]) -> np.ndarray:
    pairs = [(e, t) for e, t in zip(errors, tables, strict=True) if t.domains > 1]
    return np.concatenate([np.abs(e[t.sizes >= LARGE]) for e, t in pairs])


def test_open_tables_within_what_is_promised(tables: list[Measurement]):
    """Healthy tables of several domains, with the parameters of the catalog."""
    errors = errors_of(shipped(), tables)
    large = large_errors(errors, tables)
    assert large.size > 80
    assert np.median(large) <= 0.05
    assert large.max() <= 0.30
    pairs = [(e, t) for e, t in zip(errors, tables, strict=True) if t.domains > 1]
    small = np.concatenate([e[t.sizes <= SMALL] for e, t in pairs])
    assert np.mean((small > -0.5) & (small < 1)) >= 0.9


@pytest.mark.parametrize(
    ("parameter", "factor"), [("fabric_efficiency", 0.9), ("fabric_delay:tcpx", 0.1)]
)
def test_a_wrong_parameter_is_seen(tables: list[Measurement], parameter: str, factor: float):
    wrong = shipped() | {parameter: factor * shipped()[parameter]}
    large = large_errors(errors_of(wrong, tables), tables)
    assert np.median(large) > 0.05 or large.max() > 0.30


def test_the_catalog_is_what_the_fit_gives(tables: list[Measurement]):
    assert fit(tables) == pytest.approx(shipped(), rel=2e-3)


def test_files_left_out_are_predicted(tables: list[Measurement]):
    """Three machines whose fabric has other tables; the whole round is the script's."""
    for name in ("04", "15", "25"):
        own = [table for table in tables if table.name.startswith(name)]
        others = fit([table for table in tables if not table.name.startswith(name)])
        large = large_errors(errors_of(others, own), own)
        assert np.median(large) <= 0.10, name


def test_a_published_tree_that_no_fit_has_seen():
    """NVIDIA/nccl issue 1801: 3 domains of 4 GB200, 400 Gbit/s a GPU, 16 GiB: 134,159 us."""
    machine = invented("all_reduce", "blackwell", 3, 4, 200e9, sizes=np.array([2.0**34]))
    [times] = predict(shipped(), [machine])
    assert times[0] == pytest.approx(0.134159, rel=0.10)


def invented(
    operation: str,
    generation: str,
    domains: int,
    per_domain: int,
    rate: float,
    fabric: str = "rdma",
    sizes: np.ndarray = SIZES,
) -> Measurement:
    return Measurement(
        name=f"{operation} {generation} {domains} {per_domain} {rate} {fabric}",
        operation=operation,
        generation=generation,
        fabric=fabric,
        ranks=domains * per_domain,
        domains=domains,
        domain_rate=rate,
        sizes=sizes,
        times=np.ones_like(sizes),
        healthy=True,
    )


def test_a_fit_finds_the_parameters_that_made_its_tables():
    """20 invented tables without noise; what is left is the pull towards the start."""
    machines = [
        invented(operation, generation, domains, per_domain, rate, fabric)
        for operation in ("all_reduce", "all_gather")
        for generation, domains, per_domain, rate in (
            ("hopper", 2, 8, 400e9),
            ("hopper", 16, 8, 200e9),
            ("blackwell", 2, 64, 3.2e12),
            ("ampere", 4, 8, 100e9),
            ("blackwell", 2, 1, 50e9),
        )
        for fabric in ("rdma", "tcpx")
    ]
    bend = np.random.default_rng(11)
    truth = {n: v * math.exp(bend.uniform(-0.3, 0.3)) for n, v in START.items()}
    truth["fabric_efficiency"] = 0.85
    times = predict(truth, machines)
    made = [dataclasses.replace(m, times=t) for m, t in zip(machines, times, strict=True)]
    found = fit(made)
    unseen = ("fabric_delay:efa-1", "fabric_delay:efa-2")
    for name, value in truth.items():
        expected = START[name] if name in unseen else value
        assert found[name] == pytest.approx(expected, rel=0.05), name


INDEX_ROW = {
    "file": "99-somewhere.txt",
    "gpu_generation": "Hopper",
    "gpus": "16",
    "fabric": "roce",
    "nics_per_node_gbps": "8x400 RoCE",
    "domains": "2",
    "nic_GBps_per_domain": "400",
    "healthy": "yes",
}


def run_of(**changes: object) -> Run:
    half = Measured(time=2e-3, algbw=5e11, busbw=9e11, rounding=5e6, wrong=0)
    rows = (
        Row(size=0, count=0, out_of_place=half, in_place=half, line=1),
        Row(2**30, 2**28, half, dataclasses.replace(half, time=1e-3), 2),
    )
    run = Run("all_reduce", "float", 4, "sum", rows, 16, (16, 16), None, (), ())
    return dataclasses.replace(run, **changes)


def test_a_run_becomes_a_measurement_of_the_shorter_times():
    found = measurement(INDEX_ROW, run_of())
    assert isinstance(found, Measurement)
    assert (found.ranks, found.domains, found.domain_rate) == (16, 2, 400e9)
    assert found.sizes.tolist() == [2**30]
    assert found.times.tolist() == [1e-3]
    assert usable(found)
    for name in DAMAGED:
        assert not usable(dataclasses.replace(found, name=f"{name}-x.txt"))
    assert not usable(dataclasses.replace(found, healthy=False))
    assert not usable(dataclasses.replace(found, domains=1, generation="ampere"))


def test_ranks_are_those_of_the_numbers_where_the_index_is_wrong():
    found = measurement(INDEX_ROW | {"gpus": "144"}, run_of(ranks=128, ranks_range=(120, 136)))
    assert isinstance(found, Measurement)
    assert found.ranks == 128
    near = measurement(INDEX_ROW | {"gpus": "1440"}, run_of(ranks=1400, ranks_range=(1300, 1500)))
    assert isinstance(near, Measurement)
    assert near.ranks == 1440


@pytest.mark.parametrize(
    ("row", "run", "why"),
    [
        ({}, {"refusals": ("cut",)}, "refused: cut"),
        ({}, {"operation": "alltoall"}, "no calibration of alltoall"),
        ({"gpu_generation": "Turing"}, {}, "no parameters of GPU generation Turing"),
        ({"fabric": "tcp", "nics_per_node_gbps": "IPoIB"}, {}, "no parameters of fabric tcp"),
        ({"nic_GBps_per_domain": ""}, {}, "network ports is not known"),
        ({"domains": "1,2,3"}, {}, "runs on 1,2,3 domains"),
        ({"gpus": ""}, {"ranks": None, "ranks_range": None}, "ranks is not known"),
    ],
)
def test_what_cannot_be_predicted_says_why(row: dict, run: dict, why: str):
    found = measurement(INDEX_ROW | row, run_of(**run))
    assert isinstance(found, str)
    assert why in found


@pytest.mark.parametrize(
    ("fabric", "ports", "generation", "expected"),
    [
        ("ib", "8x400 IB", "hopper", "rdma"),
        ("roce", "8x400", "cdna3", "rdma"),
        ("efa", "4x100 EFA", "ampere", "efa-1"),
        ("efa", "32x100 EFA", "hopper", "efa-2"),
        ("tcp", "8x200 TCPXO", "hopper", "tcpx"),
        ("unknown", "", "hopper", None),
    ],
)
def test_fabrics_by_their_names(fabric: str, ports: str, generation: str, expected: str | None):
    row = INDEX_ROW | {"fabric": fabric, "nics_per_node_gbps": ports}
    assert fabric_of(row, generation) == expected
    assert fabric_of(row | {"domains": "1"}, generation) == "none"
