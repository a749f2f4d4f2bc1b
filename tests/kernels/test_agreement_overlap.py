"""What compute hides of every exchange, and the parts of the step, against plain Python floats."""

import functools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric_kernels.catalogue import REFUSALS
from fabric_kernels.collective import Collective
from fabric_kernels.congestion import Congestion
from fabric_kernels.cooling import Cooling
from fabric_kernels.exchange import Exchange
from fabric_kernels.expert import Expert
from fabric_kernels.inputs import Overlap
from fabric_kernels.jitter import Jitter
from fabric_kernels.loss import Loss
from fabric_kernels.pipeline import Pipeline
from fabric_kernels.quantity import quantities
from fabric_kernels.step.overlapped import overlapped
from fabric_kernels.tensor import Tensor
from fabric_kernels.workload import Workload
from tests.answers import answer, record_of
from tests.reference import exchanges as reference
from tests.reference.step import PARTS as PART_NAMES

LANES = 200
PARTS = [f"step_time_{name}" for name in PART_NAMES]
SEEN = ("data", "expert", "pipeline")
RECORDS = (Collective, Congestion, Cooling, Exchange, Expert, Jitter, Loss, Pipeline, Tensor)
RECORDS += (Workload,)
QUIET = dict.fromkeys((name for kind in RECORDS for name in quantities(kind)), 1.0)
JOB = {
    "gpus": 1024.0, "parameters": 1e12, "peak_flops": 1e15, "thermal_design_power": 1e3,
    "power_cap": 1e3, "data_parallel": 16.0, "tensor_parallel": 8.0, "pipeline_parallel": 8.0,
}  # fmt: skip
CLEAN = {
    "data": ("nvlink_transfer_time", "fabric_transfer_time", "exchange_latency", "fabric_hops"),
    "tensor": ("tensor_transfer_time", None, "tensor_latency", None),
    "expert": (
        "expert_nvlink_transfer_time", "expert_fabric_transfer_time", "expert_latency",
        "expert_fabric_hops",
    ),
    "pipeline": (
        "pipeline_nvlink_transfer_time", "pipeline_fabric_transfer_time", "pipeline_latency",
        "pipeline_hops",
    ),
}  # fmt: skip
"""Where the records keep what an exchange takes."""

Lanes = dict[str, Any]


def between(generator: np.random.Generator, low: float, high: float, lanes: int) -> np.ndarray:
    return np.float32(np.exp(generator.uniform(np.log(low), np.log(high), lanes))).astype(float)


def drawn(seed: int, lanes: int) -> Lanes:
    """Steps with exchanges, effects, windows and buckets of every size, exact in float32."""
    generator = np.random.default_rng(seed)

    def times(low: float, high: float) -> np.ndarray:
        values = between(generator, low, high, lanes)
        return np.where(generator.random(lanes) < 0.15, 0.0, values)

    made: Lanes = {"full_clock_compute_time": between(generator, 1e-2, 1e2, lanes)}
    made["bubble_share"] = np.float32(generator.uniform(0, 1, lanes)).astype(float)
    made["slowest_clock_fraction"] = np.float32(generator.uniform(0.2, 1, lanes)).astype(float)
    made["compute_bound_share"] = np.float32(generator.uniform(0, 1, lanes)).astype(float)
    for inside, across, latency, hops in CLEAN.values():
        made[inside], made[latency] = times(1e-3, 20), times(1e-5, 1)
        if across is not None and hops is not None:
            made[across], made[hops] = times(1e-3, 20), np.round(times(1, 1e4))
    shares = generator.dirichlet(np.ones(4), lanes)
    for number, name in enumerate(SEEN):
        made[f"{name}_congestion_delay"] = times(1e-4, 10)
        made[f"{name}_jitter_stall"], made[f"{name}_loss_stall"] = times(1e-4, 1), times(1e-4, 5)
        window = np.where(generator.random(lanes) < 0.25, 0.0, shares[:, number])
        made[f"overlap_window_{name}"] = np.float32(window).astype(float)
        made[f"buckets_{name}"] = generator.choice([1.0, 2.0, 10.0, 300.0], lanes)
    return made


def whole(lanes: Lanes) -> Lanes:
    """With the times of the exchanges, every effect in, as the exchange stage gives them."""
    totals: Lanes = {}
    times = {"data": "allreduce_time", "tensor": "tensor_exchange_time"}
    times |= {name: f"{name}_exchange_time" for name in ("expert", "pipeline")}
    for name, (inside, across, latency, _) in CLEAN.items():
        parts = [lanes[part] for part in (inside, across, latency) if part is not None]
        if name in SEEN:
            effects = ("congestion_delay", "jitter_stall", "loss_stall")
            parts += [lanes[f"{name}_{effect}"] for effect in effects]
        totals[times[name]] = np.sum(parts, axis=0)
    for effect in ("congestion_delay", "jitter_stall", "loss_stall"):
        totals[effect] = np.sum([lanes[f"{name}_{effect}"] for name in SEEN], axis=0)
    return QUIET | JOB | lanes | totals


@functools.cache
def found(name: str, dtype: type) -> dict[str, np.ndarray]:
    return answer("step", name, whole(drawn(5, LANES)), dtype=dtype)


def effected(lanes: Lanes, lane: int, *, hides: bool) -> list[reference.Effected]:
    """The exchanges of one lane; of a synchronous step nothing hides."""

    def of(name: str | None) -> float:
        return 0.0 if name is None else float(lanes[name][lane])

    made = []
    for name, (inside, across, latency, hops) in CLEAN.items():
        clean = reference.Exchange(of(inside), of(across), of(latency), of(hops))
        if name not in SEEN:
            made.append(reference.Effected(clean))
            continue
        late, noisy, lost = (
            of(f"{name}_{e}") for e in ("congestion_delay", "jitter_stall", "loss_stall")
        )
        window = of(f"overlap_window_{name}") * of("full_clock_compute_time") if hides else 0.0
        buckets = of(f"buckets_{name}") if hides else 1.0
        made.append(reference.Effected(clean, late, noisy, lost, window, buckets))
    return made


def expected(lanes: Lanes, *, hides: bool) -> dict[str, np.ndarray]:
    rows = []
    for lane in range(len(lanes["bubble_share"])):
        work = reference.Work(
            *(
                float(lanes[name][lane])
                for name in (
                    "full_clock_compute_time", "bubble_share", "compute_bound_share",
                    "slowest_clock_fraction",
                )
            )
        )  # fmt: skip
        rows.append(reference.step(work, effected(lanes, lane, hides=hides)))
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


@pytest.mark.parametrize("name", ["overlapped", "synchronous"])
def test_step_is_that_of_plain_python(name: str) -> None:
    exact = expected(drawn(5, LANES), hides=name == "overlapped")
    for quantity, value in exact.items():
        # parts are differences of totals in the reference, which lose digits of the step time
        lost = 1e-14 * exact["step_time"] if quantity in PARTS else 0.0
        error = np.abs(found(name, np.float64)[quantity] - value)
        assert np.all(error <= 1e-12 * np.abs(value) + lost), quantity


def test_the_lanes_hide_and_show() -> None:
    """Windows that hide all but the last bucket, that hide a part, and none."""
    lanes = drawn(5, LANES)
    kinds = set()
    for lane in range(LANES):
        for one in effected(lanes, lane, hides=True):
            time = one.after_each()[-1]
            rest = one.clean.transfer + one.clean.latency + one.congestion + one.jitter + one.loss
            kinds.add("none" if time == rest else "all" if time == rest / one.buckets else "part")
    assert kinds == {"none", "all", "part"}


@pytest.mark.parametrize("name", ["overlapped", "synchronous"])
def test_parts_add_up_to_the_step(name: str) -> None:
    made = found(name, np.float32)
    total = np.sum([made[part].astype(float) for part in PARTS], axis=0)
    assert np.all(np.abs(total - made["step_time"]) <= 8 * np.spacing(made["step_time"]))
    assert min(made[part].min() for part in PARTS) >= 0


def test_float32_keeps_six_digits() -> None:
    exact = expected(drawn(5, LANES), hides=True)
    for quantity, value in exact.items():
        error = np.abs(found("overlapped", np.float32)[quantity] - value)
        # a part is what is left of times that may be as long as the exchange or the window
        scale = exact["step_time"] + exact["compute_time"] if quantity in PARTS else np.abs(value)
        lanes = whole(drawn(5, LANES))
        times = ("allreduce_time", "expert_exchange_time", "pipeline_exchange_time")
        hidden = sum(lanes[time] for time in times) if quantity != "compute_time" else 0.0
        assert np.all(error <= 2e-6 * scale + 3e-7 * hidden), quantity


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_parts_add_up_for_any_windows(seed: int) -> None:
    """Within 8 units in the last place of float32, and none below 0."""
    made = answer("step", "overlapped", whole(drawn(seed, LANES)), dtype=np.float32)
    total = np.sum([made[part].astype(float) for part in PARTS], axis=0)
    assert np.all(np.abs(total - made["step_time"]) <= 8 * np.spacing(made["step_time"]))
    assert min(made[part].min() for part in PARTS) >= 0
    exposed = made["compute_time"] + made["bubble"] + made["exposed_communication_time"]
    np.testing.assert_allclose(made["step_time"], exposed, rtol=1e-6)


def test_a_wider_window_never_costs_time() -> None:
    lanes = drawn(6, LANES)
    narrow = {f"overlap_window_{name}": lanes[f"overlap_window_{name}"] / 2 for name in SEEN}
    wide = answer("step", "overlapped", whole(lanes))["step_time"]
    assert np.all(answer("step", "overlapped", whole(lanes | narrow))["step_time"] >= wide)


def test_without_windows_a_step_is_synchronous() -> None:
    lanes = drawn(7, LANES)
    closed = {f"overlap_window_{name}": np.zeros(LANES) for name in SEEN}
    hiding = answer("step", "overlapped", whole(lanes | closed))
    for name, value in answer("step", "synchronous", whole(lanes)).items():
        np.testing.assert_allclose(hiding[name], value, rtol=1e-12, atol=1e-13, err_msg=name)


def test_one_bucket_hides_nothing() -> None:
    """The last bucket starts when compute ends; with one bucket it is the whole exchange."""
    lanes = drawn(8, LANES) | {f"buckets_{name}": np.ones(LANES) for name in SEEN}
    hiding = answer("step", "overlapped", whole(lanes))["step_time"]
    waiting = answer("step", "synchronous", whole(lanes))["step_time"]
    np.testing.assert_allclose(hiding, waiting, rtol=1e-12)


def test_windows_beyond_all_compute_are_refused() -> None:
    def refusal(data: float, expert: float, pipeline: float) -> str | None:
        windows = {
            f"overlap_window_{n}": w for n, w in zip(SEEN, (data, expert, pipeline), strict=True)
        }
        return REFUSALS[overlapped](record_of(Overlap, windows, np.float32))

    assert refusal(0.5, 0.3, 0.2) is None
    why = refusal(0.5, 0.4, 0.2)
    assert why is not None
    for words in ("sum to 1.1", "at most 1", "lower overlap_window_data"):
        assert words in why


def test_a_window_taken_twice_is_caught() -> None:
    """Windows are disjoint: a reference that lends one window to all would see less exposed."""
    lanes = drawn(5, LANES)
    shared = sum(lanes[f"overlap_window_{name}"] for name in SEEN)
    wrong = expected(
        lanes | {f"overlap_window_{name}": shared for name in SEEN}, hides=True
    )["exposed_communication_time"]  # fmt: skip
    right = found("overlapped", np.float64)["exposed_communication_time"]
    assert np.mean(np.isclose(wrong, right, rtol=1e-9)) < 0.6
