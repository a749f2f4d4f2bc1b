"""The building: published table, bin-by-bin quadrature, invariants over random climates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from fabric_kernels.facility.building import volume_flow
from fabric_kernels.facility.dry_cooler import dry_cooler
from fabric_kernels.inputs import Climate, LiquidLoop, Plant, Rack
from fabric_kernels.power import Power
from tests.answers import answer, record_of
from tests.reference.thermal_building import coolant_year, effectiveness

CLIMATE = ("ambient_temperature", "ambient_season", "ambient_day", "ambient_deviation")
DALLAS, COLD, DESERT = (19.5, 10.5, 5.5, 4.5), (3.0, 13.0, 3.0, 5.0), (24.0, 10.5, 7.0, 3.5)
RACK = {
    "gpus_per_rack": 72.0,
    "other_power": 600.0,
    "rack_power": 132e3,
    "rack_density": 0.0,
    "coolant_flow": 3e-5,
}


def built(name: str, climate: tuple[float, ...], **given: ArrayLike) -> dict[str, np.ndarray]:
    where = dict(zip(CLIMATE, climate, strict=True))
    return answer("facility", name, RACK | where | given)


def test_the_table_of_designs():
    # thermal design table: Dallas-like climate, five designs, three digits each
    supplies = {"coolant_supply_temperature": [45.0, 45.0, 45.0]}
    shares = {"liquid_heat_share": [1.0, 0.87, 0.87], "hall_air_temperature": [35.0, 35.0, 25.0]}
    liquid = built("dry_cooler", DALLAS, **supplies, **shares)
    assert liquid["pue"] == pytest.approx([1.053, 1.061, 1.070], abs=1e-3)
    assert liquid["chiller_power_share"] == pytest.approx([0.002, 0.006, 0.015], abs=5e-4)
    cold = built("chilled_water", DALLAS, coolant_supply_temperature=25.0, liquid_heat_share=1.0)
    assert cold["pue"] == pytest.approx(1.176, abs=1e-3)
    air = built("air_handlers", DALLAS, air_supply_temperature=25.0)
    assert air["pue"] == pytest.approx(1.180, abs=1e-3)
    assert air["rack_liquid_flow"] == 0


@pytest.mark.parametrize("climate", [DALLAS, COLD, DESERT])
def test_agrees_with_a_sum_over_every_hour(climate: tuple[float, float, float, float]):
    shares, supplies = [1.0, 0.6, 0.3], [45.0, 37.0, 30.0]
    given = {"liquid_heat_share": shares, "coolant_supply_temperature": supplies}
    found = built("dry_cooler", climate, **given, hall_air_temperature=28.0)
    cases = list(zip(shares, supplies, strict=True))
    truth = [effectiveness(s, t, 28.0, climate) for s, t in cases]
    np.testing.assert_allclose(found["pue"], truth, rtol=1e-12)
    hours = [coolant_year(t - 4, 10.0, climate)[2] for t in supplies]
    np.testing.assert_allclose(found["chiller_time_share"], hours, rtol=1e-9)
    wrong = [effectiveness(s, t + 0.5, 28.0, climate) for s, t in cases]
    assert np.abs(found["pue"] - wrong).max() > 1e-4


LANES = 5000


@jax.jit
def building(values: dict[str, jax.Array]) -> tuple[jax.Array, ...]:
    kinds = (LiquidLoop, Rack, Climate, Plant, Power)
    found = dry_cooler(*(record_of(kind, values, jnp.float32) for kind in kinds))
    parts = (
        found.chiller_power_share + found.cooler_fan_share + found.pump_power_share
        + found.air_handler_power_share
    )  # fmt: skip
    return (
        found.pue,
        found.electrical_loss,
        parts,
        found.chiller_power_share,
        (found.chiller_time_share + found.air_chiller_time_share),
    )


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_laws(seed: int):
    numbers = np.random.default_rng(seed)

    def draw(low: float, high: float) -> np.ndarray:
        return numbers.uniform(low, high, LANES).astype(np.float32)

    values = dict(zip(CLIMATE, (draw(-5, 30), draw(0, 15), draw(0, 9), draw(1, 6)), strict=True))
    values |= {
        "coolant_supply_temperature": draw(15, 55),
        "hall_air_temperature": draw(18, 45),
        "liquid_heat_share": draw(0, 1),
        "transformer_efficiency": draw(0.95, 1),
        "ups_efficiency": draw(0.9, 1),
        "distribution_efficiency": draw(0.95, 1),
    }
    values |= {k: np.float32(v) for k, v in RACK.items()}
    pue, loss, parts, chiller, warm = (np.asarray(x, float) for x in building(values))
    grid = values["transformer_efficiency"] * values["distribution_efficiency"]
    supply = grid * values["ups_efficiency"]
    assert np.all(pue >= 1 / supply * (1 - 1e-6))
    np.testing.assert_allclose(pue, 1 + loss + (parts + 0.004) / grid, rtol=2e-6)
    # the quadrature ends 7.9 deviations out: no chiller where even that is cold enough
    reach = (1.0, 1.0, 1.0, 7.9)
    hottest = sum(values[name] * weight for name, weight in zip(CLIMATE, reach, strict=True))
    water = np.minimum(values["coolant_supply_temperature"] - 4, values["hall_air_temperature"] - 7)
    cold = hottest + 8 < water
    assert cold.any()
    assert np.all(chiller[cold] == 0)
    assert np.all(chiller[warm > 1e-6] > 0)
    hotter = {"ambient_temperature": values["ambient_temperature"] + 2}
    assert np.all(np.asarray(building(values | hotter)[0]) >= pue - 1e-6)
    warmer = {"coolant_supply_temperature": values["coolant_supply_temperature"] + 2}
    assert np.all(np.asarray(building(values | warmer)[0]) <= pue + 1e-6)


def test_flows_are_heat_balances():
    # "1.5 L/min per kW" at 10 K of PG25, and 132 kW of it
    found = built("dry_cooler", DALLAS, coolant_supply_temperature=45.0, liquid_heat_share=[1, 0.5])
    litres = found["rack_liquid_flow"] * 6e4
    assert litres == pytest.approx([132 * 1.496535401, 66 * 1.496535401], rel=1e-9)
    assert found["rack_air_flow"][1] * 1.1843 * 1006.31 * 15 == pytest.approx(66e3, rel=1e-12)
    assert volume_flow(jnp.asarray(40e3), 1.1843 * 1006.31, 15.0) / (
        0.3048**3 / 60
    ) == pytest.approx(4741.1, rel=1e-4)  # 40 kW at 15 K


def test_fans_in_servers_count_in_the_second_ratio():
    found = built(
        "dry_cooler", DALLAS, coolant_supply_temperature=45.0, server_fan_share=[0.0, 0.1]
    )
    assert found["tue"] == pytest.approx(found["pue"] / np.array([1.0, 0.9]), rel=1e-12)
