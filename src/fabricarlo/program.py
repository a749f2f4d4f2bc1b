"""The compiled programs of one variant, and the numbers that enter them.

Three programs a tile, because XLA copies a producer into every fusion that reads it, and no output
shall repeat the work of the random numbers: `points` makes random points, `draw` the random
quantities, `evaluate` runs the model on them.
Every number of the spec enters as an array over the columns, never as a constant, so that a
variant compiles once and a cell's bits do not depend on its neighbours.
"""

from collections.abc import Mapping
from functools import cached_property, lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fabric_kernels.uniform import DeepUniform, Uniform, WideUniform
from fabricarlo.derived import WEIGHT
from fabricarlo.laws import Law, quantile
from fabricarlo.plan import Plan
from fabricarlo.sampling.addresses import stream_keys
from fabricarlo.sampling.copula import correlated
from fabricarlo.sampling.counted import Counted
from fabricarlo.sampling.uniforms import deep_uniform, uniform
from fabricarlo.sampling.words import low_words, narrow_words
from fabricarlo.tails import weighed
from fabricarlo.variants import DESIGN, SECOND, Stream, Variable, Variant


def options() -> dict[str, bool | int | str] | None:
    """Compiler options of the device at hand: on a CPU, vectors as wide as it has."""
    # XLA prefers 256 bits where there are 512; a narrower CPU splits them again
    return {"xla_cpu_prefer_vector_width": 512} if jax.default_backend() == "cpu" else None


def _signed(u: Uniform) -> Array:
    return jnp.where(u.upper, -u.distance, u.distance)


def _ends(point: Array) -> tuple[Array, Array]:
    return point < 0, jnp.abs(point)


class Program:
    """The compiled programs of one variant."""

    def __init__(self, plan: Plan, variant: Variant) -> None:
        self.plan, self.variant = plan, variant
        self.streams = self._streams()
        self._laws = {
            (v.quantity, k): step for v in variant.variables for k, step in enumerate(v.steps)
        }
        self._prepared = lru_cache(maxsize=1024)(lambda law: law.prepared())
        self.points = jax.jit(self._points, compiler_options=options())
        self.draw = jax.jit(self._draw, compiler_options=options())
        self.evaluate = jax.jit(self.evaluated, compiler_options=options())

    def _streams(self) -> tuple[Stream, ...]:
        used = [stream for v in self.variant.variables for stream, _, _ in v.steps]
        return tuple(self.plan.streams[name] for name in (*used, *self.variant.slots))

    # ---- on the device

    def _points(self, index: Array, keys: Array, sobol: Array | None) -> tuple[Array, list[Array]]:
        """Random points [stream, R, C], and again those [R, C] of the deep streams.

        A point is the distance of its uniform from the nearer end, negative at the upper end: one
        number, so that nothing of the words is computed twice. index [C], keys [2, stream, R, 1 or
        C], sobol [stream, C].
        """
        counter = self.counter(index)
        words = narrow_words(self.plan.sweep.sampler, sobol, (keys[0], keys[1]), counter)
        deep = []
        for k in (k for k, stream in enumerate(self.streams) if stream.deep):
            low = low_words((keys[0, k : k + 1], keys[1, k : k + 1]), counter)
            deep.append(_signed(deep_uniform(words[k], low[0])))
        return _signed(uniform(words)), deep

    def counter(self, index: Array) -> Array:
        """The number n of every sample [R, C] in the streams of narrow slots, mod 2^32."""
        replicates = self.plan.sweep.replicates
        lane = jnp.arange(replicates, dtype=jnp.uint32)[:, None]
        sample = index[None, :] * jnp.uint32(replicates) + lane
        sobol = self.plan.sweep.sampler == "sobol"
        return jnp.broadcast_to(index[None, :], sample.shape) if sobol else sample

    def _draw(
        self, points: Array, deep: list[Array], numbers: Array, tables: dict, rows: Array
    ) -> tuple[dict[str, Array], dict[str, Uniform]]:
        uniforms, weights = self.uniforms(points, deep), {}
        if self.plan.sweep.tails:
            streams = [s.name for s in self.streams]
            uniforms, weight = weighed(uniforms, streams, self.plan.sweep.tails)
            shape = (self.plan.sweep.replicates, numbers.shape[1])
            weights = {WEIGHT: jnp.broadcast_to(weight, shape)}
        draws, slots = self.drawn(uniforms, numbers, tables, rows)
        return draws | weights, slots

    def uniforms(self, points: Array, deep: list[Array]) -> list[Uniform]:
        """The uniforms of all streams, from the points of a tile."""
        rest = iter(deep)
        return [
            DeepUniform(*_ends(next(rest))) if stream.deep else Uniform(*_ends(points[k]))
            for k, stream in enumerate(self.streams)
        ]

    def drawn(
        self, uniforms_of_streams: list[Uniform], numbers: Array, tables: dict, rows: Array
    ) -> tuple[dict[str, Array], dict[str, Uniform]]:
        """Random quantities [R, C], and the uniforms of stage slots; numbers [row, C]."""
        names = (stream.name for stream in self.streams)
        uniforms = dict(zip(names, uniforms_of_streams, strict=True))
        for copula in self.plan.sweep.copulas:
            members = [uniforms[n] for n in copula.quantities if n in uniforms]
            if len(members) == len(copula.quantities):
                uniforms |= zip(
                    copula.quantities, correlated(members, copula.correlation), strict=True
                )
        draws = {}
        for variable in self.variant.variables:
            draws[variable.quantity] = self._drawn(variable, uniforms, numbers, tables, rows)
        return draws, {name: uniforms[name] for name in self.variant.slots}

    def _drawn(
        self,
        variable: Variable,
        uniforms: dict[str, Uniform],
        numbers: Array,
        tables: dict,
        rows: Array,
    ) -> Array:
        value = numbers[self._row[variable.quantity]][None, :] if variable.underneath else None
        for k, (stream, signature, relation) in enumerate(variable.steps):
            prepared = {
                name: numbers[row][None, :]
                for name, row in self._scalars[variable.quantity, k].items()
            }
            for name in self._tabled[variable.quantity, k]:
                prepared[name] = tables[f"{variable.quantity} {k} {name}"]
                prepared["row"] = rows[self._table_row[variable.quantity, k]][None, :]
            drawn = quantile(signature, prepared, uniforms[stream])
            if relation == "is" or value is None:
                value = drawn
            else:
                value = value * drawn if relation == "times" else value + drawn
        assert value is not None  # a variable has a floor or a law
        return jnp.broadcast_to(value, (self.plan.sweep.replicates, numbers.shape[1]))

    def evaluated(
        self,
        numbers: Array,
        draws: dict[str, Array],
        uniforms: Mapping[str, Uniform | WideUniform],
    ) -> dict[str, Array]:
        """Outputs [R, C] of the model on numbers [row, C] and draws [R, C]."""
        given = self.given(numbers, draws)
        shape = (self.plan.sweep.replicates, numbers.shape[1])
        answers = self.variant.model(given, uniforms, self.variant.outputs)
        return {n: jnp.broadcast_to(a, shape).astype(jnp.float32) for n, a in answers.items()}

    def given(self, numbers: Array, draws: dict[str, Array]) -> dict[str, Array]:
        """What the model is given, by name: numbers [1, C] and draws [R, C]."""
        given = {n: numbers[self._row[n]][None, :] for n in self.variant.inputs}
        return given | {n: draws[n] for n in self.variant.drawn}

    def wide(self, sample: Array, keys: Array) -> dict[str, WideUniform]:
        """The wide slots; sample [R, C] is its number mod 2^32, keys [2, slot, 1, 1 or C]."""
        return {
            name: Counted(keys[0, k], keys[1, k], sample)
            for k, name in enumerate(self.variant.wide)
        }

    # ---- what enters: rows of numbers, tables, keys

    @cached_property
    def _example(self) -> dict[tuple[str, int], Law]:
        cell = next(
            c for c in range(self.plan.layout.cell_count) if self.plan.variant(c) == self.variant
        )
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
        return self._keys_of(tuple(self._named(s, cell) for s in self.streams), high)

    def wide_keys(self, cell: int, high: int) -> np.ndarray:
        """uint32 [2, slot, 1] of the wide slots of one cell; `high` is that of the sample."""
        names = tuple(self._named(self.plan.streams[n], cell) for n in self.variant.wide)
        keys = stream_keys(self.plan.sweep.seed, names, 1, high)
        return np.moveaxis(keys, -1, 0)

    def _keys_of(self, names: tuple[str, ...], high: int) -> np.ndarray:
        sobol = self.plan.sweep.sampler == "sobol"
        replicates = self.plan.sweep.replicates
        keys = stream_keys(self.plan.sweep.seed, names, replicates if sobol else 1, high)
        keys = np.broadcast_to(keys, (len(names), replicates, 2))
        return np.moveaxis(keys, -1, 0)

    def _named(self, stream: Stream, cell: int) -> str:
        labels = self.plan.cell(cell).labels
        suffix = "".join(f"/{labels[a]}" for a in sorted(self.plan.sweep.independent))
        return stream.name + self._matrix(stream, cell) + suffix

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
