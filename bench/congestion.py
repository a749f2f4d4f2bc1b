"""What congestion control costs: ratios of CPU time within one run.

    python -m bench.congestion [--lanes N] [--rounds K]

The fixed point of DCQCN against the plain alpha-beta ring, 2 (n - 1) (a + S / (n B)), in NumPy
float64 and in JAX float32. A step of the delayed equations against a bare loop with the same
transcendental functions and the same delay line.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fabric_kernels.congestion.dcqcn_delayed import Start, motion
from fabric_kernels.congestion.dcqcn_law import Reaction, balance
from fabric_kernels.congestion.marking import Curve
from fabric_kernels.maths.delayed import Equation, Schedule, settled
from fabricarlo.program import options

SCHEDULE = Schedule(settling=1, blocks=8, stride=64, memory=128)
STEPS = (SCHEDULE.settling + SCHEDULE.blocks) * SCHEDULE.stride


def reaction_of(lanes: int) -> Reaction:
    """DCQCN at 40G and about, one setting a lane."""
    random = np.random.default_rng(1)

    def spread(low: float, high: float) -> Array:
        values = np.exp(random.uniform(np.log(low), np.log(high), lanes))
        return jnp.asarray(values, jnp.float32)

    return Reaction(
        capacity=spread(5e6, 2.5e7),
        flows=spread(2.0, 64.0),
        alpha_gain=spread(1 / 512, 1 / 128),
        notification_interval=spread(4e-5, 6e-5),
        alpha_timer=spread(5e-5, 6e-5),
        increase_timer=spread(5e-5, 6e-5),
        byte_counter=spread(5e3, 2e4),
        recovery_steps=jnp.full((lanes,), 5.0),
        additive_increase=spread(4e3, 6e3),
    )


def ring(ranks: Any, latency: Any, payload: Any, rate: Any) -> Any:
    """The plain alpha-beta ring all-reduce."""
    return 2 * (ranks - 1) * (latency + payload / ranks / rate)


def bare(seed: Array, lag: Array) -> Array:
    """Seven transcendental functions and two numbers a step through a delay line, no model."""

    def advance(state: tuple[Array, ...], late: tuple[Array, ...]) -> tuple[Array, ...]:
        rate, queue = late
        hazard = -jnp.log1p(-0.01 * rate)
        # as many of each kind as `dcqcn_law.reactions` has
        total = jnp.expm1(-hazard) + jnp.expm1(-2.0 * hazard)
        total = total + jnp.expm1(3.0 * hazard) + jnp.expm1(4.0 * hazard)
        total = total + jnp.exp(-5.0 * hazard) + jnp.exp(-6.0 * hazard)
        return state[0] * 0.5 + 0.1 * total, state[1] * 0.5 + 0.1 * queue

    equation = Equation(advance, lambda s: s, lambda s: (s[1], s[0], s[0]))
    found, top = settled(equation, (seed, seed), lag, SCHEDULE)
    return found[0].mean + found[1].mean + top


def seconds(work: Callable[[], Any]) -> float:
    """CPU time of all threads of this process."""
    start = time.process_time()
    jax.block_until_ready(work())
    return time.process_time() - start


def measured(sides: dict[str, Callable[[], Any]], rounds: int) -> dict[str, np.ndarray]:
    """CPU seconds of every side in every round, one after another."""
    for work in sides.values():
        jax.block_until_ready(work())  # compiles
    found: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, work in sides.items():
            found[name].append(seconds(work))
    return {name: np.array(values) for name, values in found.items()}


def sides_of(lanes: int, few: int) -> dict[str, Callable[[], Any]]:
    """What is compared: per lane `lanes` wide, in time `few` wide."""
    reaction, small = reaction_of(lanes), reaction_of(few)
    random = np.random.default_rng(2)
    wide = [random.random(lanes) + 1.0 for _ in range(4)]
    narrow = [jnp.asarray(x, jnp.float32) for x in wide]
    # as sweeps are compiled
    fixed = jax.jit(lambda r: balance(r).marking, compiler_options=options())
    jitted = jax.jit(ring, compiler_options=options())
    end = jnp.full((few,), 200.0)
    curve = Curve(jnp.full((few,), 5.0), end, jnp.full((few,), 0.01), end)
    lag = jnp.asarray(random.integers(4, 100, few), jnp.int32)
    begin, step = Start(small.capacity, jnp.ones((few,))), jnp.full((few,), 1e-6)
    delayed = jax.jit(lambda *given: motion(*given, SCHEDULE), compiler_options=options())
    loop = jax.jit(bare, compiler_options=options())
    return {
        "ring, NumPy float64": lambda: ring(*wide),
        "ring, JAX float32": lambda: jitted(*narrow),
        "fixed point": lambda: fixed(reaction),
        "bare loop": lambda: loop(jnp.full((few,), 0.5), lag),
        "delayed equations": lambda: delayed(small, curve, begin, step, lag),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--lanes", type=int, default=2**20)
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args(arguments)
    few = 2**13
    found = measured(sides_of(asked.lanes, few), asked.rounds)
    for name, values in found.items():
        in_time = name in ("bare loop", "delayed equations")
        count = few * STEPS if in_time else asked.lanes
        what = "lane and step" if in_time else "lane"
        print(f"{name}: {1e9 * float(np.median(values)) / count:.2f} ns a {what}")
    for above, below, goal in (
        ("fixed point", "ring, NumPy float64", "<= 25"),
        ("fixed point", "ring, JAX float32", ""),
        ("delayed equations", "bare loop", "<= 2"),
    ):
        ratio = np.median(found[above] / found[below])
        print(f"{above} / {below}: {ratio:.2f} {f'(goal {goal})' if goal else ''}")


if __name__ == "__main__":
    main()
