"""DCQCN: the rates of its reaction to marks, and where they balance."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

_NEWTON_STEPS = 4


class Reaction(NamedTuple):
    """How N alike senders at one bottleneck react to marks; amounts are packets."""

    capacity: Array  # packets a second of the bottleneck
    flows: Array
    alpha_gain: Array  # g
    notification_interval: Array  # tau, s
    alpha_timer: Array  # s
    increase_timer: Array  # T, s
    byte_counter: Array  # B, packets
    recovery_steps: Array  # F
    additive_increase: Array  # packets a second


class Balance(NamedTuple):
    """The fixed point of the reaction."""

    marking: Array  # p*
    alpha: Array
    current_rate: Array  # packets a second of one sender
    target_rate: Array
    residual: Array  # relative error of the equation that was solved


class Reactions(NamedTuple):
    """What a marking probability does to a sender: shares, and events a second."""

    decrease: Array  # a: some packet of one notification interval is marked
    alpha: Array  # some packet of one alpha timer is marked
    recovery: Array  # R (b + d), steps towards the target rate
    additive: Array  # R (c + e), those that raise the target too


class _Balanced(NamedTuple):
    """Packets of one sender in each interval, at its share of the capacity."""

    rate: Array
    decrease: Array
    alpha: Array
    sooner: Array  # the smaller of byte counter and timer
    later: Array


def reactions(reaction: Reaction, marking: Array, rate: Array) -> Reactions:
    """What a marking probability does to a sender of this rate (packets a second).

        a = 1 - (1 - p)^(tau R),  b = p / ((1 - p)^-B - 1),  c = b (1 - p)^(F B),
        d = p / ((1 - p)^(-T R) - 1),  e = d (1 - p)^(F T R)

    Zhu, Ghobadi, Misra, Padhye, CoNEXT'16. At p = 0: b = c = 1/B, d = e = 1/(T R); at p = 1
    nothing increases. Formed as events a second, which stay finite as the rate goes to 0.
    """
    certain = marking >= 1.0
    hazard = -jnp.log1p(-jnp.where(certain, 0.5, marking))
    # p / u, which is 1 - p / 2 where the quotient is not defined
    thinned = jnp.where(hazard > 1e-3, marking / jnp.maximum(hazard, 1e-3), 1.0 - 0.5 * marking)
    thinned = jnp.where(certain, 0.0, thinned)
    timer = reaction.increase_timer * rate

    def any_marked(packets: Array) -> Array:
        return jnp.where(certain, 1.0, -jnp.expm1(-hazard * packets))

    def events(packets: Array, a_second: Array) -> tuple[Array, Array]:
        """Of one counter: all, and those after the steps of fast recovery."""
        exponent = jnp.clip(hazard * packets, 1e-6, 80.0)
        found = thinned * a_second * (exponent / jnp.expm1(exponent))
        return found, found * jnp.exp(-jnp.minimum(reaction.recovery_steps * exponent, 80.0))

    bytes_all, bytes_late = events(reaction.byte_counter, rate / reaction.byte_counter)
    timer_all, timer_late = events(timer, 1.0 / reaction.increase_timer)
    return Reactions(
        decrease=any_marked(reaction.notification_interval * rate),
        alpha=any_marked(reaction.alpha_timer * rate),
        recovery=bytes_all + timer_all,
        additive=bytes_late + timer_late,
    )


def faint_marking(reaction: Reaction) -> Array:
    """Leading term of p* for rare marks, which overestimates it.

    p^3 = R_AI / (tau_alpha R^2) (1/B + 1/(T R))^2,  R = C/N; Zhu et al., CoNEXT'16.
    """
    rate = reaction.capacity / reaction.flows
    events = 1.0 / reaction.byte_counter + 1.0 / (reaction.increase_timer * rate)
    ratio = events / rate
    ratio = jnp.minimum(ratio, 1e12)
    cube = ratio * ratio * (reaction.additive_increase / reaction.alpha_timer)
    cube = jnp.clip(cube, 1e-36, 1e36)
    # a root of three by its logarithm, then one step of Newton: cbrt takes five times as long
    root = jnp.exp(jnp.log(cube) / 3.0)
    return root - (root - cube / (root * root)) / 3.0


def balance(reaction: Reaction) -> Balance:
    """Fixed point of DCQCN at the fair share R = C/N.

        a^2 alpha / ((b + d) (c + e)) = tau^2 R_AI R,  alpha = 1 - (1 - p)^(tau_alpha R),
        R_T = R + a alpha / ((b + d) tau)

    Zhu, Ghobadi, Misra, Padhye, CoNEXT'16, for tau = tau_alpha or not. The left side grows with p:
    one root. Newton's method in ln u, u = -ln(1 - p), relative to the leading term of rare marks,
    so that nothing large cancels: 1e-5 in single precision. p beyond the marking curve is
    returned as it is; whether a queue can hold it is for the caller to say.
    """
    rate = reaction.capacity / reaction.flows
    timer = reaction.increase_timer * rate
    share = _Balanced(
        rate=rate,
        decrease=reaction.notification_interval * rate,
        alpha=reaction.alpha_timer * rate,
        sooner=jnp.minimum(reaction.byte_counter, timer),
        later=jnp.maximum(reaction.byte_counter, timer),
    )
    faint = faint_marking(reaction)
    logarithm = _start(share, reaction.recovery_steps, faint)
    residual = jnp.zeros_like(logarithm)
    for _ in range(_NEWTON_STEPS):
        value, slope = _imbalance(share, reaction.recovery_steps, faint, logarithm)
        residual = jnp.clip(value / slope, -2.0, 2.0)
        logarithm = logarithm - residual
    hazard = faint * jnp.exp(logarithm)
    marking = -jnp.expm1(-hazard)
    alpha = -jnp.expm1(-share.alpha * hazard)
    decrease = -jnp.expm1(-share.decrease * hazard)
    per_packet = marking * _increases(share, hazard)
    # near p = 1 nothing increases, and the target would overflow
    ahead = decrease * alpha / jnp.maximum(per_packet * reaction.notification_interval, 1e-30)
    target = rate + jnp.minimum(ahead, 1e6 * rate)
    return Balance(marking, alpha, rate, target, jnp.abs(residual))


def _increases(share: _Balanced, hazard: Array) -> Array:
    """(b + d) / p, without overflow."""
    sooner, later = share.sooner * hazard, share.later * hazard
    scale = jnp.exp(-jnp.minimum(sooner, 80.0))
    other = jnp.exp(-jnp.minimum(later, 80.0))
    return scale / -jnp.expm1(-sooner) + other / -jnp.expm1(-later)


def _start(share: _Balanced, recovery_steps: Array, faint: Array) -> Array:
    """ln(u / leading term) from the first-order term of the balance: 3 y + c e^y = 0."""
    total = share.sooner + share.later
    gap = (share.later - share.sooner) / share.later
    events = share.sooner * share.later / total
    first = (recovery_steps + 2.0) * share.sooner - share.decrease - 0.5 * share.alpha + 1.0
    first = first - events * (2.0 - (recovery_steps + 2.0) * gap)
    once = jnp.log1p(jnp.maximum(first, 0.0) * faint / 3.0)
    # y = -W(c / 3); W to 2 % where it matters: Newton does the rest
    return -once * (1.0 - jnp.log1p(once) / (2.0 + once))


def _imbalance(
    share: _Balanced, recovery_steps: Array, faint: Array, logarithm: Array
) -> tuple[Array, Array]:
    """ln(left side / right side) of the balance and its derivative, at ln(u / leading term)."""
    hazard = faint * jnp.exp(logarithm)
    certain, certain_slope = _filled(hazard)
    decrease, decrease_slope = _filled(share.decrease * hazard)
    alpha, alpha_slope = _filled(share.alpha * hazard)
    sooner, later = share.sooner * hazard, share.later * hazard
    soon, soon_slope = _filled(sooner)
    late, late_slope = _filled(later)
    apart = later - sooner
    part = share.sooner / share.later
    recovering = jnp.exp(-apart) * part * soon
    adding = jnp.exp(-(recovery_steps + 1.0) * apart) * part * soon
    whole = (1.0 + part) * soon
    # both sums over the sooner event's own term
    product = (late + recovering) * (late + adding)
    scale = whole * late
    value = jnp.log(decrease * decrease * alpha / (certain * certain)
                    * (scale / product) * scale)  # fmt: skip
    value = value + 3.0 * logarithm + (recovery_steps + 2.0) * sooner
    tilt = late_slope - soon_slope + apart
    slope = 3.0 + 2.0 * (decrease_slope - certain_slope + soon_slope) + alpha_slope
    slope = slope + recovering * tilt / (late + recovering)
    slope = slope + adding * (tilt + recovery_steps * apart) / (late + adding)
    return value, slope + (recovery_steps + 2.0) * sooner


def _filled(packets: Array) -> tuple[Array, Array]:
    """(1 - e^-x) / x and the derivative of its logarithm with respect to ln x."""
    half = jnp.tanh(0.5 * packets)
    chance = 2.0 * half / (1.0 + half)
    return chance / packets, packets * (1.0 - chance) / chance - 1.0
