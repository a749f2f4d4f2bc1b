"""Whether the loop of marks and rates settles: DCQCN, linearised about its fixed point."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from fabric_kernels.congestion.dcqcn_law import Balance, Reaction, reactions
from fabric_kernels.congestion.marking import Curve
from fabric_kernels.maths.root import increasing_root

_STEPS = 30
_SLOWEST, _FASTEST = 1e-2, 1e8  # radians a second


class _Slope(NamedTuple):
    """The reaction at the fixed point, and its slopes in p and R."""

    value: Array
    by_marking: Array
    by_rate: Array


class _Linear(NamedTuple):
    """The three equations of a sender, linearised; what they see is one delay old."""

    reaction: Reaction
    balance: Balance
    decrease: _Slope
    alpha: _Slope
    recovery: _Slope
    additive: _Slope
    steepness: Array  # marking of one packet more of queue, times N


def phase_margin(reaction: Reaction, curve: Curve, balance: Balance, delay: Array) -> Array:
    """Phase in radians that is left at the frequency where the loop's gain is 1.

    The loop is cut where marks and rates come back one delay late, so that gain and crossover w
    do not depend on the delay, and the margin falls by w for every second of it:

        margin = pi + arg L(i w) - w delay,  |L(i w)| = 1

    L(s) takes a deviation of the rate, as it was a delay ago, through the queue and its marks and
    through the sender's equations (`dcqcn_delayed.motion`) to the rate. All slopes are exact; Zhu
    et al., CoNEXT'16, appendix, expand them for rare marks, which gives other numbers (4.8 instead
    of 9.2 degrees for 10 flows at 40G). Negative: oscillates. On the marking curve's slope only.
    """
    linear = _linearised(reaction, curve, balance)

    def decrease_of_gain(logarithm: Array) -> Array:
        real, imaginary = _loop(linear, jnp.exp(logarithm))
        return -jnp.log(jnp.maximum(real * real + imaginary * imaginary, 1e-37))

    ends = (jnp.log(_SLOWEST), jnp.log(_FASTEST))
    low, high = (jnp.full_like(balance.marking, end) for end in ends)
    crossover = jnp.exp(increasing_root(decrease_of_gain, (low, high), 0.5 * (low + high), _STEPS))
    real, imaginary = _loop(linear, crossover)
    angle = jnp.arctan2(imaginary, real)
    return jnp.pi + jnp.where(angle > 0, angle - 2.0 * jnp.pi, angle) - crossover * delay


def _linearised(reaction: Reaction, curve: Curve, balance: Balance) -> _Linear:
    rate, marking = balance.current_rate, balance.marking
    nothing, one = jnp.zeros_like(rate), jnp.ones_like(rate)

    def at(marking: Array, rate: Array) -> tuple[Array, ...]:
        return tuple(reactions(reaction, marking, rate))

    value, by_marking = jax.jvp(at, (marking, rate), (one, nothing))
    _, by_rate = jax.jvp(at, (marking, rate), (nothing, one))
    slopes = [_Slope(*each) for each in zip(value, by_marking, by_rate, strict=True)]
    per_packet = curve.largest / (curve.end - curve.start)
    return _Linear(reaction, balance, *slopes, steepness=per_packet * reaction.flows)


def _loop(linear: _Linear, frequency: Array) -> tuple[Array, Array]:
    """Real and imaginary part of the loop's gain at s = i w, without the delay."""
    reaction, balance = linear.reaction, linear.balance

    def real(value: Array) -> Array:
        value = jnp.broadcast_to(value, frequency.shape)
        return jax.lax.complex(value, jnp.zeros_like(value))

    s = jax.lax.complex(jnp.zeros_like(frequency), frequency)
    seen = real(linear.steepness) / s  # marking that follows from a rate, through the queue

    def input_of(slope: _Slope, factor: Array) -> Array:
        return real(factor * slope.by_marking) * seen + real(factor * slope.by_rate)

    rate, ahead = balance.current_rate, balance.target_rate - balance.current_rate
    falling = linear.decrease.value / reaction.notification_interval
    half = 0.5 * linear.recovery.value
    learning = reaction.alpha_gain / reaction.alpha_timer
    alpha = input_of(linear.alpha, learning) / (s + real(learning))
    target = input_of(linear.additive, reaction.additive_increase)
    target = target - input_of(linear.decrease, ahead / reaction.notification_interval)
    cut = input_of(linear.decrease, 0.5 * rate * balance.alpha / reaction.notification_interval)
    cut = cut + real(0.5 * rate * falling) * alpha
    driven = real(half) * target / (s + real(falling)) + input_of(linear.recovery, 0.5 * ahead)
    own = s + real(half + 0.5 * balance.alpha * falling)
    gain = (cut - driven) / (own - real(half * falling) / (s + real(falling)))
    return jnp.real(gain), jnp.imag(gain)
