"""Operations: the calls of a step, and which algorithm knows which of them."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest

from fabric_kernels.catalogue import ANSWERS, REFUSALS
from fabric_kernels.collective.hierarchical import nvls, nvls_sharp, nvls_tree, sharp
from fabric_kernels.inputs import Job, Overlap, Reduction, ScaleUp
from fabric_kernels.model import ModelError, Stage
from fabric_kernels.operation import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    POINT_TO_POINT,
    REDUCE_SCATTER,
    Operation,
)
from fabric_kernels.pipeline.none import none as no_pipeline
from fabric_kernels.quantity import quantities
from fabric_kernels.step.overlapped import overlapped
from fabric_kernels.tensor.all_reduces import switch_reduced
from fabric_kernels.workload import Message, Workload
from fabric_kernels.workload.dense import dense

EVERY = {ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, ALL_TO_ALL, POINT_TO_POINT}
ONE_CALL = {
    ALL_REDUCE: "replicated", REDUCE_SCATTER: "reduce_scatter", ALL_GATHER: "all_gather",
    ALL_TO_ALL: "all_to_all", POINT_TO_POINT: "point_to_point",
}  # fmt: skip
PHASED = {ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER}
KNOWN = {
    "ring": PHASED, "double_binary_tree": {ALL_REDUCE}, "recursive_halving_doubling": PHASED,
    "hierarchical": PHASED | {ALL_TO_ALL}, "hierarchical_tree": {ALL_REDUCE},
    "hierarchical_halving_doubling": PHASED, "nvls": PHASED, "nvls_tree": {ALL_REDUCE},
    "sharp": {ALL_REDUCE}, "nvls_sharp": {ALL_REDUCE}, "direct": {ALL_TO_ALL, POINT_TO_POINT},
    "pairwise": {ALL_TO_ALL}, "auto": EVERY,
}  # fmt: skip
"""Trees and the fabric's switches move whole messages; only what scatters can gather."""


def record(kind: type, **numbers: float) -> Any:
    """A record of one lane; what is not named is its default, else 1."""
    lanes: dict[str, Any] = {
        name: jnp.float32(numbers.get(name, 1.0 if q.default is None else q.default))
        for name, q in quantities(kind).items()
    }
    if kind is Workload:
        one = jnp.float32(1.0)
        lanes["messages"] = (Message(one, one, one),)
    return kind(**lanes)


def asked(name: str, operation: str) -> Any:
    """The shape of what an algorithm answers to one call."""
    stage = Stage.of(ANSWERS["collective"][name])
    made = ANSWERS["operation"][operation]()
    records = {p: record(kind) for p, kind in stage.needs.items() if kind is not Operation}
    return jax.eval_shape(lambda given: stage.function(operation=made, **given), records)


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("replicated", (ALL_REDUCE,)),
        ("zero_1", (REDUCE_SCATTER, ALL_GATHER)),
        ("zero_3", (REDUCE_SCATTER, ALL_GATHER, ALL_GATHER)),
        ("reduce_scatter", (REDUCE_SCATTER,)),
        ("all_gather", (ALL_GATHER,)),
        ("all_to_all", (ALL_TO_ALL,)),
        ("point_to_point", (POINT_TO_POINT,)),
    ],
)
def test_calls_of_a_step(name: str, calls: tuple[str, ...]) -> None:
    assert ANSWERS["operation"][name]().calls == calls


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("operation", ONE_CALL)
def test_an_algorithm_answers_what_it_knows_and_names_another_for_the_rest(
    name: str, operation: str
) -> None:
    if operation in KNOWN[name]:
        assert asked(name, ONE_CALL[operation]).exchange_latency.shape == ()
        return
    with pytest.raises(ModelError) as caught:
        asked(name, ONE_CALL[operation])
    said, _, instead = str(caught.value).partition("; choose ")
    assert said.startswith(f"{name} has no {operation}: ")
    others = instead.removesuffix(".").replace(" or ", ", ").split(", ")
    for other in others:
        assert operation in KNOWN[other], f"{instead} is no way out"
    if operation in ("all_to_all", "point_to_point"):  # nothing that would do is left out
        assert set(others) == {n for n, known in KNOWN.items() if operation in known}


@pytest.mark.parametrize("name", ["double_binary_tree", "sharp", "direct"])
def test_a_step_is_refused_for_one_of_its_calls(name: str) -> None:
    with pytest.raises(ModelError, match="has no reduce_scatter"):
        asked(name, "zero_1")


def test_every_answer_is_spoken_for() -> None:
    """A new algorithm says here what it knows."""
    others = {"nccl", "calibrated", "seed_document", "seed_document_as_written"}
    assert set(ANSWERS["collective"]) == set(KNOWN) | others


@pytest.mark.parametrize("stage", [nvls, nvls_tree, nvls_sharp, switch_reduced])
def test_reduction_in_a_domain_needs_switches_that_add(stage: Any) -> None:
    can = record(Reduction, nvlink_reduction=1.0, fabric_reduction=1.0)
    assert REFUSALS[stage](can) is None
    why = REFUSALS[stage](record(Reduction, nvlink_reduction=0.0, fabric_reduction=1.0))
    assert why is not None
    assert "nvlink_reduction" in why


@pytest.mark.parametrize("stage", [sharp, nvls_sharp])
def test_reduction_in_the_fabric_needs_switches_that_add(stage: Any) -> None:
    why = REFUSALS[stage](record(Reduction, nvlink_reduction=1.0, fabric_reduction=0.0))
    assert why is not None
    assert "fabric_reduction" in why


def test_a_pipeline_cannot_send_nothing() -> None:
    assert REFUSALS[no_pipeline](record(Job, pipeline_parallel=1.0)) is None
    why = REFUSALS[no_pipeline](record(Job, pipeline_parallel=8.0))
    assert why is not None
    for words in ("pipeline_parallel 8", "one_forward_one_backward", "pipeline_parallel to 1"):
        assert words in why


def test_windows_share_compute() -> None:
    windows = {"overlap_window_data": 0.7, "overlap_window_pipeline": 0.4}
    why = REFUSALS[overlapped](record(Overlap, **windows))
    assert why is not None
    assert "1.1" in why
    assert REFUSALS[overlapped](record(Overlap, overlap_window_data=1.0)) is None


@pytest.mark.parametrize(
    ("gpus", "near"), [(1000.0, "960 or 1024"), (63.0, "64"), (1025.0, "1024 or 1088")]
)
def test_gpus_that_do_not_divide_are_told_the_nearest(gpus: float, near: str) -> None:
    job = record(Job, gpus=gpus, tensor_parallel=8.0, pipeline_parallel=8.0)
    why = REFUSALS[dense](job, record(ScaleUp, nvlink_domain=8.0))
    assert why is not None
    assert f"gpus is {gpus:.0f}" in why
    assert why.endswith(f"set gpus to {near}.")
