"""A model of a few lines in place of the catalogue's, for tests of what the engine does with it."""

from pathlib import Path
from typing import Annotated, Any

import jax.numpy as jnp
import pytest
import xarray as xr
from jax import Array

import fabricarlo
from fabric_kernels.model import Model
from fabric_kernels.quantity import quantities, quantity, record
from fabric_kernels.uniform import DeepUniform, Uniform, WideUniform
from fabricarlo.laws import make
from fabricarlo.plan import Plan
from fabricarlo.sweep import Draw, Keep, Settings, Sweep

DIMENSIONS = {"toy.part": 63, "toy.wait": 62, "toy.spike": 61, "toy.timer": 60}
PERSISTENT = frozenset({"toy.part"})
CROWD = 3
TIMER = 2e-4
"""Probability of a time-out."""


@record
class Scale:
    """What is drawn or set."""

    scale: Array = quantity("s", "mean wait")


@record
class Part:
    """What a cluster is: the same in every step."""

    speed: Array = quantity("1", "speed of the slowest part")


@record
class Step:
    """What a step is."""

    wait: Array = quantity("s", "wait of a step", bounds=(0.0, float("inf")))
    spike: Array = quantity("1", "a spike of a step")
    crowd: Array = quantity("1", "sum of many uniforms of a step")
    twice: Array = quantity("1", "twice the speed")
    state: Array = quantity("1", "whether a step is slow", flags=("fast", "slow"))


@record
class Timer:
    """What happens rarely."""

    stall: Array = quantity("s", "time that a timer costs", bounds=(0.0, float("inf")))


def exponential(u: Uniform) -> Array:
    """Quantile of the exponential law, by the survival side in the upper tail."""
    return -jnp.log(jnp.where(u.upper, u.distance, 1 - u.distance))


def part(scale: Scale, part: Annotated[Uniform, "part"]) -> Part:
    """A sine is in no other stage, so that a trace shows where this one runs."""
    return Part(speed=jnp.sin(part.value) + 0 * scale.scale)


def step(
    scale: Scale,
    part: Part,
    wait: Annotated[Uniform, "wait"],
    spike: Annotated[DeepUniform, "spike"],
    many: Annotated[WideUniform, "many", CROWD],
) -> Step:
    """An exponential wait, a spike of 63 bits, and a sum of three uniforms."""
    a, b, c = (many.at(jnp.full((1, 1), k, jnp.uint32)).value for k in range(CROWD))
    return Step(
        wait=scale.scale * exponential(wait),
        spike=exponential(spike),
        crowd=a + b + c,
        twice=2 * part.speed,
        state=wait.upper.astype(jnp.float32),
    )


def timer(scale: Scale, timer: Annotated[Uniform, "timer"]) -> Timer:
    """0, but for TIMER of all samples: there scale times 1 plus an exponential wait."""
    survival = jnp.where(timer.upper, timer.distance, 1 - timer.distance)
    beyond = 1 - jnp.log(jnp.minimum(survival / TIMER, 1.0))
    return Timer(stall=jnp.where(survival < TIMER, scale.scale * beyond, 0.0))


OUTPUTS = ("wait", "spike", "crowd", "speed", "twice", "state")


def known() -> dict[str, Any]:
    """Every quantity of the toy."""
    return {n: q for r in (Scale, Part, Step, Timer) for n, q in quantities(r).items()}


@pytest.fixture(scope="module")
def installed():
    """The toy in place of the catalogue, for all tests of a module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fabricarlo.plan.model_of", lambda _choices: Model(part, step, timer))
        patch.setattr("fabricarlo.plan.declared", known)
        patch.setattr("fabricarlo.plan.DIMENSIONS", DIMENSIONS)
        patch.setattr("fabricarlo.variants.PERSISTENT", PERSISTENT)
        yield


def sweep(**changes: Any) -> Sweep:
    """A sweep of the toy; `scale` is drawn between 1 and 2 s."""
    law = make("uniform", {"low": 1.0, "high": 2.0})
    fields: dict[str, Any] = {
        "name": "toy",
        "seed": 5,
        "samples": 3000,
        "outputs": OUTPUTS,
        "settings": Settings(),
        "draws": (Draw("scale", law),),
        "replicates": 4,
        "keep": Keep(samples=True),
    }
    return Sweep(**fields | changes)


def fixed(**changes: Any) -> Sweep:
    """The same with a `scale` of 1 s."""
    return sweep(draws=(), settings=Settings(values={"scale": 1.0}), **changes)


def run(
    wanted: Sweep, out: Path | None = None, *, block: int = 2**12, process: tuple = (0, 1)
) -> xr.DataTree:
    """Run it in tiles of 2^10 lanes."""
    return fabricarlo.run(wanted, out, block=block, tile=2**10, process=process)


def plan(wanted: Sweep) -> Plan:
    """Its plan, in tiles of 2^10 lanes."""
    return Plan(wanted, block=2**12, tile=2**10)
