"""Laws of stalls on an exchange: rounds, trees, rings, marginal links, windows, pauses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fabric_kernels.errors import Errors, MarginalPaths
from fabric_kernels.inputs.loss import LossBursts
from fabric_kernels.loss.laws.critical import Luck, RingLoad, mean_ring_count, ring_count
from fabric_kernels.loss.laws.exchange import Drawn, exchange_stall
from fabric_kernels.loss.laws.flow import Flow, Losses, window_limited, window_share
from fabric_kernels.loss.laws.moments import go_back_n_goodput
from fabric_kernels.loss.laws.pauses import Pauses, pause_moments
from fabric_kernels.loss.laws.rounds import largest_poisson_moments
from fabric_kernels.loss.laws.schemes import go_back_n_single_nak_repair, selective_repeat_repair
from fabric_kernels.loss.laws.tree import tree_rounds
from fabric_kernels.maths.chain import chain_law, chain_quantile
from fabric_kernels.pattern import Ring, Traffic, Tree
from fabric_kernels.uniform import Uniform
from tests.agreement import assert_mean
from tests.reference.packet_loss import chain_lengths, ring_stalls

LANES = 4096
LEVEL = (np.arange(LANES // 2) + 0.5) / LANES


def lane(*values: float) -> jax.Array:
    return jnp.asarray(values, jnp.float32).reshape(1, -1)


def spread(seed: int) -> Uniform:
    """Every level of (0, 1) once, in the order of the seed."""
    order = np.random.default_rng(seed).permutation(LANES)
    distance = np.tile(LEVEL, 2)[order].astype(np.float32)
    return Uniform(jnp.asarray(order < LANES // 2).reshape(1, -1), jnp.asarray(distance)[None])


largest = jax.jit(largest_poisson_moments)


@pytest.mark.parametrize("rate", [1e-7, 1e-3, 0.1, 3.0, 5.0, 40.0])
def test_the_largest_poisson_count(rate: float):
    """Against the exact sum of survivals; 2e-4 of the mean, 2 % of the variance."""
    numbers = [1.0, 8.0, 1024.0, 1e5]
    mean, variance = (np.asarray(x)[0] for x in largest(lane(*[rate] * 4), lane(*numbers)))
    count = np.arange(int(4 * rate + 80))
    rate = float(np.float32(rate))
    for number, found, wide in zip(numbers, mean, variance, strict=True):
        passed = -np.expm1(number * np.log1p(-np.minimum(stats.poisson.sf(count, rate), 1 - 1e-16)))
        truth = passed.sum()
        assert found == pytest.approx(truth, rel=3e-4)
        assert wide == pytest.approx(((2 * count + 1) * passed).sum() - truth**2, rel=0.02)
        assert number == 1 or found != pytest.approx(number * rate, rel=1e-9) or rate < 1e-5


def test_the_worst_way_of_a_tree():
    """One leg of a full binary tree against its leaves walked one by one."""
    generator = np.random.default_rng(6)
    edge, depth, runs = 0.05, 8, 2000
    total = np.zeros((runs, 1))
    for level in range(1, depth + 1):
        total = np.repeat(total, 2, axis=1) + generator.poisson(edge, (runs, 2**level))
    worst = total.max(axis=1)
    one = lane(1.0)
    tree = Tree(lane(2.0 ** (depth + 1) - 1), lane(depth), one, one, one, one, one, one)
    made = jax.jit(tree_rounds)(tree, lane(edge))
    mean = float(made.mean[0, 0])
    deviation = float(made.variance[0, 0]) ** 0.5
    assert_mean(worst, mean, deviation)
    with pytest.raises(AssertionError):
        assert_mean(worst, 1.1 * mean, deviation)


chain = jax.jit(lambda n, h, u: chain_quantile(chain_law(n, jnp.full_like(n, 1e30), h), u))


@pytest.mark.parametrize(("stalls", "turns"), [(2, 1), (3, 16), (6, 2), (12, 4), (40, 1), (40, 8)])
def test_sampled_chains_have_the_law_of_chains(stalls: int, turns: int):
    found = np.asarray(chain(lane(stalls), lane(turns), spread(1)))[0]
    truth = chain_lengths(stalls, float(turns), 4000, np.random.default_rng(8))
    error = truth.std() / truth.size**0.5
    # 0.5 % of the table's interpolation, 1 % of whole numbers, beside chance
    assert abs(found.mean() - truth.mean()) < 4.9 * error + 0.015 * truth.mean()
    assert found.std() == pytest.approx(truth.std(), rel=0.1)
    for level in (0.1, 0.9, 0.99):
        assert abs(np.quantile(found, level) - np.quantile(truth, level)) <= 1
    assert abs(1.06 * found.mean() - truth.mean()) > 4.9 * error + 0.015 * truth.mean()


count = jax.jit(lambda load, luck: ring_count(load, luck))


def counts(copies: float, stalls: float) -> np.ndarray:
    load = RingLoad(lane(copies), lane(64.0), lane(2.0), lane(stalls))
    return np.asarray(count(load, Luck(spread(2), spread(3))))[0]


@pytest.mark.parametrize("stalls", [0.2, 3.0, 30.0])
def test_the_count_of_one_ring_has_its_mean_and_spread(stalls: float):
    found = counts(1.0, stalls)
    mean = mean_ring_count(RingLoad(lane(1.0), lane(64.0), lane(2.0), lane(stalls)))
    assert found.mean() == pytest.approx(float(mean[0, 0]), rel=0.02)
    truth = ring_stalls(64, stalls, 1500, np.random.default_rng(9), repeated=True)
    assert found.std() == pytest.approx(truth.std(), rel=0.1)


def test_the_slowest_of_many_busy_rings():
    """Sixteen rings of 30 stalls: count and chain spread together, 3 % as for one ring."""
    found = counts(16.0, 30.0)
    truth = ring_stalls(64, 30.0, 4800, np.random.default_rng(10), repeated=True)
    worst = truth.reshape(300, 16).max(axis=1)
    error = worst.std() / worst.size**0.5
    assert abs(found.mean() - worst.mean()) < 4.9 * error + 0.03 * worst.mean()
    # the ring with most stalls alone is not the slowest
    assert abs(counts(1.0, 30.0).mean() - worst.mean()) > 4.9 * error + 0.03 * worst.mean()


PACKET = 1e-7
FLOW = Flow(lane(60 * PACKET), lane(PACKET), lane(4096.0), lane(0.05), lane(1000.0))
SINGLE = LossBursts(loss_burst_length=lane(1.0), loss_burst_severity=lane(1.0))


def ring(packets: float) -> Traffic:
    one = lane(1.0)
    return Traffic((Ring(lane(64.0), lane(126.0), lane(packets * 4096), one, one),), one)


@jax.jit
def stall(errors: Errors, drawn: Drawn) -> jax.Array:
    one = lane(1.0)
    scheme = go_back_n_single_nak_repair
    return exchange_stall((ring(100.0),), scheme, FLOW, errors, SINGLE, one, drawn)


def errors_of(ordinary: float, marginal: float, links: float) -> Errors:
    return Errors(
        path_loss_rate=lane(ordinary),
        marginal_path_loss_rate=lane(marginal),
        marginal_links=lane(links),
        marginal=(MarginalPaths(lane(marginal), lane(links)),),
    )


def test_one_marginal_link_stalls_the_whole_ring():
    """Its losses lie at one rank and each counts in full; the same number spread does not."""
    quiet = Uniform(jnp.zeros((1, LANES), bool), jnp.full((1, LANES), 0.4, jnp.float32))
    drawn = Drawn(spread(4), quiet, spread(5))
    losses = 20.0
    rate = losses / (126 * 99)
    marginal = np.asarray(stall(errors_of(0.0, rate, 1.0), drawn)).mean()
    none = np.asarray(stall(errors_of(0.0, rate, 0.0), drawn)).max()
    spread_out = np.asarray(stall(errors_of(rate / 64, 0.0, 0.0), drawn)).mean()
    assert none == 0
    # the timer class is quiet at this level but for resends lost again
    assert marginal == pytest.approx(losses * 62 * PACKET, rel=0.05)
    assert spread_out < 0.4 * marginal


def test_any_loss_keeps_its_chance_from_1e_13_to_1e4():
    expected = 10.0 ** np.arange(-13, 5)
    rate = jnp.asarray(expected / (126 * 64 * 100), jnp.float32)[None]
    losses = Losses(jnp.minimum(rate, 0.5), SINGLE)
    packets = lane(126 * 64 * 100.0)
    chance = np.asarray(-jnp.expm1(-packets * losses.exponent), np.float64)[0]
    truth = -np.expm1(126 * 64 * 100 * np.log1p(-np.asarray(losses.rate, np.float64)[0]))
    np.testing.assert_allclose(chance, truth, rtol=2e-6)
    assert (chance > 0).all()


@settings(max_examples=60)
@given(
    st.floats(0, 0.1), st.floats(1, 1e6), st.floats(64, 1e6), st.floats(1, 1e3), st.floats(1, 100)
)
def test_what_a_loss_costs_is_finite(
    rate: float, packets: float, window: float, trip: float, burst: float
):
    flow = Flow(lane(trip * PACKET), lane(PACKET), lane(1.0), lane(1.0), lane(window))
    bursts = LossBursts(loss_burst_length=lane(burst), loss_burst_severity=lane(0.7))
    for scheme in (selective_repeat_repair, go_back_n_single_nak_repair):
        for stalls in scheme(flow, Losses(lane(rate), bursts))(lane(packets)):
            assert stalls is not None
            for value in stalls:
                assert np.isfinite(value).all()
                assert (value >= 0).all()


def test_a_small_window_is_flagged_and_slows_the_flow():
    for window, limited, share in ((61.0, False, 1.0), (30.5, True, 0.5)):
        flow = FLOW._replace(window=lane(window), round_trip=lane(60 * PACKET))
        assert bool(window_limited(flow)[0, 0]) == limited
        assert float(window_share(flow)[0, 0]) == pytest.approx(share, rel=1e-5)


def test_goodput_of_go_back_n():
    """Bertsekas and Gallager's formula at half: p = 1e-2, W = 100."""
    assert float(go_back_n_goodput(lane(0.01), lane(99.0))[0, 0]) == pytest.approx(0.5, rel=1e-6)


def test_pauses_of_a_link_that_has_run_for_long():
    """Simulated pause by pause; 1 % beside chance, and a law without the first pause fails."""
    generator = np.random.default_rng(11)
    work, rate, mean, runs = 10.0, 1.0, 0.5, 20_000
    total = np.zeros(runs)
    paused = generator.random(runs) < rate * mean / (1 + rate * mean)
    total += np.where(paused, generator.exponential(mean, runs), 0)
    for run, number in enumerate(generator.poisson(rate * work, runs)):
        total[run] += generator.exponential(mean, number).sum()
    pauses = Pauses(lane(rate), lane(mean), lane(1.0))
    expected, variance = (float(x[0, 0]) for x in pause_moments(lane(work), pauses))
    assert_mean(total, expected, variance**0.5)
    assert total.std() == pytest.approx(variance**0.5, rel=0.03)
    with pytest.raises(AssertionError):
        assert_mean(total, rate * work * mean, variance**0.5)
