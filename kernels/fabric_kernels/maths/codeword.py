"""Codewords with too many wrong symbols: binomial tails far below what float32 can hold."""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.lax import stop_gradient

LENGTH = 544
"""Symbols of one codeword of RS(544, 514), the KP4 code of IEEE 802.3 clause 91."""

CORRECTABLE = 15
"""Wrong symbols that the code repairs: half of its 30 check symbols."""

SYMBOL = 10
"""Bits of one symbol."""

CODEWORD_BITS = LENGTH * SYMBOL

_LOG2_CHOICES = math.log2(math.comb(LENGTH, CORRECTABLE + 1))
_TERMS = 48  # of the sum over more wrong symbols: enough for bit error rates up to 0.005
_LOG10_OF_2 = 0.30102999566398119521
_SMALLEST = 1e-30  # bit error rate below which nothing is told apart


class Tail(NamedTuple):
    """A probability that may be too small for its type, beside its logarithm."""

    probability: Array  # 0 where it is too small for the type
    log10: Array  # its decimal logarithm, right also there


def symbol_error(bit_error_rate: Array) -> Array:
    """Probability that a symbol has a wrong bit: 1 - (1 - bit_error_rate)^10."""
    return -jnp.expm1(SYMBOL * jnp.log1p(-bit_error_rate))


def uncorrectable_codeword(bit_error_rate: Array) -> Tail:
    """Probability that a KP4 codeword cannot be repaired, bit errors being independent.

        P(X >= 16),  X ~ Binomial(544, 1 - (1 - bit_error_rate)^10)

    Source: RS(544, 514) with 10-bit symbols, IEEE 802.3 clause 91, corrects 15. The power
    p^16 is four squarings of a mantissa whose binary exponent is kept apart, so the relative
    error in float32 stays below 1e-5 for bit error rates up to 1e-3, and the logarithm is right
    to 1e-6 where the probability underflows. For rates up to 0.005; beyond, where every second
    codeword fails, the rate is taken as 0.005. Burst errors of an equaliser make it worse.
    """
    rate = jnp.clip(bit_error_rate, _SMALLEST, 0.005)
    wrong = symbol_error(rate)
    mantissa, exponent = jnp.frexp(wrong)
    power = exponent.astype(rate.dtype)
    for _ in range(4):  # p^16
        square = mantissa * mantissa
        shift = jnp.where(square < 0.5, 1.0, 0.0).astype(rate.dtype)
        mantissa, power = square * (1 + shift), 2 * power - shift
    whole = math.floor(_LOG2_CHOICES)
    scale = 2 ** (_LOG2_CHOICES - whole)
    # (1 - p)^528 of the first term
    right = jnp.exp((LENGTH - CORRECTABLE - 1) * SYMBOL * jnp.log1p(-rate))
    mantissa = mantissa * scale * right * _more_wrong(wrong)
    power = power + whole
    probability = _scaled(mantissa, power)
    log10 = jnp.log(mantissa) * 0.43429448190325182765 + power * _LOG10_OF_2
    none = bit_error_rate <= 0
    return Tail(
        jnp.where(none, 0.0, jnp.minimum(probability, 1.0)),
        jnp.where(none, -jnp.inf, jnp.minimum(log10, 0.0)),
    )


def _more_wrong(wrong: Array) -> Array:
    """Sum of the binomial terms from the sixteenth on, over that one."""
    odds = wrong / (1 - wrong)
    total = jnp.ones_like(wrong)
    for count in range(CORRECTABLE + 1 + _TERMS, CORRECTABLE + 1, -1):
        total = 1 + total * odds * ((LENGTH - count + 1) / count)
    return total


def _scaled(mantissa: Array, power: Array) -> Array:
    """mantissa x 2^power in steps that do not leave the range before the product does."""
    power = stop_gradient(power)
    for _ in range(8):
        step = jnp.clip(power, -120.0, 120.0)
        mantissa, power = mantissa * jnp.exp2(step), power - step
    return mantissa


def any_of(tail: Tail, number: Array) -> Tail:
    """Probability that at least one of `number` independent events of this chance happens.

        1 - (1 - q)^number = -expm1(number x log1p(-q))

    Codewords that a frame touches, links on its way. Where the chance underflows it is
    number x q, by logarithms.
    """
    probability = -jnp.expm1(number * jnp.log1p(-jnp.minimum(tail.probability, 0.9999999)))
    few = tail.log10 + jnp.log(number) * 0.43429448190325182765
    seen = probability > 1e-4
    many = jnp.log(jnp.where(seen, probability, 1.0)) * 0.43429448190325182765
    return Tail(probability, jnp.where(seen, many, few))
