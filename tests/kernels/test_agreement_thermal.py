"""Clock, temperature and status against root finding; the slowest GPU against brute force."""

import numpy as np
import pytest
from scipy import stats

from fabric_kernels.cooling import LIMITS
from tests.agreement import FALSE_ALARM
from tests.answers import answer
from tests.reference import thermal

LANES = 100
NO_SPREAD = {
    "resistance_spread": 0.0, "leakage_spread": 0.0, "dynamic_power_spread": 0.0,
    "inlet_temperature_spread": 0.0, "flow_spread": 0.0,
}  # fmt: skip
JOB = {"gpus": 72.0, "parameters": 1e12, "peak_flops": 1e15}
MEDIAN = {"slowest": (False, 0.5), "bad_part": (False, 0.5)}


def configurations(seed: int) -> dict[str, np.ndarray]:
    """Random GPUs and loops: cool, power-capped, hot, starved of coolant and leaking ones."""
    generator = np.random.default_rng(seed)

    def between(low: float, high: float) -> np.ndarray:
        return generator.uniform(low, high, LANES)

    tdp = between(300, 1500)
    per_kilowatt = np.exp(generator.uniform(np.log(0.1), np.log(3.0), LANES))
    given = {
        "thermal_design_power": tdp,
        "power_cap": tdp * between(0.6, 1.1),
        "coolant_supply_temperature": between(15, 60),
        "coolant_flow": per_kilowatt * tdp / 1000 / 6e4,
        "leakage_share": between(0.03, 0.30),
        "leakage_temperature_coefficient": between(0.005, 0.035),
        "activity": between(0.3, 1.2),
        "voltage_slope": between(0.3, 0.95),
        "junction_temperature_limit": np.where(generator.random(LANES) < 0.3, 120.0, 87.0),
        "plate_resistance": between(0.006, 0.02),
    }
    given["shutdown_temperature"] = given["junction_temperature_limit"] + 8
    return {name: value.astype(np.float32).astype(float) for name, value in given.items()}


def chip_of(given: dict[str, np.ndarray], lane: int) -> thermal.Chip:
    here = {name: float(value[lane]) for name, value in given.items()}
    tdp = here["thermal_design_power"]
    return thermal.Chip(
        constant=tdp * (0.07 + 0.08),
        leakage=tdp * here["leakage_share"],
        dynamic=tdp * 0.85 * here["activity"],
        power_limit=here["power_cap"],
        temperature_limit=here["junction_temperature_limit"],
        shutdown=here["shutdown_temperature"],
        growth=here["leakage_temperature_coefficient"],
        voltage_slope=here["voltage_slope"],
    )


def plate_of(given: dict[str, np.ndarray], lane: int) -> thermal.Plate:
    return thermal.Plate(
        float(given["coolant_supply_temperature"][lane]),
        float(given["coolant_flow"][lane]),
        plate=float(given["plate_resistance"][lane]),
    )


def assert_same_points(
    made: dict[str, np.ndarray], points: list[thermal.Point], errors: tuple[float, float, float]
) -> None:
    """Same status; clock, temperature and temperature at the fold within `errors`."""
    clock, temperature, at_fold = errors
    status = [LIMITS[int(code)] for code in made["limiting_reason"]]
    assert status == [point.status for point in points]
    np.testing.assert_allclose(made["clock_fraction"], [p.clock for p in points], 0, clock)
    for lane, point in enumerate(points):
        if point.status == "trip":
            assert np.isfinite(made["junction_temperature"][lane])
            continue
        allowed = at_fold if point.status == "runaway" else temperature
        assert abs(made["junction_temperature"][lane] - point.temperature) <= allowed, lane


def test_single_phase_finds_the_governed_point() -> None:
    given = configurations(50)
    points = [
        thermal.governed(chip_of(given, lane), thermal.single_phase(plate_of(given, lane)))
        for lane in range(LANES)
    ]
    seen = {point.status for point in points}
    assert seen >= {"none", "power", "thermal", "runaway", "floor", "trip"}  # the draw has them all
    for dtype, errors in [(np.float64, (1e-12, 1e-8, 0.02)), (np.float32, (1e-6, 1e-3, 0.06))]:
        made = answer(
            "cooling", "single_phase", JOB | NO_SPREAD | given, uniforms=MEDIAN, dtype=dtype
        )
        assert_same_points(made, points, errors)
        media = [thermal.single_phase(plate_of(given, lane)) for lane in range(LANES)]
        rounding = 1e-12 if dtype == np.float64 else 3e-6
        np.testing.assert_allclose(
            made["thermal_resistance"], [medium.resistance for medium in media], rtol=rounding
        )
        np.testing.assert_allclose(
            made["medium_temperature"], [medium.base for medium in media], rtol=rounding
        )
        # at the fold the temperature is a double root, and a tripped GPU has none
        plain = [point.status not in ("runaway", "trip") for point in points]
        power = np.array([point.power for point in points])
        close = 1e-9 if dtype == np.float64 else 1e-4
        np.testing.assert_allclose(made["gpu_power"][plain], power[plain], rtol=close)


def test_air_finds_the_governed_point() -> None:
    given = configurations(51)
    given["gpus_per_rack"] = np.linspace(8, 104, LANES).round()
    given["air_supply_temperature"] = given.pop("coolant_supply_temperature") * 0.6
    given["thermal_design_power"] = np.full(LANES, 700.0)
    given["power_cap"] = np.full(LANES, 700.0)
    points = []
    for lane in range(LANES):
        supply, gpus = (float(given[k][lane]) for k in ("air_supply_temperature", "gpus_per_rack"))
        medium = thermal.air(thermal.Air(supply, gpus, other_power=575.0))
        points.append(thermal.governed(chip_of(given, lane), medium))
    given["other_power"] = np.full(LANES, 575.0)
    made = answer("cooling", "air", JOB | NO_SPREAD | given, uniforms=MEDIAN)
    assert_same_points(made, points, (1e-12, 1e-8, 0.02))


GB300 = {"thermal_design_power": 1400.0, "power_cap": 1400.0, "coolant_supply_temperature": 45.0}
GB300 |= {"coolant_flow": 2.1 / 6e4}
H100 = {"thermal_design_power": 700.0, "power_cap": 700.0, "air_supply_temperature": 27.0}
H100 |= {"gpus_per_rack": 64.0, "other_power": 575.0}
QUANTILES = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
SYSTEMS = {
    "single_phase": (GB300, thermal.chip(1400, 1400), thermal.Plate(45.0, 2.1 / 6e4)),
    "air": (H100, thermal.chip(700, 700), thermal.Air(27.0, 64.0, 575.0)),
}


def brute_force(name: str, clusters: int, gpus: int) -> np.ndarray:
    """Slowest clock of many clusters, in rising order."""
    _, part, cooling = SYSTEMS[name]
    scores = np.random.default_rng(52).standard_normal((clusters, gpus, 5))
    return np.sort(thermal.slowest_clocks(part, cooling, thermal.Spreads(), scores))


def slowest(name: str, gpus: float) -> dict[str, np.ndarray]:
    """The product at three points of (0, 1); a large one gives a slow GPU."""
    upper = QUANTILES > 0.5
    uniforms = {"slowest": (upper, np.where(upper, 1 - QUANTILES, QUANTILES))}
    uniforms["bad_part"] = (False, 0.5)
    given = JOB | SYSTEMS[name][0] | {"gpus": gpus}
    return answer("cooling", name, given, uniforms=uniforms)


def quantile_range(rising: np.ndarray, probability: float) -> tuple[float, float]:
    """Between which clocks the quantile lies, but for a false alarm."""
    low, high = stats.binom.interval(1 - FALSE_ALARM, rising.size, probability)
    return float(rising[max(int(low) - 1, 0)]), float(rising[min(int(high), rising.size - 1)])


@pytest.mark.parametrize(("name", "gpus", "clusters"), [
    ("single_phase", 72, 300), ("single_phase", 1, 4000), ("air", 72, 200),
])  # fmt: skip
def test_slowest_of_many_is_that_of_brute_force(name: str, gpus: int, clusters: int) -> None:
    rising = brute_force(name, clusters, gpus)
    made = slowest(name, gpus)["slowest_clock_fraction"]
    for clock, point in zip(made, QUANTILES, strict=True):
        if gpus == 1 and point < 0.5:
            continue  # the slowest is never reported above the median: here it may be
        low, high = quantile_range(rising, 1 - point)
        # series-FORM: within 0.7 % and on the optimistic side (measured in the design)
        assert low * (1 - 2e-3) <= clock <= high * (1 + 7e-3), (point, low, high)


def test_median_clock_is_not_that_of_the_slowest() -> None:
    made = slowest("single_phase", 72)
    low, high = quantile_range(brute_force("single_phase", 300, 72), 0.5)
    assert not low * (1 - 2e-3) <= made["clock_fraction"][2] <= high * (1 + 7e-3)
