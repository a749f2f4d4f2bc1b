"""DCQCN's fixed point, its queue and its stability, against the papers' equations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric_kernels.congestion import REGIMES
from fabric_kernels.congestion.dcqcn_law import Balance, Reaction, balance, faint_marking, reactions
from fabric_kernels.congestion.marking import Curve, marking_at, queue_at
from fabric_kernels.congestion.stability import phase_margin
from tests.answers import PATH, answer, precision
from tests.reference import congestion as reference

LANES = 256
LINK = {
    **PATH,
    "fabric_tiers": 2,
    "hop_latency": 2e-6,
    "gpu_rate": 5e9,
    "senders_per_receiver": 2,
    "flows_per_bottleneck": 10,
    "link_rate": 5e9,
    "packet_payload": 1000,
    "switch_latency": 5e-7,
    "marking_start_time": 1e-6,
    "marking_end_time": 40e-6,
    "largest_marking": 0.01,
}


def reaction_of(models: list[reference.Dcqcn], dtype: type) -> Reaction:
    names = (
        "capacity", "flows", "gain", "tau", "tau_alpha", "timer", "byte_counter", "steps",
        "increase",
    )  # fmt: skip
    padded = [*models, *models[:1] * (LANES - len(models))]
    return Reaction(*(jnp.asarray([getattr(m, n) for m in padded], dtype) for n in names))


def random_models(count: int, seed: int) -> list[reference.Dcqcn]:
    """Links of 10G to 3.2T and settings about those in use, flows up to 4096."""
    random = np.random.default_rng(seed)

    def spread(low: float, high: float) -> float:
        return float(np.exp(random.uniform(np.log(low), np.log(high))))

    found = []
    for _ in range(count):
        packet = spread(1000, 9000)
        found.append(
            reference.Dcqcn(
                capacity=spread(1.25e9, 4e11) / packet,
                flows=spread(1.5, 4096),
                tau=spread(4e-6, 1e-4),
                tau_alpha=spread(1e-6, 1e-3),
                timer=spread(1e-5, 2e-3),
                byte_counter=spread(1e6, 1e8) / packet,
                steps=float(random.integers(1, 10)),
                increase=spread(1e6, 1e9) / packet,
            )
        )
    return found


MODELS = random_models(200, 1)


def worst(found: Balance) -> float:
    truth = np.array([reference.balance(m) for m in MODELS])
    return float(np.max(np.abs(np.asarray(found.marking)[: len(MODELS)] / truth - 1)))


def test_the_fixed_point_is_that_of_a_bisection_in_single_precision():
    found = jax.jit(balance)(reaction_of(MODELS, np.float32))
    assert worst(found) < 1e-5
    assert worst(found._replace(marking=found.marking * 1.00003)) > 1e-5


def test_the_fixed_point_is_that_of_a_bisection_in_double_precision():
    """1e-9 where the last of the four steps was small enough: it leaves its square."""
    with precision(np.float64):
        found = jax.jit(balance)(reaction_of(MODELS, np.float64))
        exact = np.asarray(found.residual)[: len(MODELS)] < 1e-5
        truth = np.array([reference.balance(m) for m in MODELS])
        off = np.abs(np.asarray(found.marking)[: len(MODELS)] / truth - 1)
    assert exact.mean() > 0.95
    assert off[exact].max() < 1e-9


@pytest.mark.parametrize("flows", [2, 4, 8, 10, 16, 64])
def test_at_40g_to_nine_digits_in_float64(flows: int):
    model = reference.Dcqcn(5e6, flows)
    with precision(np.float64):
        found = balance(reaction_of([model], np.float64))
        assert float(found.marking[0]) == pytest.approx(reference.balance(model), rel=1e-9)
        faint = float(faint_marking(reaction_of([model], np.float64))[0])
    assert 1.19 * float(found.marking[0]) <= faint * 1.001
    assert faint == pytest.approx(
        (5000 * flows**2 / (55e-6 * 5e6**2) * (1e-4 + flows / (55e-6 * 5e6)) ** 2) ** (1 / 3)
    )


def test_the_balance_holds_in_the_equations_of_motion():
    """At the fixed point nothing moves: the reactions there, put into the equations."""
    with precision(np.float64):
        reaction = reaction_of(MODELS, np.float64)
        point = balance(reaction)
        by = reactions(reaction, point.marking, point.current_rate)
        cut = by.decrease / reaction.notification_interval
        ahead = point.target_rate - point.current_rate
        up, down = 0.5 * ahead * by.recovery, 0.5 * point.current_rate * point.alpha * cut
        # where p* rounds to 1 nothing increases any more
        settled = np.asarray((point.residual < 1e-5) & (point.marking < 0.999))
        assert settled.mean() > 0.9
        np.testing.assert_allclose(np.asarray(up)[settled], np.asarray(down)[settled], rtol=1e-7)
        raised = reaction.additive_increase * by.additive
        np.testing.assert_allclose(
            np.asarray(raised)[settled], np.asarray(ahead * cut)[settled], rtol=1e-7
        )


@settings(max_examples=60)
@given(
    rate=st.floats(1e9, 4e11), flows=st.floats(1.1, 1e4), more=st.floats(1.01, 10),
    packet=st.floats(500, 9000), increase=st.floats(1e6, 1e9),
)  # fmt: skip
def test_more_flows_never_lower_marks_or_queue(
    rate: float, flows: float, more: float, packet: float, increase: float
):
    changes = {"link_rate": rate, "packet_payload": packet, "additive_increase": increase}
    lanes = {"flows_per_bottleneck": np.array([flows, flows * more])}
    found = answer("congestion", "dcqcn", LINK | changes | lanes, dtype=np.float32)
    marking = found["marking_probability"]
    assert marking[1] >= marking[0] * (1 - 1e-6)
    same = found["congestion_regime"][0] == found["congestion_regime"][1]
    if same:
        assert found["largest_queue"][1] >= found["largest_queue"][0] * (1 - 1e-5)
    for name in ("standing_queue", "largest_queue", "queueing_delay", "pause_fraction"):
        assert (found[name] >= 0).all()
    assert (found["congestion_efficiency"] <= 1).all()


def test_no_fixed_point_is_a_regime():
    found = answer("congestion", "dcqcn", LINK | {"flows_per_bottleneck": [1, 2, 10, 16, 64]})
    names = [REGIMES[int(code)] for code in found["congestion_regime"]]
    assert names == ["quiet", "fixed_point", "fixed_point", "limit_cycle", "limit_cycle"]
    assert found["queueing_delay"][:3] == pytest.approx([0, 4.03025e-6, 24.5246e-6], rel=1e-5)
    assert found["congestion_efficiency"][:3] == pytest.approx([1, 1, 1])
    assert (found["congestion_efficiency"][3:] < 1).all()
    assert (found["phase_margin"][3:] == 0).all()


def test_a_small_buffer_pauses():
    given_ = LINK | {"flows_per_bottleneck": 10, "port_buffer": [1e6, 6e4]}
    found = answer("congestion", "dcqcn", given_)
    assert [REGIMES[int(c)] for c in found["congestion_regime"]] == ["fixed_point", "pause_limited"]
    assert found["standing_queue"][1] == 6e4
    assert found["pause_fraction"][1] > 0 == found["pause_fraction"][0]


CYCLES = {  # reference/congestion_cases.csv, 64 flows at 40G: delay -> queue kB, utilisation
    25e-6: (110.346, 311.39, 0.961009),
    85e-6: (127.344, 443.479, 0.863898),
}


@pytest.mark.parametrize("delay", CYCLES)
def test_the_limit_cycle_is_about_that_of_the_fluid(delay: float):
    mean, top, used = CYCLES[delay]
    hop = (delay - 1000 / 5e9) / 2
    found = answer("congestion", "dcqcn", LINK | {"flows_per_bottleneck": 64, "hop_latency": hop})
    assert found["congestion_efficiency"] == pytest.approx(used, abs=0.06)
    assert mean / 3e-3 < found["standing_queue"] < mean * 3e3
    assert 0.85 * top * 1e3 < found["largest_queue"] < 3 * top * 1e3


def test_marks_and_queue_are_inverse_on_the_slope():
    curve = Curve(*(jnp.asarray([x]) for x in (5.0, 200.0, 0.01, 200.0)))
    for marking in (1e-5, 3e-3, 9.9e-3):
        queue = queue_at(curve, jnp.asarray([marking]))
        assert float(marking_at(curve, queue)[0]) == pytest.approx(marking, rel=1e-5)
    assert float(marking_at(curve, jnp.asarray([200.1]))[0]) == 1
    assert float(marking_at(curve, jnp.asarray([4.9]))[0]) == 0


_MARGIN = jax.jit(lambda r, curve, delay: phase_margin(r, curve, balance(r), delay))


def margin(model: reference.Dcqcn, delay: float) -> float:
    with precision(np.float64):
        one = np.ones(LANES)
        numbers = (model.start, model.end, model.largest, 1e9)
        curve = Curve(*(jnp.asarray(x * one) for x in numbers))
        reaction = reaction_of([model], np.float64)
        found = _MARGIN(reaction, curve, jnp.asarray(delay * one))
    return float(found[0])


@pytest.mark.parametrize(
    ("flows", "delay", "stable"),
    [(10, 10, True), (10, 50, True), (10, 85, False), (10, 120, False), (2, 60, True),
     (2, 120, False)],
)  # fmt: skip
def test_the_sign_of_the_phase_margin_is_that_of_a_nudged_queue(
    flows: int, delay: int, *, stable: bool
):
    """A queue a thousandth off its fixed point comes back or swings up, in the full equations."""
    model = reference.Dcqcn(5e6, flows)
    queue = reference.in_time(model, delay, 12_000, nudge=0.01)["queue"]
    swing = np.ptp(queue[9000:]) / np.ptp(queue[1500:4500])
    assert (swing < 1) == stable
    assert (margin(model, delay * 1e-6) > 0) == stable


def test_the_phase_margin_falls_with_the_delay_by_the_crossover():
    model = reference.Dcqcn(5e6, 10)
    found = [margin(model, delay) for delay in (0.0, 25e-6, 50e-6)]
    assert found[0] - found[1] == pytest.approx(found[1] - found[2], rel=1e-9)
    assert found[0] > found[1] > found[2] > 0


@pytest.mark.parametrize("name", ["dcqcn", "dcqcn_fluid"])
def test_a_curve_that_does_not_rise_is_refused(name: str):
    from fabric_kernels.catalogue import ANSWERS, REFUSALS
    from fabric_kernels.inputs import Contention, MarkingCurve, ScaleOut
    from tests.answers import record_of

    refusal = REFUSALS[ANSWERS["congestion"][name]]

    def said(**changes: float) -> str | None:
        values = LINK | changes
        kinds = {"scale_out": ScaleOut, "contention": Contention, "marking_curve": MarkingCurve}
        return refusal(**{k: record_of(kind, values, np.float32) for k, kind in kinds.items()})

    assert said() is None
    assert "marking_start_time is 4e-05 s" in str(said(marking_start_time=40e-6))
    assert "port_buffer is 900 B" in str(said(port_buffer=900))
