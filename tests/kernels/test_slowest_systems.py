"""The slowest of 72 to 16,384 GPUs of five systems against brute force."""

import numpy as np
import pytest
from scipy import stats

from tests.agreement import FALSE_ALARM
from tests.answers import answer
from tests.kernels.thermal_cases import GB300, LANES, LITRE_PER_MINUTE, slow
from tests.reference.thermal_population import System, slowest_of

EVERY = (np.arange(LANES) + 0.5) / LANES
PARTS = 100_000
SYSTEMS = {
    "H100 air 30 degC": System(700.0, 30.0, 0.0, resistance=0.058, flow_exponent=0.6),
    "B200 45 degC": System(1000.0, 45.0, 1.5 * LITRE_PER_MINUTE),
    "GB200 45 degC": System(1200.0, 45.0, 1.8 * LITRE_PER_MINUTE),
    "GB300 45 degC": System(1400.0, 45.0, 2.1 * LITRE_PER_MINUTE),
    "GB300 40 degC": System(1400.0, 40.0, 2.1 * LITRE_PER_MINUTE),
}


def found(system: System, count: int) -> float:
    """Mean over the uniform of the product's slowest clock."""
    design = {"thermal_design_power": system.design, "power_cap": system.design}
    if system.resistance is None:
        plate = {"coolant_flow": system.flow, "coolant_supply_temperature": system.inlet}
        return float(np.mean(slow(count, EVERY, **design, **plate)))
    numbers = {**GB300, **design, "gpus": count, "air_supply_temperature": system.inlet}
    numbers |= {"gpus_per_rack": 32.0, "other_power": 0.0, "preheat_share": 0.0}
    numbers |= {"heatsink_resistance": system.resistance}
    upper = EVERY > 0.5
    uniforms = {"slowest": (upper, np.minimum(EVERY, 1 - EVERY)), "bad_part": (False, 0.5)}
    made = answer("cooling", "air", numbers, uniforms=uniforms)
    return float(np.mean(made["slowest_clock_fraction"]))


@pytest.mark.parametrize("count", [72, 16384])
@pytest.mark.parametrize("name", SYSTEMS)
def test_agrees_with_brute_force(name: str, count: int):
    system, clusters = SYSTEMS[name], max(PARTS // count, 8)
    scores = np.random.default_rng(count).standard_normal((clusters, count, 5))
    truth = slowest_of(system, scores)
    mean = truth.mean()
    # with few clusters their own deviation is uncertain too: Student's law
    error = truth.std(ddof=1) / np.sqrt(clusters)
    room = error / mean * stats.t.isf(FALSE_ALARM / 2, clusters - 1)
    bias = found(system, count) / mean - 1
    assert -min(room, 0.01) <= bias <= 0.007 + min(room, 0.003), (bias, room)
