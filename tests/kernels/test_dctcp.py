"""DCTCP's sawtooth against bisection, a count of round trips, and its own limits."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from fabric_kernels.congestion import REGIMES
from fabric_kernels.congestion.dctcp_law import (
    Sawtooth,
    Senders,
    largest_gain,
    least_threshold,
    sawtooth,
)
from tests.answers import PATH, answer, precision
from tests.reference import congestion as reference

LINK = {
    **PATH,
    "fabric_tiers": 2,
    "hop_latency": 5e-6,
    "gpu_rate": 1e11,
    "senders_per_receiver": 2,
    "link_rate": 1e11,
    "packet_payload": 4096,
    "switch_latency": 5e-7,
}


def teeth(
    flows: ArrayLike, pipe: ArrayLike, threshold: ArrayLike, dtype: type = np.float32
) -> tuple[Sawtooth, np.ndarray]:
    """Sawtooth of senders whose capacity is 1e6 packets a second."""
    with precision(dtype):
        numbers = np.broadcast_arrays(flows, pipe, threshold)
        lanes = [jnp.asarray(np.asarray(x, float), dtype) for x in numbers]
        one = jnp.ones_like(lanes[0])
        found = sawtooth(Senders(1e6 * one, lanes[0], lanes[1] * 1e-6, lanes[2], one / 16))
        return found, np.asarray(found.critical_window, float)


@pytest.mark.parametrize(("dtype", "allowed"), [(np.float32, 1e-6), (np.float64, 1e-12)])
def test_alpha_is_that_of_a_bisection(dtype: type, allowed: float):
    found, windows = teeth(np.geomspace(1, 250, 60), 244.0, 35.0, dtype)
    truth = np.array([reference.dctcp_alpha(w) for w in windows])
    off = np.abs(np.asarray(found.alpha) / truth - 1)
    assert off.max() < allowed
    wrong = np.sqrt(2 / windows)  # the usual approximation
    assert np.abs(wrong / truth - 1).max() > 0.05


@pytest.mark.parametrize(("flows", "pipe", "threshold"), [(2, 300.0, 60.0), (4, 900.0, 150.0)])
def test_the_sawtooth_is_that_of_counted_round_trips(flows: int, pipe: float, threshold: float):
    """Whole round trips overshoot by half a packet a window on average: 20 % of the swing."""
    top, bottom = reference.windows(flows, pipe, threshold, 4000)
    found, _ = teeth(flows, pipe, threshold)
    swing = float(found.amplitude)
    assert top == pytest.approx(float(found.highest), abs=flows)
    assert top - bottom == pytest.approx(swing, rel=0.2)


@pytest.mark.parametrize("pipe", [83.3, 97.7, 244.1, 1000.0])
def test_a_seventh_of_the_pipe_keeps_the_link_busy_for_every_number_of_flows(pipe: float):
    """At K = C RTT / 7 the lowest queue over N is near 0, clearly below where K is half of it.

    The rule takes alpha = sqrt(2 / W*): with the exact alpha it is short by a few packets.
    """
    flows = np.geomspace(1, pipe / 4, 400)
    least = float(least_threshold(jnp.asarray(pipe)))
    at_rule = float(np.min(teeth(flows, pipe, least)[0].lowest))
    half = float(np.min(teeth(flows, pipe, least / 2)[0].lowest))
    assert abs(at_rule) < 0.06 * pipe
    assert half < at_rule - 0.05 * pipe
    assert float(largest_gain(jnp.asarray(pipe), jnp.asarray(least))) == pytest.approx(
        1.386 / np.sqrt(2 * pipe * 8 / 7), rel=1e-6
    )


def test_a_queue_that_runs_empty_loses_rate_and_says_so():
    found = answer(
        "congestion", "dctcp",
        LINK | {"flows_per_bottleneck": 16, "marking_threshold_time": [1e-7, 4e-6]},
    )  # fmt: skip
    assert [REGIMES[int(c)] for c in found["congestion_regime"]] == ["underflow", "sawtooth"]
    assert found["congestion_efficiency"][0] < 1 == found["congestion_efficiency"][1]


@settings(max_examples=60)
@given(
    flows=st.floats(1.01, 1e5), more=st.floats(1, 10), threshold=st.floats(1e-7, 1e-3),
    hop=st.floats(0, 1e-4),
)  # fmt: skip
def test_laws(flows: float, more: float, threshold: float, hop: float):
    lanes = {"flows_per_bottleneck": np.array([flows, flows * more])}
    given_ = LINK | lanes | {"marking_threshold_time": threshold, "hop_latency": hop}
    found = answer("congestion", "dctcp", given_, dtype=np.float32)
    assert found["marking_probability"][1] >= found["marking_probability"][0] * (1 - 1e-6)
    assert (found["standing_queue"] >= 0).all()
    assert (found["standing_queue"] <= found["largest_queue"] * (1 + 1e-6)).all()
    used = found["congestion_efficiency"]
    assert ((used > 0.4) & (used <= 1)).all()
