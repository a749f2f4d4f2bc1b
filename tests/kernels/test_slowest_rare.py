"""The slowest of N where memory, dry-out, the fold, screening, groups or bad parts decide."""

import numpy as np
import pytest
from scipy import special, stats

from tests.agreement import FALSE_ALARM
from tests.kernels.thermal_cases import LANES, LITRE_PER_MINUTE, cooled, slow
from tests.reference.thermal_population import SPREADS, System, part_clocks, slowest_of

CLUSTERS, COUNT = 150, 1024
EVERY = (np.arange(LANES) + 0.5) / LANES
GB300 = System(1400.0, 45.0, 2.1 * LITRE_PER_MINUTE)
HALF = {"thermal_design_power": 1000.0, "power_cap": 1000.0}


def normals(seed: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((CLUSTERS, COUNT, 5))


def assert_near(found: float, clusters: np.ndarray) -> None:
    """Series-FORM is 0 to 0.7 % optimistic, and the brute force has its own error."""
    mean = np.mean(clusters)
    room = np.std(clusters) / np.sqrt(clusters.size) * stats.norm.isf(FALSE_ALARM / 2) / mean
    assert -room <= found / mean - 1 <= 0.007 + room, (found / mean - 1, room)


def assert_only_with(named: dict[str, float], given: dict[str, float], truth: np.ndarray) -> None:
    """The product agrees, and does not without what is named."""
    assert_near(float(np.mean(slow(COUNT, EVERY, **given, **named))), truth)
    with pytest.raises(AssertionError):
        assert_near(float(np.mean(slow(COUNT, EVERY, **given))), truth)


def test_memory_may_be_the_limit():
    system = System(1000.0, 45.0, 1.5 * LITRE_PER_MINUTE, memory=(95.0, 15.0, 0.04))
    named = {"memory_own_resistance": 15 / 80, "memory_cross_resistance": 0.04}
    given = HALF | {"coolant_flow": system.flow}
    assert_only_with(named, given, slowest_of(system, normals()))


def test_runaway_may_be_the_limit():
    system = System(
        1000.0, 45.0, 0.6 * LITRE_PER_MINUTE, limit=140.0, leakage_share=0.2, growth=0.035
    )
    truth = slowest_of(system, normals())
    assert 0.25 < truth.mean() < 0.9
    given = HALF | {
        "coolant_flow": system.flow, "junction_temperature_limit": 140.0,
        "shutdown_temperature": 170.0, "leakage_share": 0.2,
        "leakage_temperature_coefficient": 0.035,
    }  # fmt: skip
    found = float(np.mean(slow(COUNT, EVERY, **given)))
    # the fold is curved, and near it the clock of a part falls fast: 2 %
    assert found / truth.mean() - 1 == pytest.approx(0.0, abs=0.02)


@pytest.mark.parametrize("limit", [2.0, 2.5])
def test_screened_parts(limit: float):
    ends = special.ndtr([-limit, limit])
    uniform = np.random.default_rng(6).uniform(*ends, (CLUSTERS, COUNT, 5))
    assert_only_with({"screening_limit": limit}, {}, slowest_of(GB300, special.ndtri(uniform)))


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_what_a_group_has_in_common(share: float):
    numbers, size = np.random.default_rng(7), 64
    own = numbers.standard_normal((CLUSTERS, COUNT // size, size, 5))
    common = numbers.standard_normal((CLUSTERS, COUNT // size, 1, 5))
    shares = np.array([0, 0, 0, share, share])
    scores = np.sqrt(1 - shares) * own + np.sqrt(shares) * common
    spreads = SPREADS * [1, 1, 1, 4, 1]
    truth = slowest_of(GB300, scores.reshape(CLUSTERS, COUNT, 5), spreads)
    named = {
        "common_temperature_share": share, "common_flow_share": share, "common_group": 64.0,
        "inlet_temperature_spread": 4.0,
    }  # fmt: skip
    found = float(np.mean(slow(COUNT, EVERY, **named)))
    assert_near(found, truth + (0.007 * truth if found < truth.mean() else 0) * (share == 1.0))
    apart = float(np.mean(slow(COUNT, EVERY, inlet_temperature_spread=4.0)))
    if share == 1.0:
        assert apart < found - 0.01


def test_bad_parts():
    chance, clusters = 2e-3, 4000
    numbers = np.random.default_rng(8)
    median = float(part_clocks(GB300, np.zeros((1, 5)))[0])
    bad = numbers.random((clusters, COUNT)) < chance
    worst = np.where(bad, numbers.uniform(1.1, 1.5, bad.shape), 1.0).max(1)
    levels = (np.arange(200) + 0.5) / 200
    upper = levels > 0.5
    none = {
        "resistance_spread": 0.0, "leakage_spread": 0.0, "dynamic_power_spread": 0.0,
        "inlet_temperature_spread": 0.0, "flow_spread": 0.0,
    }  # fmt: skip
    found = cooled(
        upper, np.where(upper, 1 - levels, levels), gpus=COUNT, bad_part=levels,
        bad_part_probability=chance, **none,
    )  # fmt: skip
    slowdown = np.sort(found["clock_fraction"] / found["slowest_clock_fraction"])
    distance = stats.ks_2samp(slowdown, worst).statistic
    # 200 exact quantiles against 4000 clusters: half a step and the usual bound at 1e-6
    assert distance < 0.5 / 200 + np.sqrt(np.log(2 / FALSE_ALARM) / (2 * clusters))
    assert found["clock_fraction"][0] == pytest.approx(median, abs=0.02)
    assert stats.ks_2samp(slowdown**1.2, worst).statistic > 0.06
