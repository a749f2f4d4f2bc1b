"""Rare tails drawn often: weights give back the mean of everything."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fabric_kernels.maths.importance import Weighed, emphasised
from fabric_kernels.uniform import Uniform

LANES = 2**14
weigh = jax.jit(emphasised)


def drawn(tail: float, share: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distances to the upper end, levels and weights of evenly spread uniforms."""
    half = (jnp.arange(LANES // 2, dtype=jnp.float32) + 0.5) / LANES
    upper = jnp.arange(LANES) < LANES // 2
    u = Uniform(upper, jnp.concatenate([half, half]))
    made: Weighed = weigh(
        u, jnp.full(LANES, tail, jnp.float32), jnp.full(LANES, share, jnp.float32)
    )
    distance, side = np.asarray(made.uniform.distance, np.float64), np.asarray(made.uniform.upper)
    top = np.where(side, distance, 1 - distance)
    return top, np.where(side, 1 - distance, distance), np.asarray(made.weight, np.float64)


@pytest.mark.parametrize("tail", [0.3, 1e-3, 1e-9, 1e-30])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_the_tail_has_its_share_and_its_probability(tail: float, share: float):
    top, level, weight = drawn(tail, share)
    rare = top <= tail * (1 + 1e-6)
    assert rare.mean() == pytest.approx(share, abs=2 / LANES)
    assert (weight * rare).mean() == pytest.approx(tail, rel=1e-3)
    assert weight.mean() == pytest.approx(1, rel=1e-3)
    # a smooth function keeps its mean, one that lives in the tail too
    assert (weight * level**2).mean() == pytest.approx(1 / 3, rel=2e-3)
    assert (weight * np.maximum(1 - top / tail, 0)).mean() == pytest.approx(tail / 2, rel=2e-3)


def test_without_weights_the_mean_is_wrong():
    top, _, _ = drawn(1e-3, 0.5)
    assert np.maximum(1 - top / 1e-3, 0).mean() > 100 * 1e-3 / 2


def test_it_is_the_identity_where_share_is_tail():
    top, _, weight = drawn(0.25, 0.25)
    even = (np.arange(LANES // 2) + 0.5) / LANES
    assert np.sort(top)[: LANES // 2] == pytest.approx(even, rel=1e-5)
    assert weight == pytest.approx(np.ones(LANES), rel=1e-6)
