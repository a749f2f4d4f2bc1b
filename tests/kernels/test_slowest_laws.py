"""The slowest of N GPUs: what must hold at any N, its precision and its derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric_kernels.cooling.single_phase import single_phase
from fabric_kernels.inputs import Gpu, Job, LiquidLoop, Population
from fabric_kernels.uniform import Uniform
from tests.answers import record_of
from tests.kernels.thermal_cases import GB300, LANES, LITRE_PER_MINUTE, at, cooled, slow

MANY = 5000


@jax.jit
def clocks(
    lanes: dict[str, jax.Array], gpus: jax.Array, odds: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Slowest clock and median's, [case, lane] for gpus and odds of shape [case, 1]."""
    given = {n: jnp.asarray(v, jnp.float32) for n, v in GB300.items()} | lanes
    needed = [
        record_of(kind, given | {"gpus": gpus}, jnp.float32)
        for kind in (Job, Gpu, LiquidLoop, Population)
    ]
    upper = odds > 0.5
    luck = Uniform(upper, jnp.where(upper, 1 - odds, odds))
    found = single_phase(*needed, luck, luck)
    return found.slowest_clock_fraction, found.clock_fraction


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_laws(seed: int):
    numbers = np.random.default_rng(seed)
    lanes = {
        "coolant_supply_temperature": numbers.uniform(20, 42, (1, MANY)),
        "coolant_flow": numbers.uniform(1.5, 4.3, (1, MANY)) * LITRE_PER_MINUTE,
    }
    lanes = {name: value.astype(np.float32) for name, value in lanes.items()}
    # more GPUs, then larger uniforms; the four cases after the first may only be slower
    gpus = np.array([[1, 72, 131072, 131072, 131072]], np.float32).T
    odds = np.array([[0.5, 0.5, 0.5, 0.75, 0.98]], np.float32).T
    slowest_clock, median = (np.asarray(x) for x in clocks(lanes, gpus, odds))
    assert np.isfinite(slowest_clock).all()
    assert np.all(slowest_clock <= median)
    assert np.all(slowest_clock >= np.float32(0.2))
    assert np.all(np.diff(slowest_clock, axis=0) <= 1e-5)


def test_equal_gpus_and_a_single_one_are_the_median():
    none = {name: 0.0 for name in GB300 if name.endswith("_spread")}
    inlets = np.linspace(20, 70, 60)
    found = cooled([True], 1e-6, gpus=131072, coolant_supply_temperature=inlets, **none)
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
