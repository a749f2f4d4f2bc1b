"""What the benchmarks run against each other: the product's parts, and its rivals."""

import dataclasses
import shutil
import tempfile
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

import fabricarlo
from bench.numpy_mirror import Mirror, laws_and_model
from fabric_kernels.uniform import Uniform
from fabricarlo.blocks import Buffers, Worker
from fabricarlo.engine import Engine, Tile, tile_lanes
from fabricarlo.interrupt import Interrupt
from fabricarlo.loop import Loop
from fabricarlo.plan import Plan
from fabricarlo.program import Program
from fabricarlo.progress import Silent
from fabricarlo.samples import SampleWriter
from fabricarlo.store import SweepStore

SPEC = Path(__file__).resolve().parents[1] / "sweeps" / "first_look.yaml"
LIGHT = Path(__file__).resolve().parent / "light.yaml"
IN_FLIGHT = 2  # tiles, as in a run on one device


def plan_of(spec: Path, *overrides: str) -> Plan:
    """The plan of a spec on this machine."""
    return Plan(fabricarlo.load_spec(spec, list(overrides)), tile=tile_lanes())


@dataclasses.dataclass(frozen=True)
class Side:
    """Something to time: `run` does `samples` samples."""

    name: str
    samples: int
    run: Callable[[], object]


class Ours:
    """The product on some blocks of a plan."""

    def __init__(
        self, plan: Plan, blocks: tuple[int, ...], devices: list[jax.Device] | None = None
    ) -> None:
        self.engine, self.blocks = Engine(plan, devices), blocks
        self.plan = plan
        self.samples = sum(plan.layout.at(b).samples for b in blocks)
        self._quiet = dataclasses.replace(
            plan.sweep, keep=dataclasses.replace(plan.sweep.keep, samples=False)
        )
        summarised = Plan(self._quiet, block=plan.layout.block, tile=plan.layout.tile)
        self._worker = Worker(summarised, self.engine, Interrupt())
        self._no_buffers = Buffers(summarised)

    def compute(self) -> None:
        """Draws and model, nothing more."""
        waiting: deque[Tile] = deque()
        for number in self.blocks:
            for tile in self.engine.tiles(self.plan.layout.at(number)):
                waiting.append(tile)
                if len(waiting) > IN_FLIGHT:
                    jax.block_until_ready(waiting.popleft().outputs)
        jax.block_until_ready([tile.outputs for tile in waiting])

    def summarise(self) -> None:
        """The same, and summaries of every output."""
        for number in self.blocks:
            self._worker.compute(self.plan.layout.at(number), self._no_buffers, set())


class Stored:
    """The product to a local directory: compute, summarise, write, record, in a fresh store."""

    def __init__(self, ours: Ours, where: Path, *, codec: str, variables: int | None) -> None:
        self.ours, self.where, self.variables = ours, where, variables
        keep = dataclasses.replace(ours.plan.sweep.keep, samples=True, codec=codec)  # pyright: ignore
        layout = ours.plan.layout
        self.plan = Plan(
            dataclasses.replace(ours.plan.sweep, keep=keep), block=layout.block, tile=layout.tile
        )
        self.bytes = 0
        self._made: Path | None = None
        self._loop: Loop | None = None

    def prepare(self) -> None:
        """A fresh store; the one before is removed."""
        self.clear()
        self._made = Path(tempfile.mkdtemp(dir=self.where, prefix="fabricarlo-bench-"))
        store = SweepStore(self._made)
        store.create(self.plan, {"device": "", "versions": "", "probe": ""})
        writer = SampleWriter(store, self.plan)
        if self.variables is not None:  # float32 outputs first
            numbers = [a for a in writer.arrays if not a.is_flag]
            writer.arrays = tuple(numbers[: self.variables])
        self._loop = Loop(
            self.ours.engine, writer, Interrupt(), Silent(), process="0of1", counted=set()
        )

    def run(self) -> None:
        """The loop over the blocks, as a run does it, until all is recorded."""
        assert self._loop is not None
        self._loop.run(list(self.ours.blocks))

    def clear(self) -> None:
        """Remove the store, and remember how large its samples were."""
        if self._made is not None:
            chunks = (self._made / "samples").rglob("c/**/*")
            self.bytes = sum(p.stat().st_size for p in chunks if p.is_file())
            shutil.rmtree(self._made)
            self._made = None


class Idiomatic:
    """The same laws and model in one jit, its uniforms by `jax.random` with a folded key."""

    def __init__(self, plan: Plan, cell: int, tiles: int) -> None:
        self.tiles, self.samples = tiles, tiles * plan.layout.tile
        program = Program(plan, plan.variant(cell))
        shape = (len(program.streams), plan.sweep.replicates, plan.layout.columns_per_tile)
        numbers, rows = (
            jax.device_put(np.ascontiguousarray(np.broadcast_to(a[:, None], (len(a), shape[2]))))
            for a in program.numbers(cell)
        )
        given = numbers, jax.device_put(program.tables), rows
        key = jax.random.key(plan.sweep.seed)

        def tile(turn: Array, numbers: Array, tables: dict[str, Array], rows: Array) -> Any:
            u = jax.random.uniform(jax.random.fold_in(key, turn), shape, minval=2.0**-24)
            upper, distance = u >= 0.5, jnp.minimum(u, 1.0 - u)
            uniforms = [Uniform(upper[k], distance[k]) for k in range(shape[0])]
            return laws_and_model(program)(numbers, tables, rows, uniforms)

        compiled = jax.jit(tile)
        self._tile = lambda turn: compiled(jnp.uint32(turn), *given)

    def run(self) -> None:
        """All tiles, several in flight."""
        waiting: deque[Any] = deque()
        for turn in range(self.tiles):
            waiting.append(self._tile(turn))
            if len(waiting) > IN_FLIGHT:
                jax.block_until_ready(waiting.popleft())
        jax.block_until_ready(list(waiting))


class NumPy:
    """The same maths in NumPy, a chunk at a time."""

    def __init__(self, plan: Plan, cell: int, samples: int) -> None:
        self.mirror, self.samples = Mirror(plan, cell), samples
        self.chunk = min(samples, 2**14)
        self._generator = np.random.Generator(np.random.SFC64(plan.sweep.seed))

    def run(self) -> None:
        """All samples; outputs are dropped after each chunk, their memory used again."""
        for _ in range(self.samples // self.chunk):
            uniforms = self.mirror.draw(self._generator, self.chunk)
            self.mirror.release(self.mirror.evaluate(uniforms, self.chunk))
