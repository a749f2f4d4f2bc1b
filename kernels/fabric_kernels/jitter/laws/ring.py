"""What hop noise costs a ring without barriers.

t[i, k+1] = max(t[i, k], t[i-1, k]) + w[i, k] is last-passage percolation on a cylinder, directed
along its diagonal. Two laws of hops with one mean and deviation cost nearly the same, m + c sigma
a hop with c between 0.86 and 1.3; for exponential hops c = 1 exactly in an endless ring (Rost, Z.
Wahrsch. verw. Geb. 58, 1981; Johansson, Commun. Math. Phys. 209, 2000). How c depends on the size
and on the shape of the law is simulated by kernels/constants/ring_constants.py.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from fabric_kernels.jitter.laws import ring_table as table
from fabric_kernels.jitter.laws.polynomial import across, along, centred
from fabric_kernels.maths.normal import normal_score_of_tail
from fabric_kernels.maths.order_statistics import GREATEST, HALF, SMALLEST, Level
from fabric_kernels.noise import Body, HopNoise, Rare
from fabric_kernels.pattern import Ring

SKEWNESS = 0.29  # of the finishing time of light laws
SIZES = (1.0, 12.0)  # log2 of the ranks that were simulated
LOG_HALF = math.log(HALF)
HAZARD = (-1 / 24, 1 / 2880, -1 / 181440)
"""-log((1 - exp(-E)) / E) = E / 2 + these times E^2, E^4 and E^6, for E below log 2."""
WIDTHS = (2.0, 9.0)  # log2 of the ranks between which the width of the law was simulated


class Percolation(NamedTuple):
    """The law of one ring's finishing time, without the hops' mean."""

    excess: Array  # s, mean of one hop above its mean
    width: Array  # s, of the fluctuations of the whole
    offset: Array  # s, mean of the fluctuations above their median


def ring_stall(
    ring: Ring,
    noise: HopNoise,
    exponential: Array,
    *,
    delay: Array | float = 0.0,
    slots: Array | None = None,
) -> Array:
    """Quantile of the noise of all calls of one ring (s), at -log F = `exponential`.

        T = k K max(m + e, m + delay) + a (G - offset)
        G = z - z_50 below the median, above it hypot(z - z_50, (M - M_50) / a)

    K steps a call, k calls one after another, e the excess of a hop, a the width sqrt(k) unit
    K^(1/3) A, z a normal score with the skewness of the Tracy and Widom law, M the largest of all
    hops: a heavy hop is paid in full wherever it falls, which rules the far tail. `delay` is the
    extra time of every hop of one slow rank (s), which hides under e up to there; `slots` the
    messages a receiver can hold before it stops the sender, None for many.

    The mean agrees with event-level simulation within 0.5 % for light tails and 1 % for heavy ones
    (lognormal 1, Weibull 0.5, Pareto 0.25) from 2 to 4096 ranks (2 % for one phase of 2 or 4, and
    3 % for lognormal 1.5 below 16); beyond, the excess falls to its limit like N^-0.57. The 99th
    percentile is within 3 % from 32 ranks on for light tails and within 8 % from 64 on for heavy
    ones; of fewer ranks and very heavy laws (Pareto 0.4, lognormal 1.5, rare spikes) within 10 %,
    where the recursion itself is affordable. From a tail index of 1/2 on, which is simulated as
    0.49, only the far tail is right.

    A barrier over many domains reads the tail of rings of few ranks: the mean of the slowest of 16
    or 128 rings, of one phase or of both, is within 2 % of simulation from 8 ranks on and within
    3 % of 4 ranks (Pareto 0.4: 4 %, and 14 % of one phase of 64 ranks), but 25 % too high of 2.
    """
    steps, ranks = jnp.maximum(ring.steps, 1.0), jnp.maximum(ring.ranks, 2.0)
    calls = jnp.maximum(ring.repeats, 1.0)
    mean, _ = noise.moments()
    law = _percolation(noise, ranks, steps)
    excess = law.excess if slots is None else law.excess * back_pressure(slots)
    width = law.width * jnp.sqrt(calls)
    hops = steps * ranks * calls
    above = jnp.clip(exponential, SMALLEST, HALF)
    logarithm, share = jnp.log(above), jnp.log(hops)
    jump = _largest(noise, above / hops, logarithm - share)
    jump = jump - _largest(noise, HALF / hops, LOG_HALF - share)
    fluctuation = _spread(_score(exponential, logarithm), width, jump)
    fluctuation = fluctuation - law.offset * jnp.sqrt(calls)
    total = calls * steps * (mean + jnp.maximum(excess, delay)) + fluctuation
    return jnp.where((ring.steps > 0) & (ring.repeats > 0), total, 0.0)


def _largest(noise: HopNoise, exponent: Array, logarithm: Array) -> Array:
    """Quantile where -log F = `exponent` is small, of which the logarithm is known."""
    series = exponent * (1.0 - exponent * (0.5 - exponent * (1.0 / 6.0)))
    hazard = exponent * (0.5 - exponent * (1.0 / 24.0)) - logarithm
    return noise.quantile(Level(jnp.ones_like(exponent, dtype=bool), series, exponent, hazard))


def _score(exponential: Array, logarithm: Array) -> Array:
    """Normal score of exp(-exponential); `logarithm` is that of it where it is below log 2."""
    exponent = jnp.clip(exponential, SMALLEST, GREATEST)
    upper = exponent < HALF
    square = exponent * exponent
    hazard = 0.5 * exponent + square * along(HAZARD, square) - logarithm
    minus_log = jnp.where(upper, hazard, exponent)
    score = normal_score_of_tail(jnp.exp(-minus_log), minus_log)
    return jnp.where(upper, score, -score)


def _spread(score: Array, width: Array, jump: Array) -> Array:
    """Distance from the median (s): skew normal of this width, or the largest hop's, above it."""
    light = width * (score + SKEWNESS / 6.0 * score * score)
    upper = jnp.sqrt(light * light + jump * jump + 1e-30) - 1e-15
    return jnp.where(score > 0, upper, light)


def back_pressure(slots: Array) -> Array:
    """Factor on the excess of a ring whose receivers hold few messages.

    1.39 with one slot, 1.09 with two, 1 from four on: simulated for exponential, normal and
    lognormal hops at 64 and 512 ranks, which agree within 3 %.
    """
    return 1.0 + 0.39 * jnp.exp(-1.5 * jnp.maximum(slots - 1.0, 0.0))


def _percolation(noise: HopNoise, ranks: Array, steps: Array) -> Percolation:
    body, rare = noise.body(), noise.rare()
    law = _of_body(body, ranks, steps)
    return law if rare is None else _with_spikes(body, rare, law, ranks, steps)


def _of_body(body: Body, ranks: Array, steps: Array) -> Percolation:
    """Constants of a tabulated law, in s."""
    family = body.family
    member = centred(body.coordinate, table.RANGE[family])
    doublings = jnp.log2(ranks)
    size = centred(doublings, SIZES)
    excess = across(table.EXCESS[family], size, member)
    # one phase lasts half as long: 0 there, 1 for both phases
    phases = jnp.clip(steps / (ranks - 1.0) - 1.0, 0.0, 1.0)
    excess = jnp.exp(excess + (1.0 - phases) * across(table.PHASE[family], size, member))
    limit = along(table.LIMIT[family], member)
    beyond = jnp.exp(-0.57 * 0.6931472 * jnp.maximum(doublings - SIZES[1], 0.0))
    excess = limit + (excess - limit) * beyond
    # relative to K^(1/3) the width falls slowly on
    simulated = centred(jnp.clip(doublings, *WIDTHS), SIZES)
    narrower = 1.0 - 0.03 * jnp.clip(doublings - WIDTHS[1], 0.0, 10.0)
    width = across(table.WIDTH[family], simulated, member)
    width = width + (1.0 - phases) * across(table.PHASE_WIDTH[family], simulated, member)
    width = jnp.exp(width + jnp.log(steps) * (1.0 / 3.0)) * narrower
    simulated = centred(jnp.minimum(doublings, WIDTHS[1]), SIZES)
    offset = across(table.OFFSET[family], simulated, member)
    offset = offset + (1.0 - phases) * across(table.PHASE_OFFSET[family], simulated, member)
    unit = width * body.unit
    return Percolation(excess * body.unit, unit, unit * offset)


def _with_spikes(
    body: Body, rare: Rare, law: Percolation, ranks: Array, steps: Array
) -> Percolation:
    """Constants of a body with spikes: the p-norm of what each alone would add.

    p rises from 1, spikes that are few and long and paid beside everything else, towards 2, when
    the path has to choose. Within 5 % of the total in event-level runs.
    """
    count = rare.share * steps * ranks
    alone = spike_excess(rare, count, ranks) / steps
    length = rare.length / jnp.maximum(body.unit, 1e-18)
    power = 1.0 + 0.09 * jnp.log1p(count) + 5.0 / (5.0 + length)
    power = jnp.minimum(power, 2.0)
    excess = _norm(law.excess, alone, power)
    sixth = jnp.exp(jnp.log(0.5 * count + 1e-18) * (1.0 / 6.0))
    width = (0.65 + 0.76 * rare.memory) * sixth * (count / (1.0 + count))  # in lengths
    jump = _mean_jump(rare, count, width)
    both = jnp.sqrt(law.width * law.width + rare.length * rare.length * width * width)
    offset = law.offset + rare.length * (0.05 * width + jump)
    return Percolation(excess, both, offset)


def _mean_jump(rare: Rare, count: Array, width: Array) -> Array:
    """What the largest spike adds to the mean of the spread, in lengths; `width` too.

    Above its median, its mean is that of Poisson many: one spike while there is none at the
    median, and of exponential lengths Ein(min(count, log 2)). Where the spread's own upper half,
    0.4 widths, is as large, the largest spike hides in it.
    """
    equal = jnp.where(count < HALF, -jnp.expm1(-count) * jnp.maximum(1.0 - 0.8 * width, 0.0), 0.0)
    few = jnp.minimum(count, HALF)
    entire = few * (1.0 - few * (0.25 - few * (1.0 / 18.0)))
    light = 0.4 * width
    hidden = jnp.sqrt(light * light + entire * entire + 1e-30) - light
    longer = jnp.where(count < HALF, entire * jnp.maximum(1.0 - 0.8 * width, 0.0), hidden)
    return equal + rare.memory * (longer - equal)


def spike_excess(rare: Rare, count: Array, ranks: Array) -> Array:
    """Mean time that `count` spikes in a ring add to its path above their share of its hops (s).

    count / sqrt(1 + count / 2) (1 - 1 / N) times a fitted factor near 1: a single spike is paid
    but for the share 1 / N that the mean of the hops holds already, and of many the path collects
    the longest chain, sqrt(2 count) of equal ones (Hammersley's process; Aldous and Diaconis,
    Bull. Amer. Math. Soc. 36, 1999).
    """
    base = count / jnp.sqrt(1.0 + 0.5 * count) * (1.0 - 1.0 / ranks)
    logarithm = jnp.log1p(count)
    w = jnp.minimum(logarithm / (logarithm + 3.0), 0.83)
    q = jnp.exp(jnp.log(ranks) * (-1.0 / 3.0))

    def factor(row: tuple[float, ...]) -> Array:
        share = jnp.minimum(rare.share, 0.5)
        rest = along(row[7:10], w) + share * along(row[10:13], w)
        return jnp.exp(along(row[:7], w) + share * rest + q * along(row[13:], w))

    equal, longer = factor(table.SPIKES), factor(table.LONG_SPIKES)
    blend = rare.memory * rare.memory
    return rare.length * base * (equal + blend * (longer - equal))


def _norm(one: Array, other: Array, power: Array) -> Array:
    """(one^p + other^p)^(1/p) of two numbers >= 0."""
    greater = jnp.maximum(jnp.maximum(one, other), 1e-30)
    ratio = jnp.maximum(jnp.minimum(one, other), 1e-30) / greater
    return greater * jnp.exp(jnp.log1p(jnp.exp(power * jnp.log(ratio))) / power)
