"""What jitter costs beside the simplest thing that could be computed: ratios, measured in one run.

Run: python bench/jitter.py

Two ratios of CPU time, each the median over turns that alternate with their reference, with its
quartiles:

* the ring surrogate at 131,072 ranks against the alpha-beta time of the same ring, per
  configuration, both with every number an array and with the random numbers that they read;
* event_level at 256 ranks against a loop that draws the same noise and does one max and one add a
  hop, without ranks that wait for each other.
"""

import os
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from fabric_kernels.jitter.laws.events import RANKS, Hops, event_stall
from fabric_kernels.jitter.laws.ring import ring_stall
from fabric_kernels.maths.normal import normal_quantile
from fabric_kernels.maths.order_statistics import exponential_variate
from fabric_kernels.noise import HopNoise
from fabric_kernels.noise.exponential import ExponentialNoise
from fabric_kernels.noise.lognormal import LognormalNoise
from fabric_kernels.pattern import Ring, Traffic
from fabric_kernels.uniform import Uniform, WideUniform
from fabricarlo.program import options
from fabricarlo.sampling.uniforms import uniform
from fabricarlo.sampling.words import wide_words

LANES = 1 << 15
SAMPLES = 128
TURNS = 60
CALLS = 20
SURROGATE_LIMIT = 3.0
EVENT_SHARE = 0.5

Floats = NDArray[np.float64]
Times = dict[str, Floats]


class Wide(WideUniform):
    """Threefry at (sample, number)."""

    def __init__(self, index: Array) -> None:
        self._index = index

    def at(self, number: Array) -> Uniform:
        """The first word's uniform."""
        ones = (1,) * number.ndim
        index = self._index.reshape((1,) * (number.ndim - 2) + self._index.shape)
        key = jnp.full(ones, 1, jnp.uint32), jnp.full(ones, 2, jnp.uint32)
        return uniform(wide_words(key, index, number)[0])


def full(value: float, lanes: int = 1) -> Array:
    """Equal lanes, [1, lanes]."""
    return jnp.full((1, lanes), value, jnp.float32)


def drawn(index: Array, numbers: int) -> list[Uniform]:
    """The uniforms of so many streams."""
    wide = Wide(index)
    return [wide.at(jnp.full((1, 1), k, jnp.uint32)) for k in range(numbers)]


def lognormal(u: Uniform, median: Array, sigma: float) -> Array:
    """A drawn quantity."""
    return median * jnp.exp(sigma * normal_quantile(u))


def alpha_beta(index: Array, ranks: Array, payload: Array, rate: Array, latency: Array) -> Array:
    """2 (N - 1) (latency + payload / (N rate)), rate and latency drawn."""
    first, second = drawn(index, 2)
    rate, latency = lognormal(first, rate, 0.02), lognormal(second, latency, 0.1)
    return 2.0 * (ranks - 1.0) * (latency + payload / (ranks * rate))


def with_surrogate(
    index: Array, ranks: Array, payload: Array, rate: Array, latency: Array, noise: HopNoise
) -> Array:
    """The same plus its jitter, one more random number."""
    *_, u = drawn(index, 3)
    one = jnp.ones_like(ranks)
    ring = Ring(ranks, 2.0 * (ranks - 1.0), one, one, one)
    stall = ring_stall(ring, noise, exponential_variate(u))
    return alpha_beta(index, ranks, payload, rate, latency) + stall


def event(index: Array, noise: HopNoise, ring: Ring) -> Array:
    """Every hop of a ring; its numbers are arguments, as in a sweep."""
    return event_stall(Traffic((ring,), jnp.ones_like(ring.ranks)), noise, Wide(index))


def floor(index: Array, noise: HopNoise) -> Array:
    """As many hops of noise, and a max and an add for each, of ranks that do not wait."""
    like = jnp.zeros(index.shape, jnp.float32)
    hops = Hops(noise, Wide(index), jnp.uint32(0))

    def step(k: Array, done: Array) -> Array:
        return jnp.maximum(done, like[None]) + hops.of(RANKS, k.astype(jnp.uint32), like)

    done = jnp.zeros((RANKS, *index.shape), jnp.float32)
    return jnp.max(jax.lax.fori_loop(0, 2 * (RANKS - 1), step, done), axis=0)


def seconds(programs: dict[str, Callable[[], Array]], turns: int, calls: int) -> Times:
    """CPU seconds of one call of every program, turn by turn."""
    for run in programs.values():
        run().block_until_ready()
    spent: Times = {name: np.empty(turns) for name in programs}
    for turn in range(turns):
        for name, run in programs.items():
            start = time.process_time()
            for _ in range(calls):
                run().block_until_ready()
            spent[name][turn] = (time.process_time() - start) / calls
    return spent


def ratio_of(above: Floats, below: Floats) -> float:
    """The median ratio; prints it with its quartiles."""
    low, middle, high = np.quantile(above / below, [0.25, 0.5, 0.75])
    print(f"    {middle:.2f} ({low:.2f} to {high:.2f})")
    return float(middle)


def compiled(function: Callable[..., Array], *arguments: object) -> Callable[[], Array]:
    """The program with its arguments, as the engine compiles."""
    run = jax.jit(function, compiler_options=options())
    return lambda: run(*arguments)


def main() -> None:
    """Measure and print both ratios beside their limits."""
    if hasattr(os, "sched_setaffinity"):  # on several cores so short programs vary by a third
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    index = jnp.arange(LANES, dtype=jnp.uint32)[None]
    given = full(131072, LANES), full(1e10, LANES), full(5e10, LANES), full(3e-6, LANES)
    noise = LognormalNoise(
        lognormal_noise_median=full(1e-7, LANES), lognormal_noise_sigma=full(0.5, LANES)
    )
    both = seconds(
        {
            "alpha-beta": compiled(alpha_beta, index, *given),
            "surrogate": compiled(with_surrogate, index, *given, noise),
        },
        TURNS,
        CALLS,
    )
    for name, spent in both.items():
        print(f"{name}: {np.median(spent) / LANES * 1e9:.1f} ns a configuration")
    print(f"ring with surrogate over alpha-beta ring (at most {SURROGATE_LIMIT}):")
    ratio = ratio_of(both["surrogate"], both["alpha-beta"])
    samples = jnp.arange(SAMPLES, dtype=jnp.uint32)[None]
    hop = ExponentialNoise(exponential_noise_minimum=full(0.0), exponential_noise_scale=full(1e-7))
    one = full(1.0)
    ring = Ring(full(RANKS), full(2.0 * (RANKS - 1)), one, one, one)
    events = seconds(
        {
            "floor": compiled(floor, samples, hop),
            "event_level": compiled(event, samples, hop, ring),
        },
        TURNS // 4,
        1,
    )
    hops = SAMPLES * RANKS * 2 * (RANKS - 1)
    for name, spent in events.items():
        print(f"{name}: {np.median(spent) / hops * 1e9:.2f} ns a hop")
    print(f"floor over event_level (at least {EVENT_SHARE}):")
    share = ratio_of(events["floor"], events["event_level"])
    if ratio > SURROGATE_LIMIT or share < EVENT_SHARE:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
