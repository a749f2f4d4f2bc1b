"""The pipeline exchange and its bubble against simulated schedules."""

import functools
import math

import numpy as np
import pytest

from tests.answers import PATH, answer
from tests.reference import event_pipeline
from tests.reference.event_pipeline import Pipeline

STAGES = (1, 2, 3, 4, 7, 8, 16)
PLANS = [
    (stages, microbatches)
    for stages in STAGES
    for microbatches in sorted({stages, stages + 1, 2 * stages, 3 * stages + 2, 48})
]
COSTS = ((1.0, 2.0), (1.0, 1.0), (2.0, 1.0), (1.0, 3.0))
INTERLEAVED = [(p, v, p * k) for p in (2, 4, 8) for v in (2, 3, 4) for k in (1, 2, 4)]
SIZE = 1 * 4096 * 8192 * 2.0
"""Bytes of one microbatch between two stages: sequences, tokens, width, bytes of an element."""
WIDE = {"gpu_rate": 50e9, "nvlink_rate": 900e9, "nvlink_latency": 1e-6, "hop_latency": 6e-6}


@functools.cache
def made(sequence_parallel: float, buckets: float, domain: float) -> dict[str, np.ndarray]:
    """The pipeline exchange of every plan, four GPUs to a layer."""
    stages, microbatches = np.array(PLANS, float).T
    given = {"pipeline_parallel": stages, "microbatches": microbatches, "tensor_parallel": 4.0}
    given |= {"gpus": 64.0 * stages, "parameters": 1e9, "layers": 96.0, "width": 8192.0}
    given |= {"sequence_length": 4096.0, "microbatch_size": 1.0, "buckets_pipeline": buckets}
    given |= {"sequence_parallel": sequence_parallel, "nvlink_domain": domain, "fabric_tiers": 2.0}
    return answer("pipeline", "one_forward_one_backward", {**PATH, **WIDE, **given})


def shares(plans: list[tuple[int, int, int]]) -> np.ndarray:
    """What the workload says about the bubble of (stages, pieces, microbatches)."""
    stages, pieces, microbatches = np.array(plans, float).T
    given = {"pipeline_parallel": stages, "interleave": pieces, "microbatches": microbatches}
    given |= {"gpus": stages, "tensor_parallel": 1.0, "parameters": 1e9, "peak_flops": 1e15}
    given |= {"thermal_design_power": 1e3, "power_cap": 1e3}
    return answer("workload", "dense", given)["bubble_share"]


def hops(stages: int, microbatches: int, costs: tuple[float, float]) -> float:
    return event_pipeline.hops(Pipeline(stages, microbatches, *costs))


@pytest.mark.parametrize("costs", COSTS)
def test_hops_of_the_schedule_have_a_closed_form(costs: tuple[float, float]) -> None:
    """2 (m - ceil(m / p) + p - 2), and one more way and back for a last group of one."""
    for p, m in [(p, m) for p in (2, 3, 4, 7, 8, 16) for m in (1, 2, 3, 8, 10, 16, 17, 50)]:
        exact = 2 * (m - math.ceil(m / p) + p - 2 + (m % p == 1))
        assert hops(p, m, costs) == pytest.approx(exact, abs=1e-6), (p, m)


def test_hops_are_those_of_the_schedule() -> None:
    simulated = [hops(*plan, (1.0, 2.0)) for plan in PLANS]
    np.testing.assert_allclose(made(1.0, 1.0, 8.0)["pipeline_hops"], simulated, atol=1e-6)


def test_the_count_that_is_often_quoted_is_off_where_stages_do_not_divide_microbatches() -> None:
    """2 (m (pp - 1) / pp + pp - 2): exact for a multiple of pp, else up to two hops off."""
    quoted = [2 * (m * (p - 1) / p + p - 2) if p > 1 else 0 for p, m in PLANS]
    error = np.abs(np.array(quoted) - [hops(*plan, (1.0, 2.0)) for plan in PLANS])
    whole = np.array([m % p == 0 for p, m in PLANS])
    assert error[whole].max() < 1e-6
    assert 1 < error.max() < 2


def test_interleaved_hops_are_those_of_the_schedule() -> None:
    stages, pieces, microbatches = np.array(INTERLEAVED, float).T
    given = {"pipeline_parallel": stages, "microbatches": microbatches, "interleave": pieces}
    given |= {"gpus": 64.0 * stages, "parameters": 1e9, "nvlink_domain": 8.0, "fabric_tiers": 2.0}
    found = answer("pipeline", "one_forward_one_backward", {**PATH, **WIDE, **given})
    simulated = [
        event_pipeline.hops(Pipeline(p, m, 1.0 / v, 2.0 / v, pieces=v)) for p, v, m in INTERLEAVED
    ]
    np.testing.assert_allclose(found["pipeline_hops"], simulated, atol=1e-6)


def test_the_schedule_sees_hops_that_are_not_waited_for() -> None:
    """All 2 (pp - 1) m messages one after another would be far more than the step waits for."""
    assert hops(8, 64, (1.0, 2.0)) < 0.15 * 2 * 7 * 64


def test_a_hop_that_takes_long_is_waited_for_as_often() -> None:
    """The count is that of short hops; long ones are not waited for less often."""
    plans = [(p, m) for p, m in PLANS if 1 < p <= 8]
    for stages, microbatches in plans:
        with_hops, without = (
            event_pipeline.finish(Pipeline(stages, microbatches, 1.0, 2.0, hop))
            for hop in (1.5, 0.0)
        )
        assert (with_hops - without) / 1.5 >= hops(stages, microbatches, (1.0, 2.0)) - 1e-9


@pytest.mark.parametrize("costs", COSTS)
def test_bubble_is_that_of_the_schedule(costs: tuple[float, float]) -> None:
    simulated = [event_pipeline.bubble_share(Pipeline(p, m, *costs)) for p, m in PLANS]
    found = shares([(p, 1, m) for p, m in PLANS])
    np.testing.assert_allclose(found, simulated, rtol=1e-12, atol=1e-14)


def test_interleaved_bubble_is_that_of_the_schedule() -> None:
    simulated = [
        event_pipeline.bubble_share(Pipeline(p, m, 1.0 / v, 2.0 / v, pieces=v))
        for p, v, m in INTERLEAVED
    ]
    np.testing.assert_allclose(shares(INTERLEAVED), simulated, rtol=1e-9)


@pytest.mark.parametrize(("stages", "pieces", "microbatches"), INTERLEAVED)
def test_interleaved_stages_wait_for_the_first_way_and_back_only(
    stages: int, pieces: int, microbatches: int
) -> None:
    """Through all pieces and back, 2 (pp v - 1) hops; more microbatches hide all others."""
    pipeline = Pipeline(stages, microbatches, 1.0 / pieces, 2.0 / pieces, pieces=pieces)
    assert event_pipeline.hops(pipeline) == pytest.approx(2 * (stages * pieces - 1), abs=1e-6)


def test_messages_cross_the_fabric_at_the_rate_of_a_port() -> None:
    found = made(0.0, 1.0, 8.0)
    time = SIZE / WIDE["gpu_rate"]
    np.testing.assert_allclose(
        found["pipeline_fabric_transfer_time"], found["pipeline_hops"] * time, rtol=1e-12
    )
    np.testing.assert_allclose(
        found["pipeline_latency"], found["pipeline_hops"] * WIDE["hop_latency"], rtol=1e-12
    )
    assert not found["pipeline_nvlink_transfer_time"].any()


def test_a_job_in_one_domain_leaves_the_fabric_alone() -> None:
    found, across = made(0.0, 1.0, 1024.0), made(0.0, 1.0, 8.0)
    assert not found["pipeline_fabric_transfer_time"].any()
    scale = WIDE["gpu_rate"] / WIDE["nvlink_rate"]
    np.testing.assert_allclose(
        found["pipeline_nvlink_transfer_time"],
        across["pipeline_fabric_transfer_time"] * scale,
        rtol=1e-12,
    )


def test_sequence_parallelism_shares_messages_out() -> None:
    whole, shared = made(0.0, 1.0, 8.0), made(1.0, 1.0, 8.0)
    np.testing.assert_allclose(
        shared["pipeline_fabric_transfer_time"] * 4, whole["pipeline_fabric_transfer_time"]
    )
    np.testing.assert_array_equal(shared["pipeline_latency"], whole["pipeline_latency"])


def test_buckets_cost_latency_and_no_bytes() -> None:
    one, many = made(1.0, 1.0, 8.0), made(1.0, 4.0, 8.0)
    np.testing.assert_allclose(
        many["pipeline_fabric_transfer_time"], one["pipeline_fabric_transfer_time"], rtol=1e-12
    )
    np.testing.assert_allclose(many["pipeline_latency"], 4 * one["pipeline_latency"], rtol=1e-12)
