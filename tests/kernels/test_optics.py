"""Power of the network: vendors' cases, counts of switches, laws."""

import json

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric_kernels.optics.ports import fat_tree_switches, network_power
from fabric_kernels.path import Path
from fabric_kernels.quantity import quantities
from fabricarlo.catalog import presets
from tests.answers import answer
from tests.tables import reference_table

COOLING = {
    "clock_fraction": 0.94, "slowest_clock_fraction": 0.9, "junction_temperature": 80.0,
    "gpu_power": 1200.0, "limiting_reason": 1.0, "thermal_resistance": 0.03,
    "medium_temperature": 45.0, "mean_gpu_power": 1200.0, "mean_slowness": 1.06,
    "mean_compute_power": 1200.0,
}  # fmt: skip
GIVEN = COOLING | {n: 1.0 for n in quantities(Path)}
GIVEN |= {
    "gpus": 41472.0, "parameters": 1e12, "link_rate": 1e11, "switch_latency": 5e-7,
    "switch_radix": 144.0, "network_switches": 1440.0, "gpus_per_rack": 72.0,
    "other_power": 700.0,
}  # fmt: skip


def network(preset: str, **changed: float) -> dict[str, np.ndarray]:
    values = presets()[f"optics/{preset}"].settings.values
    return answer("optics", "ports", GIVEN | values | changed)


def test_switches_of_two_and_three_tiers():
    found = fat_tree_switches(
        jnp.array([41472.0, 10368.0]), jnp.array([3.0, 2.0]), jnp.array(144.0)
    )
    assert list(found) == [1440.0, 216.0]


def test_co_packaged_optics_save_what_the_vendor_says():
    # 1440 switches of 7.0 or 3.95 kW: 4392 kW saved; adapter ends stay as they are
    plug, packaged = network("dsp-800g"), network("cpo-800g")
    assert plug["network_power_saving"] == pytest.approx(0, abs=10)
    assert packaged["network_power_saving"] == pytest.approx(4.392e6, rel=1e-3)
    assert plug["network_power"] == pytest.approx(1440 * 7000 + 41472 * 15, rel=1e-6)
    # what is saved feeds GPUs at the power of one with its share of the rest
    freed = packaged["gpus_at_same_power"] - 41472
    of_one = 1900 + packaged["network_power"] / 41472
    assert freed == pytest.approx(packaged["network_power_saving"] / of_one, rel=1e-6)
    assert plug["gpus_at_same_power"] == pytest.approx(41472, rel=1e-6)


def test_linear_optics_lie_between():
    for rate in ("800g", "1.6t"):
        dsp, lpo, cpo = (
            float(network(f"{kind}-{rate}")["network_power"]) for kind in ("dsp", "lpo", "cpo")
        )
        assert cpo < lpo < dsp


def test_worked_rows_of_switches():
    rows = [r for r in reference_table("thermal_cases.csv") if r["model"] == "network_power"]
    assert rows
    for row in rows:
        given, expected = json.loads(row["params_json"]), json.loads(row["expected_json"])
        found = answer(
            "optics",
            "ports",
            GIVEN
            | {
                "gpus": given["n_gpu"],
                "network_switches": expected["n_switch"],
                "switch_radix": given["radix"],
                "switch_port_power": given["P_switch_cpo_W"] / given["radix"],
                "adapter_optics_power": 0.0,
                "reference_adapter_optics_power": 0.0,
                "switch_ports_per_rack_unit": 36.0,
            },
        )
        assert found["network_power_share"] == pytest.approx(expected["share_cpo"], rel=1e-9)
        assert found["network_power_saving"] / 1e6 == pytest.approx(expected["saved_MW"], rel=1e-9)


LANES = 5000


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_laws(seed: int):
    numbers = np.random.default_rng(seed)
    gpus = np.floor(np.exp(numbers.uniform(0, np.log(2e6), LANES)))
    tiers, radix = numbers.integers(1, 5, LANES), numbers.integers(8, 512, LANES)
    plug, packaged = numbers.uniform(20, 100, LANES), numbers.uniform(10, 60, LANES)
    switches = np.asarray(fat_tree_switches(*(jnp.asarray(x, float) for x in (gpus, tiers, radix))))
    zero = jnp.zeros(LANES)
    powers = [
        np.asarray(network_power(jnp.asarray(switches * radix), jnp.asarray(p, float), zero, zero))
        for p in (plug, packaged)
    ]
    saving = switches * radix * (plug - packaged)
    np.testing.assert_allclose(
        powers[0] - powers[1], saving, rtol=1e-4, atol=1e-6 * powers[0].max()
    )
    share = powers[0] / (powers[0] + gpus * 1900)
    assert np.all((share > 0) & (share < 1))
