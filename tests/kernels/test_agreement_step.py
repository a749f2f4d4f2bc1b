"""One training step, from the inputs to its parts, against plain Python floats."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fabric_kernels.catalogue import ANSWERS
from fabric_kernels.congestion import Congestion
from fabric_kernels.cooling import Cooling
from fabric_kernels.jitter import Jitter
from fabric_kernels.loss import Loss
from fabric_kernels.model import Model
from fabric_kernels.quantity import quantities
from fabric_kernels.tensor import Tensor
from tests.answers import precision
from tests.reference import step as reference

LANES = 64
PARTS = [f"step_time_{part}" for part in reference.PARTS]
OUTPUTS = [
    "step_time", *PARTS, "compute_time", "bubble", "exposed_communication_time",
    "scaling_efficiency", "model_flop_utilisation", "tokens_per_second", "congestion_delay",
    "allreduce_time", "algorithm_bandwidth", "bus_bandwidth", "data_parallel", "payload",
    "full_clock_compute_time", "bubble_share", "tokens_per_step", "hop_latency", "gpu_rate",
]  # fmt: skip
CHOICE = {
    "operation": "replicated", "placement": "worst", "routing": "adaptive",
    "tensor": "ring_reduced", "expert": "none", "pipeline": "none", "workload": "dense",
    "path": "fat_tree", "congestion": "none", "collective": "hierarchical",
    "jitter": "barrier", "noise": "lognormal", "loss": "go_back_n", "exchange": "additive",
    "cooling": "single_phase", "step": "synchronous",
}  # fmt: skip
UNREAD = {
    **dict.fromkeys((*quantities(Cooling), *quantities(Congestion)), 1.0),
    **dict.fromkeys((*quantities(Tensor), *quantities(Jitter), *quantities(Loss)), 0.0),
    "thermal_design_power": 1e3, "power_cap": 1e3,
}  # fmt: skip
"""What is no part of the reference, given so that it need not be computed."""
EFFECTS = (
    "slowest_clock_fraction", "congestion_efficiency", "queueing_delay", "jitter_stall",
    "loss_stall",
)  # fmt: skip


def configurations() -> dict[str, np.ndarray]:
    """Random clusters and jobs that fill their NVLink domains, with effects of every size."""
    generator = np.random.default_rng(60)

    def between(low: float, high: float) -> np.ndarray:
        return np.exp(generator.uniform(np.log(low), np.log(high), LANES))

    tensor = generator.choice([1, 2, 4, 8], LANES)
    pipeline = generator.choice([1, 2, 8, 16], LANES)
    domain = generator.choice([8, 72], LANES)
    data = domain // tensor * generator.choice([1, 2, 16, 100], LANES)
    given = {
        "gpus": data * tensor * pipeline, "tensor_parallel": tensor, "pipeline_parallel": pipeline,
        "nvlink_domain": domain, "parameters": between(1e9, 1e13),
        "peak_flops": between(3e14, 5e15),
        "gradient_element_size": generator.choice([1.0, 2.0, 4.0], LANES),
        "sequence_length": generator.choice([2048, 8192], LANES), "microbatch_size": np.ones(LANES),
        "microbatches": generator.choice([8, 16, 64], LANES),
        "interleave": generator.choice([1, 2, 4], LANES), "compute_efficiency": between(0.2, 0.7),
        "compute_bound_share": generator.uniform(0, 1, LANES), "nvlink_rate": between(2e11, 2e12),
        "nvlink_latency": between(3e-7, 3e-6), "link_rate": between(2.5e10, 2e11),
        "payload_fraction": between(0.8, 1), "oversubscription": between(1, 4),
        "routing_efficiency": between(0.4, 1), "switch_latency": between(1e-7, 1e-6),
        "adapter_latency": between(5e-7, 3e-6), "error_correction_latency": between(5e-8, 2e-7),
        "cable_length": between(2, 200), "switch_radix": generator.choice([64, 144, 512], LANES),
        "slowest_clock_fraction": generator.uniform(0.2, 1, LANES),
        "congestion_efficiency": between(0.3, 1), "queueing_delay": between(1e-7, 3e-5),
        "jitter_stall": between(1e-6, 1), "loss_stall": between(1e-6, 10),
    }  # fmt: skip
    for name in ("jitter_stall", "loss_stall", "queueing_delay"):
        given[name][::7] = 0.0
    given |= {f"data_{name}": given[name] for name in ("jitter_stall", "loss_stall")}
    return {name: np.float32(value).astype(float) for name, value in given.items()}


def evaluated(given: dict[str, np.ndarray], dtype: Any) -> dict[str, np.ndarray]:
    """The product's answers; quantities without a number take their defaults."""
    model = Model(*(ANSWERS[question][name] for question, name in CHOICE.items()))
    with precision(dtype):
        known = {}
        for name, declared in model.quantities.items():
            value = (UNREAD | given).get(name, None if model.computed(name) else declared.default)
            if value is not None:
                known[name] = jnp.asarray(np.broadcast_to(value, LANES), dtype)
        made = jax.jit(lambda numbers: model(numbers, {}, OUTPUTS))(known)
        return {name: np.asarray(value) for name, value in made.items()}


def expected(given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The reference's answers, one configuration after another."""
    rows = []
    for lane in range(LANES):
        here = {name: float(value[lane]) for name, value in given.items()}
        effects = reference.Effects(**{name: here[name] for name in EFFECTS})
        row = reference.step(here, effects, reference.Overlap())
        row |= {
            "data_parallel": reference.data_parallel(here),
            "payload": reference.payload(here),
            "full_clock_compute_time": reference.full_clock_compute(here),
            "bubble_share": reference.bubble_share(here),
            "tokens_per_step": reference.tokens(here),
            "hop_latency": reference.hop_latency(here),
            "gpu_rate": reference.gpu_rate(here),
        }
        rows.append(row)
    return {name: np.array([row[name] for row in rows]) for name in OUTPUTS}


@pytest.fixture(scope="module")
def given() -> dict[str, np.ndarray]:
    """The configurations of every test."""
    return configurations()


@pytest.fixture(scope="module")
def single(given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The product in float32."""
    return evaluated(given, np.float32)


def test_step_is_that_of_plain_python(given: dict[str, np.ndarray]) -> None:
    made, exact = evaluated(given, np.float64), expected(given)
    assert exact["bubble"].max() > 0
    assert exact["exposed_communication_time"].min() >= 0
    for name in OUTPUTS:
        # parts are differences of totals in the reference, which lose digits of the step time
        lost = 1e-14 * exact["step_time"] if name in PARTS else 0.0
        error = np.abs(made[name] - exact[name])
        assert np.all(error <= 1e-11 * np.abs(exact[name]) + lost), name


def test_float32_keeps_six_digits(
    given: dict[str, np.ndarray], single: dict[str, np.ndarray]
) -> None:
    exact = expected(given)
    for name in OUTPUTS:
        lost = 1e-14 * exact["step_time"] if name in PARTS else 0.0
        if name in ("step_time_congestion", "congestion_delay"):
            # 1 / efficiency - 1 loses digits where the efficiency is nearly 1
            lost = 1e-6 * exact["allreduce_time"]
        if name == "step_time_thermal":
            lost = 1e-6 * exact["compute_time"]  # so does 1 - clock
        error = np.abs(single[name] - exact[name])
        assert np.all(error <= 3e-6 * np.abs(exact[name]) + lost), name


def test_parts_add_up_to_the_step(single: dict[str, np.ndarray]) -> None:
    total = np.sum([single[part].astype(float) for part in PARTS], axis=0)
    ulp = np.spacing(single["step_time"])
    assert np.all(np.abs(total - single["step_time"]) <= 8 * ulp)
    assert all(np.all(single[part] >= 0) for part in PARTS)


def test_a_bubble_at_full_clock_is_caught(given: dict[str, np.ndarray]) -> None:
    made = evaluated(given, np.float64)
    clock = given["slowest_clock_fraction"]
    slowdown = given["compute_bound_share"] * (1 - clock) / clock
    wrong = made["full_clock_compute_time"] * slowdown  # the bubble does not slow down
    piped = given["pipeline_parallel"] > 1
    assert not np.any(np.isclose(wrong[piped], made["step_time_thermal"][piped], rtol=1e-6, atol=0))
