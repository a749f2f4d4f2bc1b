"""Rows that bound the bandwidth of an all-reduce, by the product's collectives on full payloads."""

import inspect
from collections.abc import Callable

from fabric_kernels.collective import Collective
from fabric_kernels.collective.hierarchical import hierarchical, hierarchical_tree
from fabric_kernels.collective.ring import ring
from fabric_kernels.operation import Operation
from fabricarlo.nccl_tests import bus_factor
from fabricarlo.validation.congestion_inputs import Lanes, Parameters
from fabricarlo.validation.peer_collectives import ALL_REDUCE, ALONE, record_of

BOUNDS = frozenset({"gpus_per_node", "nic_GBps_per_node", "nodes"})

_PAYLOAD = 2.0**30
_FREE = 1e20  # B/s of NVLink, so that only the network between nodes bounds


def bounds(rows: Lanes) -> list[dict[str, float | str]]:
    """What ring, stages and trees can reach, without any latency (GB/s)."""
    return [_bounds(row) for row in rows]


def _bounds(row: Parameters) -> dict[str, float | str]:
    nodes, in_node = row.number("nodes"), row.number("gpus_per_node")
    factor = bus_factor("all_reduce", round(nodes * in_node))
    flat, staged, tree = (_rate(stage, row) for stage in (ring, hierarchical, hierarchical_tree))
    found: dict[str, float | str] = {
        "ring_busbw_bound": flat * factor,
        "hierarchical_rs_ar_ag_algbw_bound": staged,
        "hierarchical_busbw_bound": staged * factor,
    }
    if nodes >= 3:
        found["tree_busbw_bound_N_ge_3"] = tree * factor
    return found


def _rate(stage: Callable[..., Collective], row: Parameters) -> float:
    """Payload over the transfer alone, in GB/s."""
    given = {
        **ALONE,
        "payload": _PAYLOAD,
        "data_parallel": row.number("nodes") * row.number("gpus_per_node"),
        "nvlink_domain": row.number("gpus_per_node"),
        "nvlink_rate": _FREE,
        "gpu_rate": row.number("nic_GBps_per_node") * 1e9 / row.number("gpus_per_node"),
        "hop_latency": 0.0,
        "longest_hop_latency": 0.0,
    }
    hints = inspect.get_annotations(stage, eval_str=True)
    records = {
        name: ALL_REDUCE if hint is Operation else record_of(hint, given)
        for name, hint in hints.items()
        if name != "return"
    }
    found = stage(**records)
    transfer = float(found.nvlink_transfer_time + found.fabric_transfer_time)
    return _PAYLOAD / transfer / 1e9
