"""(variant, block, tile) -> arrays: the compiled programs, and the devices that run them.

Two programs a tile, so that no output repeats the work of the draws (XLA copies a producer into
every fusion that reads it): `draw` makes the random quantities, `evaluate` runs the model on them.
Every number of the spec enters as an array over the columns, never as a constant, so that a
variant compiles once and a cell's bits do not depend on its neighbours.
"""

import dataclasses
import hashlib
from collections.abc import Iterator
from functools import cached_property, lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from fabric_kernels.maths.normal import normal_quantile
from fabric_kernels.uniform import Uniform
from jax import Array

from fabricarlo.laws import Law, quantile
from fabricarlo.layout import Block, Columns
from fabricarlo.plan import DESIGN, SECOND, Plan, Stream, Variable, Variant
from fabricarlo.sampling.addresses import stream_keys
from fabricarlo.sampling.copula import correlated
from fabricarlo.sampling.sobol import reversed_words
from fabricarlo.sampling.uniforms import deep_uniform, uniform
from fabricarlo.sampling.words import low_words, narrow_words

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


@dataclasses.dataclass(frozen=True)
class Inputs:
    """Where the numbers of a cell stand in the arrays that enter a tile."""

    numbers: tuple[str, ...]  # rows of the float array: quantities, then law parameters
    tables: tuple[str, ...]  # names of tabulated laws


class Program:
    """The compiled programs of one variant."""

    def __init__(self, plan: Plan, variant: Variant) -> None:
        self.plan, self.variant = plan, variant
        self.streams = self._streams()
        self._laws = {(v.quantity, k): step for v in variant.variables for k, step in enumerate(v.steps)}
        self._prepared = lru_cache(maxsize=1024)(lambda law: law.prepared())
        self.draw = jax.jit(self._draw)
        self.evaluate = jax.jit(self._evaluate)

    def _streams(self) -> tuple[Stream, ...]:
        used = [stream for v in self.variant.variables for stream, _, _ in v.steps]
        return tuple(self.plan.streams[name] for name in (*used, *self.variant.slots))

    # ---- on the device

    def _words(self, index: Array, keys: Array, words: Array | None) -> list[Uniform]:
        if not self.streams:
            return []
        replicates = self.plan.sweep.replicates
        lane = jnp.arange(replicates, dtype=jnp.uint32)[:, None]
        sample = index[None, :] * jnp.uint32(replicates) + lane
        sobol = self.plan.sweep.sampler == "sobol"
        counter = jnp.broadcast_to(index[None, :], sample.shape) if sobol else sample
        all_words = narrow_words(self.plan.sweep.sampler, words, (keys[0], keys[1]), counter)
        uniforms: list[Uniform] = []
        for k, stream in enumerate(self.streams):
            if stream.deep:
                low = low_words((keys[0, k : k + 1], keys[1, k : k + 1]), counter)
                uniforms.append(deep_uniform(all_words[k], low[0]))
            else:
                uniforms.append(uniform(all_words[k]))
        return uniforms

    def _draw(
        self, index: Array, keys: Array, words: Array | None, numbers: Array, tables: dict, rows: Array
    ) -> tuple[dict[str, Array], dict[str, Uniform]]:
        """index [C], keys [2, stream, R, 1 or C], words [stream, C], numbers [row, C], rows [table, C]."""
        uniforms = dict(zip((s.name for s in self.streams), self._words(index, keys, words), strict=True))
        for copula in self.plan.sweep.copulas:
            members = [uniforms[n] for n in copula.quantities if n in uniforms]
            if len(members) == len(copula.quantities):
                uniforms |= zip(copula.quantities, correlated(members, copula.correlation), strict=True)
        draws = {}
        for variable in self.variant.variables:
            draws[variable.quantity] = self._drawn(variable, uniforms, numbers, tables, rows)
        return draws, {name: uniforms[name] for name in self.variant.slots}

    def _drawn(
        self, variable: Variable, uniforms: dict[str, Uniform], numbers: Array, tables: dict, rows: Array
    ) -> Array:
        value = numbers[self._row[variable.quantity]][None, :] if variable.underneath else None
        for k, (stream, signature, relation) in enumerate(variable.steps):
            prepared = {
                name: numbers[row][None, :] for name, row in self._scalars[variable.quantity, k].items()
            }
            for name in self._tabled[variable.quantity, k]:
                prepared[name] = tables[f"{variable.quantity} {k} {name}"]
                prepared["row"] = rows[self._table_row[variable.quantity, k]][None, :]
            drawn = quantile(signature, prepared, uniforms[stream])
            if relation == "is" or value is None:
                value = drawn
            else:
                value = value * drawn if relation == "times" else value + drawn
        return jnp.broadcast_to(value, (self.plan.sweep.replicates, numbers.shape[1]))

    def _evaluate(
        self, numbers: Array, draws: dict[str, Array], uniforms: dict[str, Uniform]
    ) -> dict[str, Array]:
        given = {n: numbers[self._row[n]][None, :] for n in self.variant.inputs}
        given |= {n: draws[n] for n in self.variant.drawn}
        shape = (self.plan.sweep.replicates, numbers.shape[1])
        answers = self.variant.model(given, uniforms, self.variant.outputs)
        return {n: jnp.broadcast_to(a, shape).astype(jnp.float32) for n, a in answers.items()}

    # ---- what enters: rows of numbers, tables, keys

    @cached_property
    def _example(self) -> dict[tuple[str, int], Law]:
        cell = next(c for c in range(self.plan.layout.cell_count) if self.plan.variant(c) == self.variant)
        return self.plan.cell(cell).laws

    @cached_property
    def _row(self) -> dict[str, int]:
        floors = [v.quantity for v in self.variant.variables if v.underneath]
        return {n: k for k, n in enumerate(dict.fromkeys((*self.variant.inputs, *floors)))}

    @cached_property
    def _scalars(self) -> dict[tuple[str, int], dict[str, int]]:
        rows, row = {}, len(self._row)
        for key in self._laws:
            names = [n for n, a in self._prepared(self._example[key]).items() if np.ndim(a) == 0]
            rows[key] = {n: row + k for k, n in enumerate(names)}
            row += len(names)
        return rows

    @cached_property
    def _tabled(self) -> dict[tuple[str, int], tuple[str, ...]]:
        return {
            key: tuple(n for n, a in self._prepared(self._example[key]).items() if np.ndim(a) > 0)
            for key in self._laws
        }

    @cached_property
    def _table_row(self) -> dict[tuple[str, int], int]:
        return {key: k for k, key in enumerate(key for key in self._laws if self._tabled[key])}

    @cached_property
    def _table_laws(self) -> dict[tuple[str, int], list[Law]]:
        """Distinct laws behind each table, over the labels that carry one."""
        laws = {key: [self._example[key]] for key in self._table_row}
        for name, k in laws:
            for draw in [*self.plan._preset_draws(name), *self.plan.sweep.draws]:
                known = laws[name, k]
                if draw.law.signature == known[0].signature and draw.law not in known:
                    known.append(draw.law)
        return laws

    @cached_property
    def tables(self) -> dict[str, np.ndarray]:
        """Tabulated laws: [law, knot] for each, resident on the device."""
        return {
            f"{key[0]} {key[1]} {name}": np.stack([self._prepared(law)[name] for law in laws])
            for key, laws in self._table_laws.items()
            for name in self._tabled[key]
        }

    def numbers(self, cell: int) -> tuple[np.ndarray, np.ndarray]:
        """The float32 numbers and the table rows of one cell."""
        at = self.plan.cell(cell)
        values = [at.numbers.get(n, np.nan) for n in self._row]
        for key, scalars in self._scalars.items():
            prepared = self._prepared(at.laws[key])
            values += [prepared[n] for n in scalars]
        rows = [self._table_laws[key].index(at.laws[key]) for key in self._table_row]
        return np.array(values, np.float32), np.array(rows, np.int32)

    def keys(self, cell: int, high: int) -> np.ndarray:
        """uint32 [2, stream, replicate] of one cell: labels of independent axes join the stream."""
        labels = self.plan.cell(cell).labels
        suffix = "".join(f"/{labels[a]}" for a in self.plan.sweep.independent)
        names = tuple(s.name + self._matrix(s, cell) + suffix for s in self.streams)
        sobol = self.plan.sweep.sampler == "sobol"
        replicates = self.plan.sweep.replicates
        keys = stream_keys(self.plan.sweep.seed, names, replicates if sobol else 1, high)
        keys = np.broadcast_to(keys, (len(names), replicates, 2))
        return np.moveaxis(keys, -1, 0)

    def _matrix(self, stream: Stream, cell: int) -> str:
        """Which matrix of a sensitivity design a stream reads in this cell: A is unmarked."""
        design = self.plan.cell(cell).labels.get(DESIGN, "A")
        quantity = stream.name.removesuffix(".preset")
        return SECOND if design in ("B", f"AB_{quantity}") else ""

    def dimensions(self, cell: int) -> np.ndarray:
        """Sobol' dimension of every stream in this cell."""
        pairs = [(s.second if self._matrix(s, cell) else s.dimension) for s in self.streams]
        return np.array(pairs, np.int64)

    @property
    def per_cell_streams(self) -> bool:
        """Whether cells read different words."""
        return bool(self.plan.sweep.independent) or self.plan.sweep.design is not None


class Engine:
    """Runs tiles of a plan on all local devices, several in flight."""

    def __init__(self, plan: Plan, devices: list[jax.Device] | None = None) -> None:
        self.plan = plan
        self.devices = devices or jax.local_devices()
        self._programs: dict[Variant, Program] = {}
        self._words = jax.jit(reversed_words, static_argnums=1)
        self._cell_inputs = lru_cache(maxsize=64)(self._inputs_of_cells)
        self._tables = lru_cache(maxsize=64)(self._tables_on)

    def program(self, variant: Variant) -> Program:
        """The compiled programs of a variant, made once."""
        if variant not in self._programs:
            self._programs[variant] = Program(self.plan, variant)
        return self._programs[variant]

    def tiles(self, block: Block) -> Iterator[Tile]:
        """Dispatch the tiles of a block, in order; nothing here waits for a device."""
        variant = self.plan.variant(int(block.cells[0]))
        for k, columns in enumerate(self.plan.layout.tiles(block)):
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
        words = self._sobol_words(program, index, dimensions)
        draws, uniforms = program.draw(index, keys, words, numbers, self._tables(program, device), rows)
        return program.evaluate(numbers, draws, uniforms), draws

    def _high(self, block: Block) -> int:
        divisor = self.plan.sweep.replicates if self.plan.sweep.sampler == "sobol" else 1
        return (block.start // divisor) >> 32

    def _sobol_words(self, program: Program, index: Array, dimensions: np.ndarray) -> Array | None:
        if self.plan.sweep.sampler != "sobol" or not program.streams:
            return None
        if dimensions.ndim == 1:
            return self._words(index, tuple(dimensions.tolist()))
        # a sensitivity design: each column reads matrix A or B
        both = sorted({d for d in dimensions.reshape(-1).tolist()})
        words = self._words(index, tuple(both))
        pick = np.searchsorted(both, dimensions)
        return jnp.take_along_axis(words, jnp.asarray(pick), axis=0)

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
        return put(np.ascontiguousarray(numbers)), put(np.ascontiguousarray(rows)), put(keys), dimensions

    def _tables_on(self, program: Program, device: jax.Device) -> dict[str, Array]:
        return jax.device_put(program.tables, device)

    def probe(self) -> str:
        """Digest of the first tile's draws and outputs: stands for device kind and versions."""
        block = self.plan.layout.at(0)
        tile = next(self.tiles(block))
        digest = hashlib.sha256()
        for name, array in sorted((tile.outputs | tile.draws).items()):
            digest.update(name.encode())
            digest.update(np.asarray(array).tobytes())
        return digest.hexdigest()
