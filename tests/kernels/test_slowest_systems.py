"""The slowest of 72 to 131,072 GPUs of five systems against brute force."""

import numpy as np
import pytest
from scipy.stats import norm

from tests.agreement import FALSE_ALARM
from tests.answers import answer
from tests.kernels.thermal_cases import GB300, LANES, LITRE_PER_MINUTE, slow
from tests.reference.thermal_population import System, expected_slowest

EVERY = (np.arange(LANES) + 0.5) / LANES
COUNTS = (72, 1024, 16384, 131072)
PARTS = 2**18
SYSTEMS = {
    "H100 air 30 degC": System(700.0, 30.0, 0.0, resistance=0.058, flow_exponent=0.6),
    "B200 45 degC": System(1000.0, 45.0, 1.5 * LITRE_PER_MINUTE),
    "GB200 45 degC": System(1200.0, 45.0, 1.8 * LITRE_PER_MINUTE),
    "GB300 45 degC": System(1400.0, 45.0, 2.1 * LITRE_PER_MINUTE),
    "GB300 40 degC": System(1400.0, 40.0, 2.1 * LITRE_PER_MINUTE),
}


STARVED = System(1000.0, 45.0, 0.3 * LITRE_PER_MINUTE)


def found(system: System) -> np.ndarray:
    """Mean over the uniform of the product's slowest clock, for each count."""
    counts, every = np.repeat(COUNTS, LANES), np.tile(EVERY, len(COUNTS))
    design = {"thermal_design_power": system.design, "power_cap": system.design}
    if system.resistance is None:
        plate = {"coolant_flow": system.flow, "coolant_supply_temperature": system.inlet}
        return slow(counts, every, **design, **plate).reshape(-1, LANES).mean(1)
    numbers = {**GB300, **design, "gpus": counts, "air_supply_temperature": system.inlet}
    numbers |= {"gpus_per_rack": 32.0, "other_power": 0.0, "preheat_share": 0.0}
    numbers |= {"heatsink_resistance": system.resistance}
    uniforms = {"slowest": (every > 0.5, np.minimum(every, 1 - every)), "bad_part": (False, 0.5)}
    made = answer("cooling", "air", numbers, uniforms=uniforms)
    return made["slowest_clock_fraction"].reshape(-1, LANES).mean(1)


def biases(system: System) -> tuple[np.ndarray, np.ndarray]:
    """How much too fast the product is, and by how much the brute force may be off."""
    truth = np.array([expected_slowest(system, count, PARTS, 20261201) for count in COUNTS])
    return found(system) / truth[:, 0] - 1, truth[:, 1] / truth[:, 0] * norm.isf(FALSE_ALARM / 2)


@pytest.mark.parametrize("name", SYSTEMS)
def test_agrees_with_brute_force(name: str):
    bias, room = biases(SYSTEMS[name])
    assert room.max() < 0.004
    assert np.all((-room <= bias) & (bias <= 0.007)), (bias, room)


def test_below_the_lowest_voltage_it_is_further_off():
    """There the clock follows heat two to three times as fast, and so does its error."""
    bias, room = biases(STARVED)
    assert np.all((bias > 0.007 - room) & (bias < 0.015 + room)), (bias, room)
