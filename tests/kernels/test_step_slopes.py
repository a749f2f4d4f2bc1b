"""Slopes of the step time by what cools a GPU, against central differences, through a model."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fabric_kernels.catalogue import ANSWERS
from fabric_kernels.collective import Collective
from fabric_kernels.exchange import Exchange
from fabric_kernels.expert import Expert
from fabric_kernels.jitter import Jitter
from fabric_kernels.loss import Loss
from fabric_kernels.model import Model
from fabric_kernels.pipeline import Pipeline
from fabric_kernels.quantity import quantities
from fabric_kernels.tensor import Tensor
from fabric_kernels.uniform import Uniform
from tests.answers import precision, record_of
from tests.kernels.thermal_cases import GB300, LITRE_PER_MINUTE

LANES = 256
SUPPLY, FLOW, CAP = "coolant_supply_temperature", "coolant_flow", "power_cap"
TURNED = {
    "single_phase": (SUPPLY, FLOW, CAP),
    "two_phase": (SUPPLY, "refrigerant_flow_share", CAP),
    "air": ("air_supply_temperature", "rack_airflow", CAP),
}
"""Temperature and flow of the supply of each technology, and the power cap."""
EXCHANGES = (Collective, Tensor, Expert, Pipeline, Exchange, Jitter, Loss)
JOB = {"microbatches": 16.0, "microbatch_size": 1.0, "sequence_length": 8192.0}
STEP = 1e-6


Turned = dict[str, jax.Array]


def given(cooling: str) -> dict[str, np.ndarray]:
    """Lanes from cold to hot, from starved to flooded, capped and not."""
    numbers = np.random.default_rng(11)

    def draw(low: float, high: float) -> np.ndarray:
        return numbers.uniform(low, high, LANES)

    power = 700.0 if cooling == "air" else 1400.0
    values = {
        "gpus": 64 * np.floor(np.exp(draw(np.log(2), np.log(2048)))),
        "thermal_design_power": power, CAP: power * draw(0.7, 1.1), SUPPLY: draw(20, 52),
        FLOW: draw(1, 4) * LITRE_PER_MINUTE, "refrigerant_flow_share": draw(0.5, 1.2),
        "air_supply_temperature": draw(15, 40), "rack_airflow": draw(1, 2.5),
        "gpus_per_rack": 48.0, "other_power": 575.0,
    }  # fmt: skip
    everything = GB300 | JOB | values
    return {name: np.full(LANES, value, float) for name, value in everything.items()}


def stepped(cooling: str) -> Callable[[Turned, Turned], tuple[jax.Array, jax.Array]]:
    """Step time of a model in which exchanges take no time, and its derivative."""
    stages = (ANSWERS["workload"]["dense"], ANSWERS["cooling"][cooling])
    model = Model(*stages, ANSWERS["step"]["synchronous"])
    zero = {n: np.zeros(LANES) for kind in EXCHANGES for n in quantities(kind)}
    known = {kind: record_of(kind, zero, float) for kind in EXCHANGES}
    fixed = {n: model.quantities[n].default for n in model.needed(["step_time"], zero)}
    fixed = {n: np.full(LANES, v, float) for n, v in fixed.items() if v is not None}
    fixed |= given(cooling)
    luck = jnp.asarray(np.random.default_rng(12).uniform(0.01, 0.5, LANES))
    half = Uniform(luck < 0.3, luck)
    uniforms = {name: half for name in ("cooling.slowest", "cooling.bad_part")}

    def time(turned: Turned) -> jax.Array:
        every = {n: jnp.asarray(v) for n, v in fixed.items()} | turned
        return model(every, uniforms, ["step_time"], known)["step_time"]

    return jax.jit(lambda turned, rates: jax.jvp(time, (turned,), (rates,)))


@pytest.mark.parametrize("cooling", TURNED)
def test_slopes_of_the_step_time(cooling: str):
    with precision(np.float64):
        step, lanes = stepped(cooling), given(cooling)
        turned = {name: jnp.asarray(lanes[name]) for name in TURNED[cooling]}
        for name, at in turned.items():
            rates = {n: jnp.full(LANES, float(n == name)) for n in turned}
            here, slope = (np.asarray(x) for x in step(turned, rates))
            width = STEP * lanes[name]
            low, high = (step(turned | {name: at + k * width}, rates)[0] for k in (-1, 1))
            before, after = np.asarray(here - low) / width, np.asarray(high - here) / width
            central = (before + after) / 2
            rounding = 1e-7 * here / lanes[name]
            # where a limit changes within the step, its two sides have slopes of their own
            smooth = np.abs(after - before) <= 1e-4 * np.abs(central) + rounding
            allowed = (1e-3 * np.abs(central) + rounding)[smooth]
            assert np.isfinite(slope).all(), name
            assert smooth.mean() > 0.9, name
            assert np.all(np.abs(slope - central)[smooth] <= allowed), name
            assert np.any(np.abs(1.005 * slope - central)[smooth] > allowed), name
            assert (np.abs(central) > 100 * rounding).mean() > 0.2, name
