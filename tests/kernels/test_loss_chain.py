"""How many of n stalls lie on a ring's critical path."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from fabric_kernels.maths.chain import chain_length
from tests.reference.packet_loss import ring_stalls
from tests.tables import reference_table

LIMIT = float(stats.norm.isf(0.5e-6))  # two-sided false alarm 1e-6
MANY = 1e30  # ranks
chains = jax.jit(chain_length)


def length(stalls: ArrayLike, ranks: ArrayLike) -> NDArray[np.float64]:
    stalls, ranks = np.broadcast_arrays(np.atleast_1d(stalls), ranks)
    given_ = jnp.asarray(stalls, jnp.float32), jnp.asarray(ranks, jnp.float32)
    return np.asarray(chains(*given_), np.float64)


def expected_length(mean: float, ranks: float) -> float:
    """E chain_length(n), n ~ Poisson(mean)."""
    n = np.arange(2048)
    return float(length(n, ranks) @ stats.poisson.pmf(n, mean))


def simulated_chains() -> list[tuple[int, float, float]]:
    rows = [
        (int(found[1]), float(row["value"]), float(row["stderr"]))
        for row in reference_table("loss_stall.csv")
        if row["scheme"] == "ring_stall_chain"
        and row["stat"] == "mean"
        and (found := re.fullmatch(r"steps/N=2;stalls=(\d+)", row["params"]))
    ]
    assert len(rows) >= 10
    return rows


def disagreements(scale: float) -> int:
    """Rows that `scale` times the chain law misses by 0.2 % and what chance allows."""
    rows = simulated_chains()
    law = scale * length([n for n, _, _ in rows], MANY)
    return sum(
        abs(ours - mean) > 0.002 * mean + LIMIT * error
        for ours, (_, mean, error) in zip(law, rows, strict=True)
    )


def test_agrees_with_the_simulated_table():
    assert disagreements(1.0) == 0


def test_the_check_sees_a_law_two_percent_off():
    assert disagreements(1.02) > 3


def test_known_lengths():
    # two points on a cylinder of height 2: 1 + P(comparable) = 19/12, by integration
    assert length([0, 1, 2], MANY) == pytest.approx([0, 1, 19 / 12], rel=1e-5, abs=0)
    # a ring of one rank waits for every stall
    assert length([1, 2, 7, 5000], 1) == pytest.approx([1, 2, 7, 5000], rel=1e-6)


@pytest.mark.parametrize(("ranks", "bound"), [(2, 0.07), (4, 0.07), (8, 0.07), (32, 0.03)])
@pytest.mark.parametrize("mean", [0.5, 5.0, 60.0])
def test_agrees_with_rings_event_by_event(ranks: int, bound: float, mean: float):
    generator = np.random.default_rng(20261130)
    found = ring_stalls(ranks, mean, 4000, generator, repeated=True)
    error = float(found.std() / np.sqrt(found.size))
    # the stated accuracy, and what chance allows
    allowed = bound * found.mean() + LIMIT * error
    assert abs(expected_length(mean, ranks) - found.mean()) < allowed


def test_agrees_with_the_table_of_rings():
    rows = [
        r for r in reference_table("collective_stall.csv") if r["case"] == "ring_stalls_no_barrier"
    ]
    assert len(rows) >= 10
    for row in rows:
        ranks, mean = map(float, re.findall(r"=([\d.]+)", row["params"]))
        value, error = float(row["value"]), float(row["stderr"])
        allowed = 0.03 * value + LIMIT * error
        assert abs(expected_length(mean, ranks) - value) < allowed, row


def test_the_ring_check_sees_a_barrier():
    """A barrier after every step waits for nearly every stall: 60, not 15."""
    found = ring_stalls(32, 60.0, 400, np.random.default_rng(1), repeated=True)
    assert abs(60.0 - found.mean()) > 0.5 * found.mean()


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 10**6))
def test_grows_with_stalls_and_falls_with_ranks(stalls: int, more: int, ranks: int):
    few, many, spread = length([stalls, stalls + more, stalls], [ranks, ranks, ranks + more])
    assert 1 - 1e-6 <= few <= stalls * (1 + 1e-6)
    assert few <= many * (1 + 1e-6)
    assert spread <= few * (1 + 1e-6)
