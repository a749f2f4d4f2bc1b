"""Numbers of other tools: each kind of row, what is not ours, and that a wrong number is seen."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fabricarlo.errors import FabricarloError
from fabricarlo.validation import peer_cases
from fabricarlo.validation.report import Report, Row
from fabricarlo.validation.table import Cells, Table, read_table
from tests.tables import reference_path

RING: dict[str, Any] = {"bytes": 8000, "ranks": 4, "GBps": 1, "alpha_us": 5}
RING_US = 2 * 3 / 4 * 8 + 6 * 5  # 2 (n-1)/n S/B + 2 (n-1) alpha


def report(*rows: tuple[str, Mapping[str, Any], str, str, str]) -> Report:
    cells = [
        Cells(
            {
                "case": case,
                "source": "",
                "inputs_json": json.dumps(inputs),
                "quantity": quantity,
                "value": value,
                "unit": unit,
                "notes": "",
            },
            Path("cases.csv"),
            line,
        )
        for line, (case, inputs, quantity, value, unit) in enumerate(rows, start=2)
    ]
    return peer_cases.validate(Table(Path("cases.csv"), tuple(cells[0]), tuple(cells)))


def one(case: str, inputs: Mapping[str, Any], quantity: str, value: str, unit: str = "us") -> Row:
    return report((case, inputs, quantity, value, unit)).rows[0]


def test_every_row_of_the_table_that_is_modelled_agrees():
    found = peer_cases.validate(read_table(reference_path("peer_cases.csv")))
    assert found.passed, [row for row in found.rows if row.verdict == "fail"]
    assert sum(row.verdict == "pass" for row in found.rows) >= 9


SEED = {"gpus": 4, "params_b": 0.001, "gbps": 8, "latency_us": 5}
CALCULON = {"bytes": 8000, "ranks": 4, "GBps": 2, "efficiency": 0.5, "latency_s": 1e-5}
LOGGOPS = {"ranks": 4, "bytes": 8000, "L_ns": 30, "o_ns": 5, "g_ns": 1, "G_ns_per_B": 2}
HIER = {"bytes": 8000, "nodes": 2, "gpus_per_node": 2, "intra_GBps": 1, "inter_GBps": 2}
SIMAI = {"bytes": 2**30, "dp_ranks": 4, "tp": 8, "gpus": 32, "nics_per_server": 8}

BY_HAND = {
    "ring": ("mlsysim_ring_x", RING, "all_reduce_time", RING_US),
    "half a ring": ("mlsysim_ring_x", RING, "all_gather_time", RING_US / 2),
    "hierarchical": (
        "mlsysim_hier_x",
        HIER | {"intra_alpha_us": 1, "inter_alpha_us": 3},
        "all_reduce_time",
        2 * (1 / 2 * 8 + 1) + 2 * (1 / 2 * 4 / 2 + 3),
    ),
    # 1e6 parameters of 2 B over 8 Gbit/s = 1 GB/s
    "seed": ("seed_corrected", SEED, "sync_time", 2 * 3 / 4 * 2000 + 5 * 2),
    "seed as written": ("seed_as_written", SEED, "sync_time", 2 * 3 / 4 * 250 + 5 * 2),
    "seed with a ring's latency": (
        "seed_ring",
        SEED | {"latency_steps": "2(n-1)"},
        "sync_time",
        2 * 3 / 4 * 2000 + 6 * 5,
    ),
    "one latency, reduced in the network": (
        "calculon_net_x",
        CALCULON | {"scalar": 1, "offset": 0},
        "all_reduce_time",
        8 + 10,
    ),
    "one latency, ring": (
        "calculon_net_x",
        CALCULON | {"scalar": 2, "offset": -1},
        "all_reduce_time",
        2 * 3 / 4 * 8 + 10,
    ),
    "one latency, gather": (
        "calculon_net_x",
        CALCULON | {"scalar": 1, "offset": -1},
        "all_gather_time",
        3 / 4 * 8 + 10,
    ),
    "LogGOPS": ("loggops_ring_x", LOGGOPS, "makespan", 6 * (10 + 30 + 1999 * 2) / 1000),
    "ring without latency": (
        "simai_analytical_AR_x",
        SIMAI | {"nic_GBps": 50, "nvlink_GBps": 360},
        "all_reduce_time",
        2 * 3 / 4 / 50 * 1e6,
    ),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_a_row_worked_by_hand(name: str):
    case, inputs, quantity, value = BY_HAND[name]
    row = one(case, inputs, quantity, f"{value:.6f}")
    assert row.verdict == "pass", row
    assert row.found == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("name", BY_HAND)
def test_a_wrong_number_is_seen(name: str):
    case, inputs, quantity, value = BY_HAND[name]
    found = report((case, inputs, quantity, f"{value * (1 + 1e-5):.6f}", "us"))
    assert found.rows[0].verdict == "fail", found.rows
    assert not found.passed


@pytest.mark.parametrize(
    ("value", "verdict"), [("42", "pass"), ("42.0", "pass"), ("42.4", "fail"), ("42.001", "fail")]
)
def test_a_row_is_held_to_the_digits_it_gives(value: str, verdict: str):
    assert one("mlsysim_ring_x", RING, "all_reduce_time", value).verdict == verdict


def test_bus_bandwidth():
    inputs = {"bytes": 10**9, "ranks": 4, "time_us": 10**5, "algo": "ring"}
    assert one("nccl_measured_x", inputs, "bus_bandwidth", "15.00", "GB/s").verdict == "pass"
    gathered = inputs | {"collective": "all_gather"}
    assert one("nccl_measured_x", gathered, "bus_bandwidth", "7.50", "GB/s").verdict == "pass"


NCCL = {
    "bytes": 2**33,
    "nodes": 3,
    "gpus_per_node": 8,
    "algo": "ring",
    "proto": "Simple",
    "channels": 16,
    "bw_per_channel_GBps": 12,
    "compcap": 90,
    "net_overhead_us": 1,
}
# latency 1.4 (8.4 + 42 x 3.4 + 4 x 14), or 40 and 6 hops by the old rule; rest 46/24 S / 192 GB/s
NCCL_US = 46 / 24 * 2**33 / 192e3 + 1.4 * (8.4 + 42 * 3.4 + 4 * 14)
OLD_US = 46 / 24 * 2**33 / 192e3 + 1.4 * (8.4 + 40 * 3.4 + 6 * 14)


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ({}, NCCL_US),
        ({"n_inter_steps": "2*(nNodes-1)", "cpu": "AMD"}, NCCL_US),  # of LL alone is AMD's limit
        ({"n_inter_steps": "2*nNodes (NCCL before 2.23.4)"}, OLD_US),
        ({"latency_inter_us": 1}, NCCL_US + 1.4 * 4 * 2),  # twice: a flush
    ],
)
def test_a_prediction_of_nccl_worked_by_hand(change: Mapping[str, Any], value: float):
    row = one("nccl_head_x", NCCL | change, "all_reduce_time", f"{value:.6f}")
    assert row.verdict == "pass", row
    wrong = one("nccl_head_x", NCCL | change, "all_reduce_time", f"{value * (1 + 3e-6):.6f}")
    assert wrong.verdict == "fail"


def test_without_an_algorithm_it_is_the_one_that_nccl_chooses():
    free = {k: v for k, v in NCCL.items() if k not in ("algo", "proto")}
    chosen = one("nccl_head_x", free, "all_reduce_time", "1").found
    assert chosen is not None
    assert 0 < chosen <= NCCL_US


NOT_OURS = {
    "an unknown algorithm": (
        "nccl_head_x",
        NCCL | {"algo": "carousel"},
        "all_reduce_time",
        "algo carousel is none of",
    ),
    "an unknown rule": (
        "nccl_head_x",
        NCCL | {"n_inter_steps": "nRanks"},
        "all_reduce_time",
        "no rule of NCCL",
    ),
    "an old GPU": ("nccl_head_x", NCCL | {"compcap": 60}, "all_reduce_time", "before Volta"),
    "a call without a model": ("nccl_head_x", NCCL, "alltoall_time", "no cost model"),
    "no bandwidth": (
        "nccl_head_x",
        {k: v for k, v in NCCL.items() if k != "bw_per_channel_GBps"},
        "all_reduce_time",
        "does not give bw_per_channel_GBps",
    ),
    "an input without a quantity": (
        "mlsysim_ring_x",
        RING | {"efficiency": 0.9},
        "all_reduce_time",
        "no quantity for efficiency",
    ),
    "a missing input": (
        "mlsysim_ring_x",
        {"bytes": 1},
        "all_reduce_time",
        "does not give ranks",
    ),
    "an unknown quantity": ("mlsysim_ring_x", RING, "joules", "no time of a collective"),
    "an unknown tool": ("abacus_x", RING, "all_reduce_time", "no model is known"),
    "a simulator": ("astra_ring8", RING, "all_reduce_time", "simulation"),
    "a step of another tool": ("calculon_step_x", {}, "batch_total_time", "layer by layer"),
    "another scalar": (
        "calculon_net_x",
        CALCULON | {"scalar": 3, "offset": 0},
        "all_reduce_time",
        "no answer moves 3",
    ),
    "rendezvous": ("loggops_ring_x", LOGGOPS | {"eager": False}, "makespan", "eager = False"),
    "a long gap": ("loggops_ring_x", LOGGOPS | {"g_ns": 1e6}, "makespan", "gap between messages"),
    "another schedule": ("loggops_rdoubling_x", LOGGOPS, "makespan", "only rings"),
    "a tabulated size": (
        "simai_analytical_AR_x",
        SIMAI | {"bytes": 1024, "nic_GBps": 50, "nvlink_GBps": 360},
        "all_reduce_time",
        "table by ranks",
    ),
    "other latency steps": (
        "seed_x",
        SEED | {"latency_steps": "n"},
        "sync_time",
        "latency of n steps",
    ),
}


@pytest.mark.parametrize("name", NOT_OURS)
def test_what_is_not_modelled_is_said(name: str):
    case, inputs, quantity, why = NOT_OURS[name]
    row = one(case, inputs, quantity, "1.5")
    assert row.verdict == "not applicable"
    assert row.found is None
    assert why in row.reason


def test_a_table_of_which_nothing_is_modelled_does_not_pass():
    assert not report(("abacus_x", {}, "all_reduce_time", "1", "us")).passed


@pytest.mark.parametrize(
    ("inputs", "unit", "why"),
    [
        (RING | {"ranks": "four"}, "us", "ranks is 'four', which is no number"),
        (RING | {"ranks": True}, "us", "ranks is True, which is no number"),
        (RING, "fortnights", "column unit holds 'fortnights'"),
        ([1, 2], "us", "no JSON object"),
    ],
)
def test_a_wrong_cell_is_refused_with_its_place(inputs: Any, unit: str, why: str):
    with pytest.raises(FabricarloError, match=f"cases.csv, line 2.*{why}"):
        one("mlsysim_ring_x", inputs, "all_reduce_time", "1", unit)
