"""The delayed equations of DCQCN and DCTCP, and what the answers make of them."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fabric_kernels.congestion.dcqcn_delayed import Motion, Start, motion
from fabric_kernels.congestion.dcqcn_law import Reaction
from fabric_kernels.congestion.marking import Curve
from fabric_kernels.maths.delayed import Equation, Schedule, settled
from tests.answers import PATH, answer
from tests.reference import congestion as reference

SCHEDULE = Schedule(settling=200, blocks=200, stride=50, memory=128)
CASES = [  # flows, delay in steps, largest marking
    (2, 4, 0.01), (10, 4, 0.01), (10, 25, 0.1), (64, 25, 0.01), (64, 85, 0.01), (64, 85, 0.1),
    (10, 85, 0.1), (2, 85, 0.1),
]  # fmt: skip


def run(gain: float = 1 / 256) -> Motion:
    models = [reference.Dcqcn(5e6, flows, largest=top) for flows, _, top in CASES]
    names = (
        "capacity", "flows", "gain", "tau", "tau_alpha", "timer", "byte_counter", "steps",
        "increase",
    )  # fmt: skip
    reaction = Reaction(*(jnp.asarray([getattr(m, n) for m in models], jnp.float32) for n in names))
    reaction = reaction._replace(alpha_gain=jnp.full_like(reaction.flows, gain))
    start, end, top = (
        jnp.asarray([getattr(m, n) for m in models], jnp.float32)
        for n in ("start", "end", "largest")
    )
    lag = jnp.asarray([delay for _, delay, _ in CASES], jnp.int32)
    begin = Start(reaction.capacity, jnp.ones_like(reaction.flows))
    step = jnp.full_like(reaction.flows, 1e-6)
    return motion(reaction, Curve(start, end, top, end), begin, step, lag, SCHEDULE)


@pytest.fixture(scope="module")
def found() -> Motion:
    return run()


@pytest.mark.parametrize("case", range(4))
def test_single_precision_follows_the_papers_equations(found: Motion, case: int):
    """20 ms from line rate, step by step in float64: mean 1 %, ends and rates 3 %."""
    flows, delay, top = CASES[case]
    model = reference.Dcqcn(5e6, flows, largest=top)
    truth = reference.in_time(model, delay, 20_000)
    queue, rate = truth["queue"][delay + 10_001 :], truth["rate"][delay + 10_001 :]
    assert float(found.queue.mean[case]) == pytest.approx(queue.mean(), rel=0.01)
    assert float(found.queue.most[case]) == pytest.approx(queue.max(), rel=0.03)
    assert float(found.queue.least[case]) == pytest.approx(queue.min(), rel=0.03, abs=0.01)
    assert float(found.queue.deviation[case]) == pytest.approx(queue.std(), rel=0.03, abs=0.03)
    assert float(found.queue_p99[case]) == pytest.approx(np.quantile(queue, 0.99), rel=0.03)
    used = min(rate.mean() * flows / 5e6, 1.0)
    assert float(found.utilisation[case]) == pytest.approx(used, rel=1e-3)


def test_a_wrong_gain_would_be_seen():
    """The first case 50 % off in its gain is outside the tolerance of the check above."""
    truth = reference.in_time(reference.Dcqcn(5e6, 2), 4, 20_000)["queue"][10_005:]
    assert float(run(1.5 / 256).queue.mean[0]) != pytest.approx(truth.mean(), rel=0.01)


def test_what_a_queue_can_be(found: Motion):
    assert (np.asarray(found.queue.least) >= 0).all()
    assert (np.asarray(found.utilisation) <= 1).all()
    order = [found.queue.least, found.queue.mean, found.queue_p99, found.queue.most]
    for low, high in itertools.pairwise(order):
        assert (np.asarray(low) <= np.asarray(high) * (1 + 1e-6)).all()


def test_a_delay_line_returns_what_was_there_a_lag_ago():
    """x grows by 1 a step; what it adds up is its own value a lag ago, by hand."""

    def advance(state: tuple[jax.Array, ...], late: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        return state[0] + 1.0, state[1] + late[0]

    equation = Equation(advance, lambda s: (s[0],), lambda s: (s[1], s[0]))
    zero = jnp.zeros((4,), jnp.float32)
    lag = jnp.asarray([0, 1, 3, 7], jnp.int32)
    (total, count), top = settled(equation, (zero, zero), lag, Schedule(0, 10, 5, 8))
    for lane, back in enumerate((0, 1, 3, 7)):
        values = np.cumsum([max(n - back, 0) for n in range(50)])
        assert float(total.mean[lane]) == pytest.approx(values.mean(), rel=1e-5)
        assert float(total.most[lane]) == values[-1]
        assert float(top[lane]) == pytest.approx(np.quantile(values[4::5], 0.99), rel=1e-5)
    assert np.asarray(count.deviation) == pytest.approx(np.arange(1, 51).std(), rel=1e-5)


LINK = {
    **PATH,
    "fabric_tiers": 2,
    "gpu_rate": 5e9,
    "senders_per_receiver": 2,
    "link_rate": 5e9,
    "packet_payload": 1000,
    "switch_latency": 5e-7,
    "marking_start_time": 1e-6,
    "marking_end_time": 40e-6,
}
TABLE = {  # reference/congestion_cases.csv: flows, delay, Pmax -> mean kB, utilisation
    (10, 25e-6, 0.1): (17.0102, 0.999318),
    (64, 25e-6, 0.01): (110.346, 0.961009),
    (64, 85e-6, 0.01): (127.344, 0.863898),
    (10, 4e-6, 0.01): (122.62, 1.0),
    (2, 85e-6, 0.1): (3.30349, 0.991984),
}


def test_the_answer_reaches_what_long_runs_reach():
    """90 ms from the fixed point's alpha against the second half of 200 ms: 1 %."""
    keys = list(TABLE)
    lanes = {
        "flows_per_bottleneck": [k[0] for k in keys],
        "hop_latency": [(k[1] - 1000 / 5e9) / 2 for k in keys],
        "largest_marking": [k[2] for k in keys],
    }
    made = answer("congestion", "dcqcn_fluid", LINK | lanes, dtype=np.float32)
    for lane, key in enumerate(keys):
        mean, used = TABLE[key]
        assert made["standing_queue"][lane] / 1e3 == pytest.approx(mean, rel=0.01), key
        assert made["congestion_efficiency"][lane] == pytest.approx(used, rel=0.003), key
    assert list(made["congestion_regime"]) == [4, 4, 4, 1, 4]


def test_dctcp_in_time_is_about_its_sawtooth():
    """Amplitude within 30 % of the sawtooth's, alpha within 10 %."""
    lanes = {
        "flows_per_bottleneck": [2, 10],
        "hop_latency": 50e-6 - 1500 / 1.25e9 / 2,
        "link_rate": 1.25e9,
        "packet_payload": 1500,
        "marking_threshold_time": 40 * 1500 / 1.25e9,
    }
    fluid = answer("congestion", "dctcp_fluid", LINK | lanes, dtype=np.float32)
    fixed = answer("congestion", "dctcp", LINK | lanes, dtype=np.float32)
    np.testing.assert_allclose(fluid["marking_probability"], [0.180878, 0.407833], rtol=0.01)
    np.testing.assert_allclose(fluid["standing_queue"] / 1500, [34.6753, 37.2198], rtol=0.01)
    np.testing.assert_allclose(fluid["marking_probability"], fixed["marking_probability"], rtol=0.1)
    np.testing.assert_allclose(fluid["standing_queue"], fixed["standing_queue"], rtol=0.1)
