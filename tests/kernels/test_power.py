"""The power of a rack."""

import pytest

from tests.answers import answer

RACK = {
    "clock_fraction": 1,
    "slowest_clock_fraction": 1,
    "junction_temperature": 70,
    "gpu_power": 1200,
    "limiting_reason": 0,
    "thermal_resistance": 0.02,
    "medium_temperature": 40,
    "mean_gpu_power": 1190,
    "mean_slowness": 1.1,
    "mean_compute_power": 1190,
    "gpus_per_rack": 72,
    "other_power": 500,
}


def test_a_rack_is_the_sum_of_its_parts():
    # 72 x (1200 W + 500 W)
    assert answer("power", "rack", RACK)["rack_power"] == pytest.approx(122_400, rel=1e-12)


def test_an_idle_share_scales_with_the_gpus():
    one, two = (answer("power", "rack", RACK | {"gpus_per_rack": n})["rack_power"] for n in (8, 16))
    assert two == pytest.approx(2 * one, rel=1e-12)


def test_a_rack_beyond_its_cooling_is_flagged():
    # 122.4 kW
    found = answer("power", "rack", RACK | {"rack_power_limit": [40e3, 122.3e3, 122.5e3, 140e3]})
    assert list(found["rack_density"]) == [1, 1, 0, 0]
