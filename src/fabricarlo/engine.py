"""(block, tile) -> arrays: dispatch over the devices, several tiles in flight."""

import dataclasses
import hashlib
from collections.abc import Iterable, Iterator
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fabric_kernels.uniform import WideUniform
from fabricarlo.layout import Block, Columns
from fabricarlo.plan import Plan
from fabricarlo.program import Program
from fabricarlo.sampling.sobol import reversed_words
from fabricarlo.steps import Steps
from fabricarlo.variants import Variant

TILE = {"cpu": 2**15}
"""Lanes of the one compiled shape: in cache on a CPU, deep enough to fill a GPU or TPU."""
TILE_OF_ACCELERATOR = 2**20


def tile_lanes() -> int:
    """Lanes of a tile on the devices at hand."""
    return TILE.get(jax.default_backend(), TILE_OF_ACCELERATOR)


@dataclasses.dataclass(frozen=True)
class Tile:
    """What one tile gave: device arrays [replicate, column]."""

    columns: Columns
    outputs: dict[str, Array]
    draws: dict[str, Array]


class Engine:
    """Runs tiles of a plan on all local devices, several in flight."""

    def __init__(self, plan: Plan, devices: list[jax.Device] | None = None) -> None:
        self.plan = plan
        self.devices = devices or jax.local_devices()
        self._programs: dict[Variant, Program] = {}
        self._sobol = jax.jit(reversed_words, static_argnums=1)
        self._steps = lru_cache(maxsize=None)(Steps)
        self._cell_inputs = lru_cache(maxsize=64)(self._inputs_of_cells)
        self._tables = lru_cache(maxsize=64)(self._tables_on)

    def program(self, variant: Variant) -> Program:
        """The compiled programs of a variant, made once."""
        if variant not in self._programs:
            self._programs[variant] = Program(self.plan, variant)
        return self._programs[variant]

    def tiles(self, block: Block) -> Iterator[Tile]:
        """Dispatch the tiles of a block, in order; nothing here waits for a device."""
        return self._dispatch(block, self.plan.layout.tiles(block))

    def _dispatch(self, block: Block, tiles: Iterable[Columns]) -> Iterator[Tile]:
        variant = self.plan.variant(int(block.cells[0]))
        for k, columns in enumerate(tiles):
            device = self.devices[k % len(self.devices)]
            with jax.default_device(device):
                outputs, draws = self._tile(self.program(variant), block, columns, device)
            yield Tile(columns, outputs, draws)

    def _tile(
        self, program: Program, block: Block, columns: Columns, device: jax.Device
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        cells = block.cells[np.maximum(columns.position, 0)]
        high = self._high(block)
        single = bool((cells == cells[0]).all())
        ids = (int(cells[0]),) if single else tuple(int(c) for c in cells)
        numbers, rows, keys, dimensions = self._cell_inputs(program, ids, high, device)
        index = jax.device_put((columns.index & 0xFFFFFFFF).astype(np.uint32), device)
        points, deep = self._points(program, index, keys, dimensions)
        draws, uniforms = program.draw(points, deep, numbers, self._tables(program, device), rows)
        wide = self._wide(program, ids, block, index)
        first = program.evaluate(numbers, draws, uniforms | wide)
        if self.plan.sweep.steps == 1:
            return first, draws
        steps = self._steps(program)
        return steps.all(first, numbers, draws, uniforms | wide, index, keys), draws

    def _wide(
        self, program: Program, cells: tuple[int, ...], block: Block, index: Array
    ) -> dict[str, WideUniform]:
        """Wide slots, which count samples whatever the sampler does."""
        if not program.variant.wide:
            return {}
        stride = self.plan.sweep.replicates
        lane = jnp.arange(stride, dtype=jnp.uint32)[:, None]
        sample = index[None, :] * jnp.uint32(stride) + lane
        distinct, where = np.unique(cells, return_inverse=True)
        high = block.start >> 32
        keys = np.stack([program.wide_keys(int(c), high) for c in distinct], -1)[..., where]
        return program.wide(sample, jax.device_put(keys))

    def _points(
        self, program: Program, index: Array, keys: Array, dimensions: np.ndarray
    ) -> tuple[Array, list[Array]]:
        if not program.streams:  # nothing is drawn: no point, in the shape of none
            return jnp.zeros((0, 1, 1)), []
        return program.points(index, keys, self._sobol_words(program, index, dimensions))

    def _high(self, block: Block) -> int:
        divisor = self.plan.sweep.replicates if self.plan.sweep.sampler == "sobol" else 1
        return (block.start // divisor) >> 32

    def _sobol_words(self, program: Program, index: Array, dimensions: np.ndarray) -> Array | None:
        if self.plan.sweep.sampler != "sobol":
            return None
        if dimensions.ndim == 1:
            return self._sobol(index, tuple(dimensions.tolist()))
        # a sensitivity design: each column reads matrix A or B
        both = sorted({d for d in dimensions.reshape(-1).tolist()})
        points = self._sobol(index, tuple(both))
        pick = np.searchsorted(both, dimensions)
        return jnp.take_along_axis(points, jnp.asarray(pick), axis=0)

    def _inputs_of_cells(
        self, program: Program, cells: tuple[int, ...], high: int, device: jax.Device
    ) -> tuple[Array, Array, Array, np.ndarray]:
        width = self.plan.layout.columns_per_tile
        distinct, where = np.unique(cells, return_inverse=True)
        pairs = [program.numbers(int(c)) for c in distinct]
        numbers = np.stack([p[0] for p in pairs], -1)[:, where]
        rows = np.stack([p[1] for p in pairs], -1)[:, where]
        if program.per_cell_streams:
            keys = np.stack([program.keys(int(c), high) for c in distinct], -1)[..., where]
            dimensions = np.stack([program.dimensions(int(c)) for c in distinct], -1)[:, where]
        else:
            keys = program.keys(int(distinct[0]), high)[..., None]
            dimensions = program.dimensions(int(distinct[0]))[:, None]
        spread = partial(np.broadcast_to, subok=False)
        numbers = spread(numbers, (len(numbers), width))
        rows = spread(rows, (len(rows), width))
        put = partial(jax.device_put, device=device)
        same = bool((dimensions == dimensions[:, :1]).all())
        dimensions = dimensions[:, 0] if same else dimensions
        return (
            put(np.ascontiguousarray(numbers)),
            put(np.ascontiguousarray(rows)),
            put(keys),
            dimensions,
        )

    def _tables_on(self, program: Program, device: jax.Device) -> dict[str, Array]:
        return jax.device_put(program.tables, device)

    def probe(self) -> str:
        """Digest of one fixed tile of cell 0: stands for device kind and versions.

        It does not depend on how many samples there are, so that a longer run agrees.
        """
        width = self.plan.layout.columns_per_tile
        columns = Columns(np.zeros(width, np.int32), np.arange(width), 0, width)
        block = Block(0, 0, (), np.zeros(1, np.int64), 0, self.plan.layout.tile)
        tile = next(self._dispatch(block, [columns]))
        digest = hashlib.sha256()
        for name, array in sorted((tile.outputs | tile.draws).items()):
            digest.update(name.encode())
            digest.update(np.asarray(array).tobytes())
        return digest.hexdigest()
