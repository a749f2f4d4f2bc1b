"""Cost of the fast solution of a GPU's operating point beside the robust one.

    python -m bench.thermal [--rounds K] [--lanes N]

Both solve the same random chips, limits and media, in turn in one process; the figure is the ratio
of CPU times, median over the rounds with its quartiles. Chips at the fold, for which the fast
solution does not hold, are among them.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from fabric_kernels.cooling.chip import Limits, Medium
from fabric_kernels.cooling.electrothermal import fast, operating_point, robust
from fabric_kernels.inputs.power_law import Chip

Case = tuple[Chip, Limits, Medium]


def cases(lanes: int, seed: int) -> Case:
    """Random chips, limits and media in float32: products and what lies far beyond."""
    numbers = np.random.default_rng(seed)

    def draw(low: float, high: float) -> np.ndarray:
        return numbers.uniform(low, high, lanes).astype(np.float32)

    design = draw(300, 1500)
    chip = Chip(
        idle_power=0.15 * design,
        leakage=design * draw(0.05, 0.2),
        leakage_reference=np.full_like(design, 65),
        leakage_coefficient=draw(0.01, 0.03),
        dynamic_power=design * draw(0.6, 1.0),
        minimum_voltage=np.full_like(design, 0.72),
        voltage_slope=np.full_like(design, 0.8),
        minimum_clock=np.full_like(design, 0.2),
    )
    limit = draw(80, 95)
    resistance = np.exp(draw(np.log(0.015), np.log(0.1)))
    return chip, Limits(design, limit, limit + 8), Medium(draw(15, 55), resistance)


def cpu_seconds(work: Callable[[], Any]) -> float:
    """CPU time of all threads of this process."""
    start = time.process_time()
    jax.block_until_ready(work())
    return time.process_time() - start


def ratios(rounds: int, lanes: int) -> dict[str, list[float]]:
    """Cost over that of the fast solution, round by round, for the robust and the combined one."""
    given = jax.tree.map(jax.numpy.asarray, cases(lanes, 1))
    solvers = {
        "fast": jax.jit(fast), "robust": jax.jit(robust), "both": jax.jit(operating_point),
    }  # fmt: skip
    for solver in solvers.values():
        jax.block_until_ready(solver(*given))
    found: dict[str, list[float]] = {"robust": [], "both": []}
    for _ in range(rounds):
        seconds = {name: cpu_seconds(lambda s=s: s(*given)) for name, s in solvers.items()}
        for name, all_rounds in found.items():
            all_rounds.append(seconds[name] / seconds["fast"])
    return found


def main() -> None:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--lanes", type=int, default=2**16)
    asked = parser.parse_args()
    for name, found in ratios(asked.rounds, asked.lanes).items():
        low, middle, high = np.quantile(found, [0.25, 0.5, 0.75])
        print(f"{name:7s} over fast: {middle:.2f} ({low:.2f} to {high:.2f})")


if __name__ == "__main__":
    main()
