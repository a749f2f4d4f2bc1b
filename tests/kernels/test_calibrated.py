"""Calibrated collectives: a second writing of the formulas, their limits, invariants."""

import math
import random
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike, DTypeLike

from fabric_kernels.collective import ALGORITHMS, PROTOCOLS
from fabric_kernels.collective.calibrated import calibrated_refusal
from fabric_kernels.collective.calibrated_model import Fabric, calibrated_cost
from fabric_kernels.collective.nccl_model import OPERATIONS, Cost, Group
from fabric_kernels.inputs import Calibration, ScaleOut
from fabric_kernels.model import ModelError
from fabric_kernels.quantity import quantities
from tests.answers import record_of

DEFAULTS = {n: q.default for n, q in quantities(Calibration).items() if q.default is not None}
HOPPER = DEFAULTS | {"ring_rate": 370e9, "reduction_rate": 260e9, "adds": 1}
AMPERE = DEFAULTS | {"ring_rate": 240e9, "reduction_rate": 94e9, "adds": 0}
LANES = 64
KERNELS = {o: jax.jit(lambda *given, o=o: calibrated_cost(o, *given)) for o in OPERATIONS}


def found(
    operation: str,
    size: ArrayLike,
    domains: ArrayLike,
    per_domain: ArrayLike,
    rate: ArrayLike,
    parameters: Mapping[str, ArrayLike],
    dtype: DTypeLike = np.float32,
) -> Cost:
    def lane(value: ArrayLike) -> jax.Array:
        return jnp.asarray(np.broadcast_to(np.asarray(value, dtype), (1, LANES)))

    with jax.enable_x64(np.dtype(dtype) == np.float64):
        own = {n: lane(parameters[n]) for n in quantities(Calibration)}
        group = Group(lane(size), lane(domains), lane(per_domain))
        fabric = Fabric(lane(rate), lane(parameters["adds"]))
        made = KERNELS[operation](group, fabric, Calibration(**own))
        return Cost(*(np.asarray(part)[0] for part in made))


def by_hand(
    operation: str, size: float, domains: int, per_domain: int, rate: float, p: Mapping[str, float]
) -> float:
    """The same time in plain Python, from the formulas in words."""
    ranks, several, reduces = domains * per_domain, domains > 1, operation == "all_reduce"
    levels = int(math.log2(domains) + 1e-9)

    def whole(latency: float, fill: float, transfer: float) -> float:
        return latency + transfer + (0 if transfer == 0 else 1 / (1 / fill + 1 / transfer))

    chunks = 25e-6 + 2 * levels * (
        p["chunk_hop_latency"] + p["chunk_delay_factor"] * p["fabric_delay"]
    )
    wire = p["fabric_efficiency"] * rate * (1 if reduces else p["gather_efficiency"])
    if several and per_domain > 1:
        wire = min(wire, p["ring_rate"] * per_domain / (per_domain - 1))
    bus = wire if several else p["ring_rate"]
    phases = 2 if reduces else 1
    ring_fill = p["ring_fill"] * ranks * phases / 2
    ring_latency = chunks * (0.5 if several and not reduces else 1)
    times = [whole(ring_latency, ring_fill, phases * size * (ranks - 1) / ranks / bus)]
    start = p["start_latency"] if several else 0
    if reduces:
        inside = p["reduction_rate"]
        if per_domain <= 2:
            inside = min(inside, 0.92 * 0.85 / 2 * p["ring_rate"])
        across = {1: math.inf, 2: 1, 3: 2 / 3}.get(domains, 0.5)
        across *= p["fabric_efficiency"] * rate * (1 if p["adds"] else 0.92)
        tree = min(across, math.inf if several and per_domain == 1 else inside)
        fill = p["domain_fill"] * per_domain * (2 if several else 1)
        times.append(whole(chunks, fill, size / tree))
        hops = (per_domain - 1) * 0.6e-6 + levels * (5e-6 + p["fabric_delay"])
        times.append(6.8e-6 + 2 * hops + start + 2 * size / p["small_message_rate"])
    else:
        near = p["gather_hop_latency"] if several else 0.6e-6
        far = (5e-6 if per_domain == 1 else 2.7e-6) + p["fabric_delay"]
        hops = domains * (per_domain - 1) * near + (domains - 1) * far
        times.append(6.6e-6 + hops + start + size / p["small_message_rate"])
    return min(times)


def drawn(count: int, seed: int) -> list[tuple[float, int, int, float, dict[str, float]]]:
    pick = random.Random(seed)
    cases = []
    for _ in range(count):
        parameters = {n: v * math.exp(pick.uniform(-0.5, 0.5)) for n, v in DEFAULTS.items()}
        parameters |= {
            "ring_rate": pick.uniform(100e9, 800e9),
            "reduction_rate": pick.uniform(50e9, 500e9),
            "fabric_delay": pick.choice((0.0, 20e-6, 80e-6)),
            "adds": float(pick.random() < 0.5),
        }
        domains, per_domain = pick.choice((1, 2, 3, 4, 12, 128, 180)), pick.choice((1, 2, 8, 72))
        if domains * per_domain > 1:
            rate = pick.uniform(10e9, 4e12)
            cases.append((2.0 ** pick.uniform(3, 36), domains, per_domain, rate, parameters))
    return cases


@pytest.mark.parametrize("operation", OPERATIONS)
def test_formulas_are_those_of_a_second_writing(operation: str):
    cases = drawn(2 * LANES, seed=5)[:LANES]
    sizes, domains, per_domain, rates, parameters = zip(*cases, strict=True)
    lanes = {n: [p[n] for p in parameters] for n in parameters[0]}
    expected = [by_hand(operation, *case) for case in cases]
    for dtype, rounding in ((np.float32, 2e-6), (np.float64, 1e-12)):
        made = found(operation, sizes, domains, per_domain, rates, lanes, dtype)
        assert made.time == pytest.approx(expected, rel=rounding)
    slower = {**lanes, "ring_fill": 1.01 * np.array(lanes["ring_fill"])}
    wrong = found(operation, sizes, domains, per_domain, rates, slower)
    assert np.max(np.abs(wrong.time / expected - 1)) > 2e-6, "a wrong fill would not be seen"


def rate_of_large(operation: str, domains: int, per_domain: int, rate: float, p: dict) -> float:
    """Payload over time of an endless message, B/s."""
    return float((1e15 / found(operation, 1e15, domains, per_domain, rate, p).time)[0])


def test_bounds_of_large_messages():
    e = DEFAULTS["fabric_efficiency"]
    two = rate_of_large("all_reduce", 2, 8, 400e9, HOPPER)
    assert two == pytest.approx(260e9, rel=1e-3)  # the domain is narrower than 8 ports
    slow = rate_of_large("all_reduce", 2, 8, 200e9, HOPPER)
    assert slow == pytest.approx(e * 200e9, rel=1e-3)  # each domain sends its sum once
    three = rate_of_large("all_reduce", 3, 4, 200e9, HOPPER)
    assert three == pytest.approx(2 / 3 * e * 200e9, rel=1e-3)
    many = rate_of_large("all_reduce", 180, 8, 400e9, HOPPER)
    assert many == pytest.approx(e * 400e9 * 1440 / (2 * 1439), rel=1e-3)  # a ring, endless
    old = rate_of_large("all_reduce", 2, 8, 200e9, AMPERE)
    assert old == pytest.approx(e * 200e9 * 16 / 30, rel=1e-3)
    gathered = rate_of_large("all_gather", 2, 8, 400e9, HOPPER)
    share = DEFAULTS["gather_efficiency"]
    assert gathered == pytest.approx(share * e * 400e9 * 16 / 15, rel=1e-3)
    alone = rate_of_large("reduce_scatter", 1, 8, 0.0, HOPPER)
    assert alone == pytest.approx(370e9 * 8 / 7, rel=1e-3)


def test_small_messages_take_the_latency_of_ll():
    made = found("all_reduce", 8, 16, 8, 400e9, HOPPER)
    expected = 6.8e-6 + 2 * (7 * 0.6e-6 + 4 * 5e-6) + DEFAULTS["start_latency"]
    assert made.latency[0] == pytest.approx(expected, rel=1e-6)
    assert PROTOCOLS[int(made.protocol[0])] == "ll"
    assert ALGORITHMS[int(made.algorithm[0])] == "double_binary_tree"
    delayed = found("all_reduce", 8, 16, 8, 400e9, HOPPER | {"fabric_delay": 10e-6})
    assert delayed.latency[0] - made.latency[0] == pytest.approx(8 * 10e-6, rel=1e-5)


@pytest.mark.parametrize(
    ("size", "domains", "per_domain", "parameters", "algorithm", "protocol"),
    [
        (2**33, 1, 8, HOPPER, "nvls", "simple"),
        (2**33, 1, 2, HOPPER, "ring", "simple"),
        (2**33, 1, 8, AMPERE, "ring", "simple"),
        (8, 1, 8, HOPPER, "double_binary_tree", "ll"),  # NCCL's tree: in one domain a chain
        (2**33, 2, 8, HOPPER, "double_binary_tree", "simple"),
    ],
)
def test_the_algorithm_is_the_one_that_was_modelled(
    size: int,
    domains: int,
    per_domain: int,
    parameters: Mapping[str, float],
    algorithm: str,
    protocol: str,
):
    made = found("all_reduce", size, domains, per_domain, 400e9, parameters)
    chosen = (ALGORITHMS[int(made.algorithm[0])], PROTOCOLS[int(made.protocol[0])])
    assert chosen == (algorithm, protocol)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(
    st.sampled_from(OPERATIONS),
    st.integers(1, 20000),
    st.integers(1, 144),
    st.floats(1e9, 1e13),
    st.sampled_from((0.0, 1.0)),
    st.floats(0, 1e-3),
)
def test_more_bytes_take_longer_and_parts_add_up(
    operation: str, domains: int, per_domain: int, rate: float, adds: float, delay: float
):
    parameters = HOPPER | {"adds": adds, "fabric_delay": delay}
    made = found(operation, 2.0 ** np.linspace(0, 40, LANES), domains, per_domain, rate, parameters)
    assert np.all(np.isfinite(made.time))
    assert np.all(np.diff(made.time) >= 0)
    assert made.time == pytest.approx(made.transfer + made.latency, rel=1e-6)
    assert np.all((made.time > 0) == (domains * per_domain > 1))


def test_no_bytes_take_a_latency_and_gradients_are_finite():
    sizes = np.array([0.0, 1.0, 2**20, 2**34])
    for operation in OPERATIONS:
        made = found(operation, np.resize(sizes, LANES), 2, 8, 400e9, HOPPER)
        assert made.transfer[0] == 0 < made.latency[0]

    def time(size: jax.Array, rate: jax.Array) -> jax.Array:
        own = {n: jnp.float32(HOPPER[n]) for n in quantities(Calibration)}
        group = Group(size, jnp.float32(2), jnp.float32(8))
        fabric = Fabric(rate, jnp.float32(1))
        return calibrated_cost("all_reduce", group, fabric, Calibration(**own)).time

    for size in sizes:
        slopes = jax.grad(time, argnums=(0, 1))(jnp.float32(size), jnp.float32(2e11))
        assert np.all(np.isfinite(slopes))
        assert slopes[0] > 0 >= slopes[1]


@pytest.mark.parametrize("operation", ["all_to_all", "point_to_point"])
def test_operations_without_tables_are_refused(operation: str):
    one = jnp.ones(())
    own = Calibration(**dict.fromkeys(quantities(Calibration), one))
    with pytest.raises(ModelError, match=f"no calibration of {operation}: published tables have"):
        calibrated_cost(operation, Group(one, one, one), Fabric(one, one), own)


def test_an_oversubscribed_fabric_is_refused():
    fabric = {"link_rate": 5e10, "switch_latency": 6e-7, "cable_length": 30.0}
    assert calibrated_refusal(record_of(ScaleOut, fabric, np.float32)) is None
    refused = calibrated_refusal(record_of(ScaleOut, fabric | {"oversubscription": 3}, np.float32))
    assert refused is not None
    assert refused.startswith("oversubscription is 3: ")
