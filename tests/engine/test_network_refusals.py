"""Losses, timers, windows and noise that cannot be, and a window that can be but is too small."""

from typing import Any

import numpy as np
import pytest

from fabricarlo.errors import SpecError
from fabricarlo.plan import Plan
from tests.engine import small

DRAWS = {"payload_fraction": small.SPEC["draws"]["payload_fraction"]}


def plan(outputs: list[str], **given: Any) -> Plan:
    """The small sweep of one fabric with these numbers and choices set."""
    axes = {"gpus": [8192]}
    base = [*small.SPEC["base"], "fabric/roce-800g"]
    chosen = small.SPEC["set"] | given
    return Plan(small.sweep(base=base, axes=axes, draws=DRAWS, set=chosen, outputs=outputs))


@pytest.mark.parametrize("rate", [-1e-9, 1.0, 1.5])
def test_a_loss_rate_that_is_no_probability_is_refused_with_its_range(rate: float) -> None:
    with pytest.raises(SpecError, match=rf"packet_loss_rate: is {rate:g}, outside 0 to 0.1"):
        plan(["data_loss_stall"], packet_loss_rate=rate)


@pytest.mark.parametrize("loss", ["go_back_n", "go_back_n_single_nak", "selective_repeat"])
def test_a_timer_below_the_round_trip_is_refused_with_both(loss: str) -> None:
    text = r"retransmission_timeout is 1e-06 s, below the shortest round trip of [1-9]\S*e-06 s"
    with pytest.raises(SpecError, match=text):
        plan(["data_loss_stall"], loss=loss, adapter_latency="1 us", retransmission_timeout="1 us")
    plan(["data_loss_stall"], loss=loss, adapter_latency="1 us", retransmission_timeout="100 us")


def test_noise_without_a_mean_is_refused_with_its_exponent() -> None:
    given = {"noise": "generalised_pareto", "jitter": "mean"}
    with pytest.raises(SpecError, match=r"is 1.2, outside -0.5 to 0.95.*from 1 on .* no mean"):
        plan(["allreduce_time"], pareto_noise_tail_index=1.2, **given)


def test_a_window_below_the_bandwidth_delay_product_is_flagged() -> None:
    for window, limited in (("8 KiB", 1.0), ("64 MiB", 0.0)):
        found = small.evaluate(plan(["window_limited"], send_window=window))["window_limited"]
        assert np.all(found == limited)
