"""Every algorithm of a collective call at once: one program an operation."""

import contextlib
import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike

from fabric_kernels.catalogue import ANSWERS
from fabric_kernels.inputs import Overlap, Reduction, ScaleUp
from fabric_kernels.model import ModelError
from fabric_kernels.path import Path
from fabric_kernels.workload import Workload
from tests.answers import PATH, precision, record_of

OPERATIONS = {
    "all_reduce": "replicated", "reduce_scatter": "reduce_scatter", "all_gather": "all_gather",
    "all_to_all": "all_to_all", "point_to_point": "point_to_point",
}  # fmt: skip
"""One call -> the operation that makes it once a step."""
NOT_LAWFUL = {"nccl", "calibrated", "seed_document", "seed_document_as_written"}
"""Models of a library and of a document: no algorithm whose messages could be told."""
ALGORITHMS = [name for name in ANSWERS["collective"] if name not in NOT_LAWFUL]
RECORDS = {
    "workload": Workload, "overlap": Overlap, "path": Path, "scale_up": ScaleUp,
    "reduction": Reduction,
}  # fmt: skip
UNREAD: dict[str, float] = {
    **PATH,
    **dict.fromkeys(("parameters", "tokens_per_step", "active_parameters"), 1e9),
    **dict.fromkeys(("tensor_parallel", "pipeline_parallel", "concurrent_groups"), 1.0),
    "bubble_share": 0.0,
    "full_clock_compute_time": 1.0,
}


@functools.cache
def _compiled(operation: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    known = {"operation": ANSWERS["operation"][OPERATIONS[operation]]()}

    def every(records: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in ALGORITHMS:
            with contextlib.suppress(ModelError):
                found[name] = ANSWERS["collective"][name](**records, **known)
        return found

    return jax.jit(every)


def every_algorithm(operation: str, lanes: Mapping[str, ArrayLike], count: int) -> dict[str, Any]:
    """What every algorithm that knows the call answers, by name, in float64 on `count` lanes."""
    with precision(np.float64):
        numbers = {**UNREAD, **lanes, "gpus": lanes["data_parallel"]}
        records = {name: record_of(kind, numbers, np.float64) for name, kind in RECORDS.items()}
        records = jax.tree.map(lambda leaf: np.resize(np.asarray(leaf), count), records)
        return jax.tree.map(np.asarray, _compiled(operation)(records))
