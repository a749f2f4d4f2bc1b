"""The exchanges of a step, from the inputs to the step's parts, against plain Python floats."""

import dataclasses
import functools
from collections.abc import Iterator
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
from tests.answers import precision
from tests.reference import exchanges as reference
from tests.reference import step as plain

LANES = 96
SEEN = ("data", "expert", "pipeline")
PARTS = [f"step_time_{part}" for part in plain.PARTS]
CLEAN = {
    "data": ("nvlink_transfer_time", "fabric_transfer_time", "exchange_latency", "fabric_hops"),
    "tensor": ("tensor_transfer_time", None, "tensor_latency", None),
    "expert": (
        "expert_nvlink_transfer_time", "expert_fabric_transfer_time", "expert_latency",
        "expert_fabric_hops",
    ),
    "pipeline": (
        "pipeline_nvlink_transfer_time", "pipeline_fabric_transfer_time", "pipeline_latency", None,
    ),
}  # fmt: skip
TIMES = {
    "data": "allreduce_time", "tensor": "tensor_exchange_time",
    "expert": "expert_exchange_time", "pipeline": "pipeline_exchange_time",
}  # fmt: skip
OUTPUTS = [
    *(name for names in CLEAN.values() for name in names if name is not None), *TIMES.values(),
    *PARTS, "step_time", "exposed_communication_time", "congestion_delay", "compute_time", "bubble",
    "full_clock_compute_time", "tokens_per_second", "data_parallel", "payload",
]  # fmt: skip
FIXED = {
    "placement": "worst", "routing": "adaptive", "path": "fat_tree", "congestion": "none",
    "collective": "hierarchical", "pipeline": "one_forward_one_backward", "jitter": "barrier",
    "noise": "lognormal", "loss": "go_back_n", "exchange": "additive", "cooling": "single_phase",
}  # fmt: skip
CHOICES: dict[str, dict[str, str]] = {
    "replicated": {
        "workload": "dense", "operation": "replicated", "tensor": "ring_reduced",
        "expert": "none", "step": "synchronous",
    },
    "zero_1": {
        "workload": "mixture_of_experts", "operation": "zero_1", "tensor": "switch_reduced",
        "expert": "direct", "step": "overlapped",
    },
    "zero_3": {
        "workload": "mixture_of_experts", "operation": "zero_3", "tensor": "ring_reduced",
        "expert": "relayed", "step": "overlapped",
    },
}  # fmt: skip
every_choice = pytest.mark.parametrize("choice", CHOICES)
UNREAD = {
    **dict.fromkeys((*quantities(Cooling), *quantities(Congestion)), 1.0),
    **dict.fromkeys((*quantities(Jitter), *quantities(Loss)), 0.0),
    "thermal_design_power": 1e3, "power_cap": 1e3,
}  # fmt: skip
"""What is no part of the reference, given so that it need not be computed."""

Lanes = dict[str, np.ndarray]


@functools.cache
def configurations() -> Lanes:
    """Random clusters and jobs whose groups fill their NVLink domains, with effects and windows."""
    generator = np.random.default_rng(61)

    def between(low: float, high: float) -> np.ndarray:
        return np.exp(generator.uniform(np.log(low), np.log(high), LANES))

    def one_of(*values: float) -> np.ndarray:
        return generator.choice(np.array(values, float), LANES)

    tensor, pipeline = one_of(1, 2, 4, 8), one_of(1, 2, 4, 16)
    data = one_of(1, 2, 8, 64, 256)
    given = {
        "tensor_parallel": tensor, "pipeline_parallel": pipeline, "gpus": data * tensor * pipeline,
        "nvlink_domain": np.maximum(one_of(1, 8, 64), tensor),
        "expert_parallel": np.minimum(one_of(1, 2, 8, 32), data),
        "expert_parameter_share": generator.uniform(0.1, 0.99, LANES), "experts": one_of(8, 256),
        "active_experts": one_of(1, 2, 8), "expert_layers": one_of(12, 58),
        "layers": one_of(64, 126),
        "width": one_of(4096, 16384), "activation_element_size": one_of(1, 2),
        "sequence_parallel": one_of(0, 1), "parameters": between(1e9, 1e13),
        "peak_flops": between(3e14, 5e15), "gradient_element_size": one_of(1, 2, 4),
        "sequence_length": one_of(2048, 8192), "microbatch_size": one_of(1, 2),
        "microbatches": one_of(16, 24, 64), "interleave": one_of(1, 2, 4),
        "compute_efficiency": between(0.2, 0.7), "compute_bound_share": generator.random(LANES),
        "nvlink_rate": between(2e10, 2e12), "nvlink_latency": between(3e-7, 3e-6),
        "nvlink_reduction_efficiency": between(0.5, 1), "link_rate": between(2.5e10, 2e11),
        "payload_fraction": between(0.8, 1), "oversubscription": between(1, 4),
        "routing_efficiency": between(0.4, 1), "switch_latency": between(1e-7, 1e-6),
        "adapter_latency": between(5e-7, 3e-6), "error_correction_latency": between(5e-8, 2e-7),
        "cable_length": between(2, 200), "switch_radix": one_of(64, 144, 512),
        "slowest_clock_fraction": generator.uniform(0.2, 1, LANES),
        "congestion_efficiency": between(0.3, 1), "queueing_delay": between(1e-7, 3e-5),
    }  # fmt: skip
    windows = generator.dirichlet(np.ones(4), LANES)
    for number, name in enumerate(SEEN):
        given[f"overlap_window_{name}"] = windows[:, number] * (generator.random(LANES) < 0.8)
        given[f"buckets_{name}"] = one_of(1, 4, 32)
        given[f"{name}_jitter_stall"] = between(1e-6, 1)
        given[f"{name}_loss_stall"] = between(1e-6, 10)
    for stall in ("jitter_stall", "loss_stall"):
        given[stall] = np.sum([given[f"{name}_{stall}"] for name in SEEN], axis=0)
    return {name: np.asarray(value, float) for name, value in given.items()}


@functools.cache
def made(choice: str) -> Lanes:
    """The product's answers; quantities without a number take their defaults."""
    chosen = FIXED | CHOICES[choice]
    model = Model(*(ANSWERS[question][name] for question, name in chosen.items()))
    given: dict[str, Any] = UNREAD | configurations()
    with precision(np.float64):
        known = {}
        for name, declared in model.quantities.items():
            value = given.get(name, None if model.computed(name) else declared.default)
            if value is not None:
                known[name] = jnp.asarray(np.broadcast_to(value, LANES), np.float64)
        evaluated = jax.jit(lambda numbers: model(numbers, {}, OUTPUTS))(known)
        return {name: np.asarray(value) for name, value in evaluated.items()}


def clean(choice: str, here: dict[str, float]) -> dict[str, reference.Exchange]:
    """Every exchange of one configuration; buckets are calls whether or not they hide."""
    chosen = CHOICES[choice]
    experts = chosen["workload"] == "mixture_of_experts"
    buckets = {name: here[f"buckets_{name}"] for name in SEEN}
    tokens = reference.Exchange()
    if experts:
        relayed = chosen["expert"] == "relayed"
        tokens = reference.expert(here, buckets["expert"], relayed=relayed)
    return {
        "data": reference.data(here, chosen["operation"], buckets["data"], experts=experts),
        "tensor": reference.tensor(here, switches=chosen["tensor"] == "switch_reduced"),
        "expert": tokens,
        "pipeline": reference.pipeline(here, buckets["pipeline"]),
    }


def effected(
    here: dict[str, float], every: dict[str, reference.Exchange], full: float, *, hides: bool
) -> Iterator[reference.Effected]:
    """Each exchange with its effects; none is seen by tensor parallelism inside the domain."""
    efficiency, queue = here["congestion_efficiency"], here["queueing_delay"]
    for name, exchange in every.items():
        if name == "tensor":
            yield reference.Effected(exchange)
            continue
        yield reference.Effected(
            exchange,
            reference.congested(exchange, efficiency, queue),
            here[f"{name}_jitter_stall"],
            here[f"{name}_loss_stall"],
            here[f"overlap_window_{name}"] * full if hides else 0.0,
            here[f"buckets_{name}"] if hides else 1.0,
        )


def row(choice: str, here: dict[str, float]) -> dict[str, float]:
    """The reference's answers for one configuration."""
    chosen = CHOICES[choice]
    experts = chosen["workload"] == "mixture_of_experts"
    every = clean(choice, here)
    full = reference.compute(here, experts=experts)
    seen = list(effected(here, every, full, hides=chosen["step"] == "overlapped"))
    work = reference.Work(
        full, plain.bubble_share(here), here["compute_bound_share"], here["slowest_clock_fraction"]
    )
    answer = reference.step(work, seen) | {"full_clock_compute_time": full}
    answer["tokens_per_second"] = plain.tokens(here) / answer["step_time"]
    answer["data_parallel"] = plain.data_parallel(here)
    answer["payload"] = sum(size for size, _, _ in reference.groups(here, experts=experts))
    answer["congestion_delay"] = sum(one.congestion for one in seen)
    for name, one in zip(every, seen, strict=True):
        kept = (one.clean.inside, one.clean.across, one.clean.latency, one.clean.hops)
        answer |= {q: value for q, value in zip(CLEAN[name], kept, strict=True) if q is not None}
        time = one.clean.transfer + one.clean.latency + one.congestion + one.jitter + one.loss
        answer[TIMES[name]] = time
    return answer


@functools.cache
def expected(choice: str) -> Lanes:
    given = configurations()
    rows = [row(choice, {n: float(v[lane]) for n, v in given.items()}) for lane in range(LANES)]
    return {name: np.array([r[name] for r in rows]) for name in OUTPUTS}


@every_choice
@pytest.mark.parametrize("name", CLEAN)
def test_exchange_is_that_of_plain_python(choice: str, name: str) -> None:
    for quantity in (q for q in CLEAN[name] if q is not None):
        np.testing.assert_allclose(
            made(choice)[quantity], expected(choice)[quantity], rtol=1e-11, err_msg=quantity
        )


@every_choice
def test_step_is_that_of_plain_python(choice: str) -> None:
    found, exact = made(choice), expected(choice)
    for name in OUTPUTS:
        # parts are differences of totals in the reference, which lose digits of the step time
        lost = 1e-14 * exact["step_time"] if name in PARTS else 0.0
        error = np.abs(found[name] - exact[name])
        assert np.all(error <= 1e-11 * np.abs(exact[name]) + lost), name


@every_choice
def test_parts_add_up_to_the_step(choice: str) -> None:
    found = made(choice)
    total = np.sum([found[part] for part in PARTS], axis=0)
    assert np.all(np.abs(total - found["step_time"]) <= 8 * np.spacing(found["step_time"]))
    assert min(found[part].min() for part in PARTS) >= 0


def test_configurations_reach_every_kind_of_exchange() -> None:
    """Each exchange is inside the domain in some, across the fabric in some, and absent in some."""
    exact = expected("zero_3")
    for name in ("data", "expert", "pipeline"):
        inside, across = (exact[quantity] > 0 for quantity in CLEAN[name][:2])
        assert inside.any()
        assert across.any()
        assert (~inside & ~across).any()
    assert np.any(exact["tensor_transfer_time"] > 0)


def test_experts_travel_apart_from_the_dense_part() -> None:
    """Their gradients go over dp / ep ranks: one group for all would be another exchange."""
    given = configurations()
    wrong = []
    for lane in range(LANES):
        here = {name: float(value[lane]) for name, value in given.items()}
        whole = here | {"parameters": 1.0, "gradient_element_size": 1.0}
        size = sum(payload for payload, _, _ in reference.groups(here, experts=True))
        whole["gradient_element_size"] = size * here["tensor_parallel"] * here["pipeline_parallel"]
        wrong.append(reference.data(whole, "zero_1", here["buckets_data"]).latency)
    split = (given["expert_parallel"] > 1) & (given["gpus"] > 512)
    right = made("zero_1")["exchange_latency"]
    assert split.any()
    assert not np.any(np.isclose(np.array(wrong)[split], right[split], rtol=1e-6))


def test_an_exchange_without_its_buckets_is_caught() -> None:
    given = configurations()
    many = (given["buckets_data"] > 1) & (expected("zero_1")["exchange_latency"] > 0)
    late = made("zero_1")["exchange_latency"][many]
    once = expected("zero_1")["exchange_latency"][many] / given["buckets_data"][many]
    assert np.all(late > 1.5 * once)


def test_the_reference_hides_what_a_window_holds() -> None:
    """All but the last of four buckets fits a window of 3.5 s, and then more than that."""
    one = reference.Effected(reference.Exchange(1.0, 2.0, 0.5, 4), 0.25, 0.125, 0.0625)
    assert one.after_each() == [3.0, 3.5, 3.75, 3.875, 3.9375]
    hidden = dataclasses.replace(one, window=3.5, buckets=4.0)
    assert hidden.after_each() == [0.75, 0.875, 0.9375, 0.96875, 0.984375]
