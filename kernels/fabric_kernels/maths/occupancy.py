"""The fullest of M boxes when F balls are thrown at random, from one uniform, in float32."""

import jax
import jax.numpy as jnp
from jax import Array
from jax.lax import stop_gradient
from jax.scipy.special import erfc

from fabric_kernels.uniform import Uniform

_RARE = 0.02  # survival below which overfull boxes hardly ever come in twos


def largest_load(balls: Array, boxes: Array, u: Uniform) -> Array:
    """Smallest load k with P(no box holds more than k balls) >= u, for F balls and M boxes.

    The middle of the law is Levin's representation by truncated Poisson counts, Annals of
    Statistics 9(5), 1981: with X Poisson of mean F / M and W the sum of M such, each at most k,

        P(max <= k) = P(X <= k)^M P(W = F) / P(Poisson(F) = F)

    and an Edgeworth series of two terms for W, divided by its value without truncation. Above,
    where P(max > k) < 0.02, the boxes are independent binomial counts, and where 2 (k + 1) > F only
    one box can be overfull, so that P(max > k) = M P(Binomial(F, 1 / M) > k).

    Against the exact law P(max <= k) is within 7e-4 from 8 balls and 8 boxes on and within 9e-3 for
    fewer; where F >= M and P(max > k) < 0.02 that is right to 8 % of itself, down to 1e-11. For
    F / M up to 1e5 and whole F; one box holds all. A count, so its gradient is 0.
    """
    balls, boxes = stop_gradient(balls), stop_gradient(boxes)
    mean = balls / boxes
    survival = jnp.where(u.upper, u.distance, 1.0 - u.distance)
    rarity = jnp.log(boxes) - jnp.log(survival) + 1.0
    # Chernoff: P(Poisson(m) > m + sqrt(2 m L) + 2 L / 3) < exp(-L)
    most = jnp.ceil(mean + jnp.sqrt(2.0 * mean * rarity) + rarity * (2 / 3))
    few = jnp.ceil(mean - 1e-3) - 1.0  # a box holds the mean at least
    most = jnp.maximum(jnp.minimum(most, balls), few + 1.0)

    def halve(bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bracket
        middle = jnp.floor(0.5 * (low + high))
        enough = overfull(balls, boxes, jnp.maximum(middle, 1.0)) <= survival
        wide = high - low > 1.0  # a lane that has ended waits for the others
        return jnp.where(wide & ~enough, middle, low), jnp.where(wide & enough, middle, high)

    shape = jnp.broadcast_shapes(mean.shape, survival.shape)
    bracket = jnp.broadcast_to(few, shape), jnp.broadcast_to(most, shape)
    # about log2(sqrt(50 F / M)) steps; a lane's bits do not depend on how many its neighbours take
    found = jax.lax.while_loop(lambda b: jnp.any(b[1] - b[0] > 1.0), halve, bracket)[1]
    return jnp.where(boxes > 1.5, found, balls)


def overfull(balls: Array, boxes: Array, load: Array) -> Array:
    """P(max > load): the probability that some box holds more than `load` balls.

    For at least 2 boxes; see `largest_load`.
    """
    boxes = jnp.maximum(boxes, 2.0)
    within = load < balls - 0.5
    load = jnp.where(within, load, jnp.maximum(balls - 1.0, 0.0))
    one = _binomial_survival(balls, boxes, load)
    alone = 2.0 * (load + 1.0) > balls
    union = jnp.where(alone, boxes * one, -jnp.expm1(boxes * jnp.log1p(-one)))
    middle = -jnp.expm1(jnp.minimum(_log_none_over(balls, boxes, load), 0.0))
    over = jnp.where(alone | (union < _RARE), jnp.minimum(union, 1.0), middle)
    return jnp.where(within, over, 0.0)


def _log_none_over(balls: Array, boxes: Array, load: Array) -> Array:
    """Levin's log P(max <= load).

    From the cumulants c2, c3, c4 of one truncated count as shares of those without truncation, all
    F / M: c = 1 - r. Written in the r, which vanish with the truncation, so that nothing cancels.
    """
    mean = balls / boxes
    survival = _normal_survival(_poisson_score(mean, load))
    cut = _poisson_mass(mean, load) / (1.0 - survival)  # mean without - with truncation, over F / M
    gap = load - mean + mean * cut
    second = cut * (1.0 + gap)
    variance = mean * (1.0 - second)
    third = second + cut * (gap * (1.0 + gap) - variance)
    fourth = (
        third
        + cut * (1.0 + gap) * (gap * (1.0 + gap) - variance)
        - cut * (variance * (1.0 + 2.0 * gap) + mean * (1.0 - third))
    )
    square = boxes * (mean * cut) * (mean * cut) / variance
    correction = _edgeworth(balls, square, (1.0 - second, second, third, fourth))
    return (
        boxes * jnp.log1p(-survival)
        - 0.5 * jnp.log1p(-second)
        - 0.5 * square
        + jnp.log1p(jnp.maximum(correction, -0.999999))
    )


def _edgeworth(balls: Array, square: Array, shares: tuple[Array, ...]) -> Array:
    """The Edgeworth series at x = sqrt(square) over its value without truncation, minus 1."""
    left, second, third, fourth = shares
    x = jnp.sqrt(square)
    skewness = (1.0 - third) / (left * jnp.sqrt(left))
    # kurtosis - 1 and skewness^2 - 1
    kurtosis = (2.0 * second - second * second - fourth) / (left * left)
    skewed = (third * third - 2.0 * third + second * (3.0 - 3.0 * second + second * second)) / (
        left * left * left
    )
    odd = skewness / (6.0 * jnp.sqrt(balls)) * (x * square - 3.0 * x)
    even = (1.0 + kurtosis) / 24.0 * square * (square - 6.0) + kurtosis / 8.0
    six = (1.0 + skewed) / 72.0 * square * (square * (square - 15.0) + 45.0) - skewed * (15 / 72)
    return (odd + (even + six) / balls) / (1.0 - 1.0 / (12.0 * balls))


def _divergence(excess: Array) -> Array:
    """(1 + t) log(1 + t) - t for t > -1, without cancellation near 0."""
    near = jnp.abs(excess) < 0.05
    small = jnp.where(near, excess, 0.0)
    series = small * small * (1 / 2 - small * (1 / 6 - small * (1 / 12 - small * (1 / 20))))
    far = jnp.where(near, 1.0, excess)
    return jnp.where(near, series, (1.0 + far) * jnp.log1p(far) - far)


def _normal_survival(score: Array) -> Array:
    return 0.5 * erfc(score * 0.7071067811865476)


def _scaled(shift: Array, offset: Array, divergence: Array) -> Array:
    """shift sqrt(2 divergence) / |offset|, which is shift / deviation where the offset vanishes."""
    size = jnp.maximum(jnp.abs(offset), 1e-3)
    return shift * jnp.sqrt(2.0 * divergence) / size


def _poisson_score(mean: Array, load: Array) -> Array:
    """Normal score of P(Poisson(mean) <= load): Peizer and Pratt, J. Am. Stat. Ass. 63, 1968."""
    offset = load + 0.5 - mean
    offset = jnp.where(jnp.abs(offset) < 1e-3, 1e-3, offset)
    shift = load + 2 / 3 - mean + 0.02 / (load + 1.0)
    return _scaled(shift, offset, mean * _divergence(offset / mean))


def _binomial_survival(balls: Array, boxes: Array, load: Array) -> Array:
    """P(Binomial(F, 1 / M) > load), load < F: Peizer and Pratt, relative error below 1 %."""
    share = 1.0 / boxes
    mean, rest = balls * share, balls * (1.0 - share)
    offset = load + 0.5 - mean
    offset = jnp.where(jnp.abs(offset) < 1e-3, 1e-3, offset)
    divergence = mean * _divergence(offset / mean) + rest * _divergence(-offset / rest)
    small = (1.0 - share) / (load + 1.0) - share / (balls - load) + (0.5 - share) / (balls + 1.0)
    shift = load + 2 / 3 - (balls + 1 / 3) * share + 0.02 * small
    score = _scaled(shift, offset, divergence / (1.0 + 1.0 / (6.0 * balls)))
    return _normal_survival(score)


def _poisson_mass(mean: Array, load: Array) -> Array:
    """P(Poisson(mean) = load) for load >= 1, with Stirling's series; relative error below 1e-4."""
    inverse = 1.0 / load
    stirling = inverse * (1 / 12 - inverse * inverse * (1 / 360 - inverse * inverse * (1 / 1260)))
    exponent = mean * _divergence((load - mean) / mean) + stirling
    return jnp.exp(-exponent) * jnp.sqrt(inverse * 0.15915494309189535)
