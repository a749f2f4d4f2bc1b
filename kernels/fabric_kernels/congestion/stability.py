"""Whether the loop of marks and rates settles: DCQCN, linearised about its fixed point."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from fabric_kernels.congestion.dcqcn_law import Balance, Reaction, reactions
from fabric_kernels.congestion.marking import Curve, steepness
from fabric_kernels.maths.root import increasing_root

_STEPS = 28
_SLOWEST, _FASTEST = 1e-6, 1e4  # over one radian a notification interval


class _Slope(NamedTuple):
    """The reaction at the fixed point, and its slopes in p and R."""

    value: Array
    by_marking: Array
    by_rate: Array


class _Linear(NamedTuple):
    """The reaction at the fixed point, linearised; what it sees is one delay old."""

    decrease: _Slope
    alpha: _Slope
    recovery: _Slope
    additive: _Slope


class _Loop(NamedTuple):
    """Gain n(s) / d(s), s over one radian a notification interval; n0 first."""

    above: tuple[Array, Array, Array, Array]
    below: tuple[Array, Array, Array]  # d = s (s^3 + below[2] s^2 + below[1] s + below[0])


def phase_margin(reaction: Reaction, curve: Curve, balance: Balance, delay: Array) -> Array:
    """Phase in radians that is left at the frequency where the loop's gain is 1.

    The loop is cut where marks and rates come back one delay late, so that gain and crossover w
    do not depend on the delay, and the margin falls by w for every second of it:

        margin = pi + arg L(i w) - w delay,  |L(i w)| = 1

    L(s) takes a deviation of the rate, as it was a delay ago, through the queue and its marks and
    through the sender's equations (`dcqcn_delayed.motion`) to the rate. All slopes are exact; Zhu
    et al., CoNEXT'16, appendix, expand them for rare marks, which gives other numbers (4.8 instead
    of 9.3 degrees for 10 flows at 40G). Negative: oscillates. On the marking curve's slope only.
    """
    loop = _loop(reaction, curve, balance)

    def falling(logarithm: Array) -> Array:
        above, below = _gain(loop, jnp.exp(logarithm))
        return _square(below) - _square(above)

    ends = (jnp.log(_SLOWEST), jnp.log(_FASTEST))
    low, high = (jnp.full_like(balance.marking, end) for end in ends)
    start = 0.5 * (low + high)
    found = jax.lax.stop_gradient(increasing_root(falling, (low, high), start, _STEPS))
    # one more step, for the derivative with respect to the parameters
    _, slope = jax.jvp(falling, (found,), (jnp.ones_like(found),))
    more = falling(found) / jax.lax.stop_gradient(jnp.maximum(slope, 1e-3))
    crossover = jnp.exp(found - jnp.clip(more, -0.1, 0.1))
    (x, y), (u, v) = _gain(loop, crossover)
    angle = jnp.arctan2(y * u - x * v, x * u + y * v)
    angle = jnp.where(angle > 0, angle - 2.0 * jnp.pi, angle)
    return jnp.pi + angle - crossover * (delay / reaction.notification_interval)


def _square(pair: tuple[Array, Array]) -> Array:
    """Logarithm of the squared length, without overflow."""
    scale = jnp.maximum(jnp.maximum(jnp.abs(pair[0]), jnp.abs(pair[1])), 1e-15)
    x, y = pair[0] / scale, pair[1] / scale
    return jnp.log(jnp.maximum(x * x + y * y, 1e-35)) + 2.0 * jnp.log(scale)


def _gain(loop: _Loop, frequency: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Real and imaginary parts of n(i w) and d(i w), both over w."""
    square = frequency * frequency
    n0, n1, n2, n3 = loop.above
    d1, d2, d3 = loop.below
    above = (n0 / frequency - n2 * frequency, n1 - n3 * square)
    # i (d1 + i w d2 - w^2 d3 - i w^3)
    below = (frequency * (square - d2), d1 - d3 * square)
    return above, below


def _linearised(reaction: Reaction, balance: Balance) -> _Linear:
    rate, marking = jnp.broadcast_arrays(balance.current_rate, balance.marking)
    nothing, one = jnp.zeros_like(rate), jnp.ones_like(rate)

    def at(marking: Array, rate: Array) -> tuple[Array, ...]:
        return tuple(reactions(reaction, marking, rate))

    value, by_marking = jax.jvp(at, (marking, rate), (one, nothing))
    _, by_rate = jax.jvp(at, (marking, rate), (nothing, one))
    return _Linear(*(_Slope(*each) for each in zip(value, by_marking, by_rate, strict=True)))


def _loop(reaction: Reaction, curve: Curve, balance: Balance) -> _Loop:
    """The sender's three equations and the queue, eliminated to one fraction.

    With c, m, t the numerators of what acts on the rate directly, by alpha and by the target, each
    of first order in s over one more s of the queue:

        n = c (s + l) (s + f) + m (s + f) - h t (s + l)
        d = s (s + l) ((s + o) (s + f) - h f)
    """
    linear = _linearised(reaction, balance)
    tau = reaction.notification_interval
    # marking that follows from a deviation of the rate in one interval, through the queue
    steep = reaction.flows * steepness(curve) * tau
    rate, ahead = balance.current_rate, balance.target_rate - balance.current_rate

    def seen(slope: _Slope, factor: Array) -> tuple[Array, Array]:
        return factor * slope.by_marking * steep, factor * slope.by_rate

    learning = reaction.alpha_gain * tau / reaction.alpha_timer
    falling = linear.decrease.value
    half = 0.5 * tau * linear.recovery.value
    cut = seen(linear.decrease, 0.5 * rate * balance.alpha)
    recovered = seen(linear.recovery, 0.5 * tau * ahead)
    by_alpha = seen(linear.alpha, 0.5 * rate * falling * learning)
    added = seen(linear.additive, tau * reaction.additive_increase)
    pulled = seen(linear.decrease, ahead)
    c0, c1 = cut[0] - recovered[0], cut[1] - recovered[1]
    t0, t1 = half * (added[0] - pulled[0]), half * (added[1] - pulled[1])
    m0, m1 = by_alpha
    both, product = learning + falling, learning * falling
    above = (
        c0 * product + m0 * falling - t0 * learning,
        c0 * both + c1 * product + m0 + m1 * falling - t0 - t1 * learning,
        c0 + c1 * both + m1 - t1,
        c1,
    )
    own = 0.5 * balance.alpha * falling  # o - h
    u, v = half + own + falling, falling * own
    return _Loop(above, (learning * v, v + learning * u, u + learning))
