"""The packet-by-packet simulation against one that looks at every slot, and the closed forms."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric_kernels.loss.event_level import Outcome, Run, go_back_n_run, selective_repeat_run
from fabric_kernels.loss.laws.channel import GilbertElliott, Independent
from fabric_kernels.loss.laws.moments import (
    go_back_n_goodput,
    go_back_n_moments,
    selective_repeat_mean,
    timeout_of,
)
from fabric_kernels.uniform import Uniform, WideUniform
from tests.agreement import assert_share, assert_within_errors
from tests.reference import packet_recovery
from tests.tables import reference_table

RUNS = 256
ROUND_TRIPS = (packet_recovery.Flow(30, 6, 8, 60), packet_recovery.Flow(40, 6, 20, 80))
EITHER = pytest.mark.parametrize("single_nak", [False, True])


class Tabled(WideUniform):
    """The same uniforms for the simulation and for the reference: a table by number and run."""

    def __init__(self, values: jax.Array) -> None:
        self.values = values  # [number, run]

    def at(self, number: jax.Array) -> Uniform:
        found = self.values[number.reshape(-1).astype(jnp.int32)][:, None, :]
        return Uniform(jnp.zeros(found.shape, bool), found)


def uniforms(seed: int, numbers: int = 400) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return generator.uniform(1e-7, 1, (numbers, RUNS)).astype(np.float32)


def whole(*values: int) -> Run:
    return Run(*(jnp.full((1, 1), v, jnp.int32) for v in values))


def chance(*values: float) -> list[jax.Array]:
    return [jnp.full((1, 1), v, jnp.float32) for v in values]


goes_back = {
    single: jax.jit(partial(go_back_n_run, single_nak=single, most=390)) for single in (False, True)
}
repeats = jax.jit(partial(selective_repeat_run, most=390))


def run(simulate, values: np.ndarray, flow, channel) -> Outcome:
    # the class of uniforms is no pytree: its table is closed over
    found = simulate(whole(*flow), channel, Tabled(jnp.asarray(values)))
    return Outcome(*(np.asarray(x).ravel() for x in found))


def lossy_slots(values: np.ndarray, rate: float) -> list[set[int]]:
    """Slots that lose their packet, from geometric gaps by the same uniforms."""
    gaps = np.floor(np.log(values.astype(np.float64)) / np.log1p(-rate)).astype(int) + 1
    return [set(column) for column in (np.cumsum(gaps, axis=0) - 1).T]
