"""Energy of a step: every second billed once, means over the GPUs, the published swing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric_kernels.cooling import Cooling
from fabric_kernels.facility import Facility
from fabric_kernels.optics import Optics
from fabric_kernels.quantity import quantities
from fabric_kernels.step import Step
from tests.answers import answer
from tests.kernels.thermal_cases import GB300, LITRE_PER_MINUTE, cooled
from tests.reference.thermal_population import System, solved

ZERO = {n: 0.0 for kind in (Cooling, Facility, Optics, Step) for n in quantities(kind)}
GIVEN = GB300 | ZERO | {"gpus_per_rack": 72.0, "other_power": 0.0, "tue": 1.0, "pue": 1.0}
LANES = 900


def energy(**given: np.ndarray | float) -> dict[str, np.ndarray]:
    return answer("energy", "by_phase", GIVEN | given)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_equal_powers_are_power_times_time(seed: int):
    numbers = np.random.default_rng(seed)

    def draw(low: float, high: float) -> np.ndarray:
        return numbers.uniform(low, high, LANES)

    power, gpus, full = draw(100, 2000), np.floor(draw(1, 2e5)), draw(0.1, 10)
    slowness, share = draw(1, 3), draw(0, 1)
    compute = full * (1 - share + share * slowness) * draw(1, 2)
    bubble, exposed, pue = draw(0, 2), draw(0, 5), draw(1, 2)
    total = compute + bubble + exposed
    found = energy(
        gpus=gpus, compute_bound_share=share, step_time_compute=full, compute_time=compute,
        bubble=bubble, exposed_communication_time=exposed, step_time=total,
        tokens_per_second=1e6, mean_gpu_power=power, mean_compute_power=power,
        mean_slowness=slowness, wait_power=power, communication_power=power, pue=pue, tue=pue,
    )  # fmt: skip
    np.testing.assert_allclose(found["energy_per_step"], pue * gpus * power * total, rtol=1e-12)
    np.testing.assert_allclose(found["tokens_per_joule"], 1e6 / (pue * gpus * power), rtol=1e-12)
    np.testing.assert_allclose(found["power_swing"], 0, atol=1e-6)


def test_each_phase_has_its_own_power():
    found = energy(
        gpus=10.0, compute_bound_share=0.5, step_time_compute=2.0, compute_time=3.5, bubble=0.5,
        exposed_communication_time=1.0, step_time=5.0, tokens_per_second=100.0,
        mean_gpu_power=1000.0, mean_slowness=1.5, mean_compute_power=900.0, wait_power=400.0,
        communication_power=500.0, other_power=100.0, network_power=2000.0, pue=1.1, tue=1.2,
    )  # fmt: skip
    compute = 2.0 * (0.5 * 1000 + 0.5 * 1.5 * 900)  # mean time 2.5 s
    of_gpu = compute + 400 * (3.5 - 2.5 + 0.5) + 500 * 1.0
    total = 1.1 * (10 * of_gpu + (100 * 10 + 2000) * 5.0)
    assert found["energy_per_step"] == pytest.approx(total, rel=1e-12)
    assert found["tokens_per_joule"] == pytest.approx(500 / total, rel=1e-12)
    assert found["mean_facility_power"] == pytest.approx(total / 5, rel=1e-12)
    assert found["energy_without_fans"] == pytest.approx(total * 1.2 / 1.1, rel=1e-12)
    assert found["power_swing"] == pytest.approx(10 * 500.0, rel=1e-12)


def test_hundred_thousand_gpus_swing_by_55_megawatts():
    found = energy(
        gpus=1e5, mean_gpu_power=1000.0, communication_power=450.0, wait_power=450.0, step_time=1.0
    )
    assert found["power_swing"] == pytest.approx(55e6)


SYSTEMS = [(1400.0, 45.0, 2.1), (1400.0, 40.0, 2.1), (1200.0, 52.0, 1.8), (1000.0, 45.0, 0.75)]


@pytest.mark.parametrize(("design", "inlet", "litres"), SYSTEMS)
def test_means_over_the_population_are_those_of_many_parts(
    design: float, inlet: float, litres: float
):
    system = System(design, inlet, litres * LITRE_PER_MINUTE)
    scores = np.random.default_rng(10).standard_normal((20_000, 5))
    clock, power = solved(system, np.concatenate([scores, -scores]))
    found = cooled(
        0, 0.5, thermal_design_power=design, power_cap=design, coolant_flow=system.flow,
        coolant_supply_temperature=inlet,
    )  # fmt: skip
    # the quadrature is good to 1e-3, 40,000 parts to another 3e-4
    close = 1.5e-3
    assert found["mean_gpu_power"] == pytest.approx(power.mean(), rel=close)
    assert found["mean_slowness"] == pytest.approx((1 / clock).mean(), rel=close)
    weighted = (power / clock).mean() / (1 / clock).mean()
    assert found["mean_compute_power"] == pytest.approx(weighted, rel=close)


def test_the_median_is_not_the_mean():
    system = System(1400.0, 45.0, 2.1 * LITRE_PER_MINUTE)
    scores = np.random.default_rng(10).standard_normal((20_000, 5))
    clock, power = solved(system, np.concatenate([scores, -scores]))
    found = cooled(0, 0.5)
    assert abs(found["gpu_power"] / power.mean() - 1) > 0.01
    assert abs(1 / found["clock_fraction"] / (1 / clock).mean() - 1) > 5e-3
