"""The slowest of N GPUs: what must hold at any N, its precision and its derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fabric_kernels.cooling.single_phase import single_phase
from fabric_kernels.inputs import Gpu, Job, LiquidLoop, Population
from fabric_kernels.uniform import Uniform
from tests.answers import record_of
from tests.kernels.thermal_cases import GB300, LANES, LITRE_PER_MINUTE, at, cooled, slow

share = st.floats(0, 1, allow_subnormal=False)


@given(share, share, share)
def test_laws(cold: float, flow: float, unlucky: float):
    plate = {
        "coolant_supply_temperature": 20 + 40 * cold,
        "coolant_flow": (0.3 + 4 * flow) * LITRE_PER_MINUTE,
    }
    counts = np.array([1, 72, 1024, 16384, 131072])
    uniforms = np.array([0.02, 0.5, 0.98])
    odds = np.append(np.repeat(0.02 + 0.96 * unlucky, counts.size), uniforms)
    found = cooled(
        odds > 0.5, np.minimum(odds, 1 - odds), gpus=[*counts, 1024, 1024, 1024], **plate
    )
    slowest_clock, median = found["slowest_clock_fraction"], found["clock_fraction"]
    assert np.all(slowest_clock <= median)
    assert np.all(slowest_clock >= 0.2)
    assert np.all(np.diff(slowest_clock[:5]) <= 1e-6)  # more GPUs
    assert np.all(np.diff(slowest_clock[5:]) <= 1e-6)  # a larger uniform


def test_equal_gpus_and_a_single_one_are_the_median():
    none = {name: 0.0 for name in GB300 if name.endswith("_spread")}
    inlets = np.linspace(20, 70, 60)
    found = cooled([True], 1e-6, gpus=131072, coolant_supply_temperature=inlets, **none)
    # a free or floored median is at an end of the range, and the fold is not one of the limits
    np.testing.assert_allclose(
        found["slowest_clock_fraction"], found["clock_fraction"], rtol=0, atol=1e-12
    )
    # alone, the median's leakage is that of the median GPU: 2 % below the mean of the population
    alone = cooled([False], 0.5, gpus=1, coolant_supply_temperature=inlets)
    np.testing.assert_array_equal(alone["slowest_clock_fraction"], alone["clock_fraction"])


def test_float32_keeps_the_slow_end():
    distance = np.geomspace(2.0**-33, 0.5, 200)
    lanes = {"upper": True, "distance": distance, "gpus": 131072}
    exact, single = (cooled(**lanes, dtype=dtype) for dtype in (np.float64, np.float32))
    gap = single["slowest_clock_fraction"] - exact["slowest_clock_fraction"]
    assert np.abs(gap).max() <= 4e-6
    assert np.all(np.diff(single["slowest_clock_fraction"]) >= -2e-6)


def test_derivatives_are_those_of_the_answer():
    inlets = np.linspace(25, 48, LANES)
    names = ("coolant_supply_temperature", "coolant_flow", "resistance_spread", "leakage_spread")
    lanes = {name: np.resize(value, LANES) for name, value in GB300.items()}
    lanes["coolant_supply_temperature"] = inlets

    @jax.jit
    def slope(varied: dict[str, jax.Array], rates: dict[str, jax.Array]) -> jax.Array:
        def clock(varied: dict[str, jax.Array]) -> jax.Array:
            numbers = {**{n: jnp.asarray(v, float) for n, v in lanes.items()}, **varied}
            needed = [
                record_of(kind, numbers, float) for kind in (Job, Gpu, LiquidLoop, Population)
            ]
            uniform = Uniform(jnp.zeros(LANES, bool), jnp.full(LANES, 0.5))
            return single_phase(*needed, uniform, uniform).slowest_clock_fraction

        return jax.jvp(clock, (varied,), (rates,))[1]

    for name in names:
        varied = {n: lanes[n] for n in names}
        rates = {n: np.full(LANES, float(n == name)) for n in names}
        stated = at(slope, (varied, rates))
        low, high = (
            slow(72, **{**varied, name: varied[name] * (1 + step)}) for step in (-1e-6, 1e-6)
        )
        gap = np.abs(stated * varied[name] - (high - low) / 2e-6)
        assert np.sum(gap > 1e-5) <= 1, name  # the lane where another limit takes over
