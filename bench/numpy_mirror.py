"""The product's own laws and model as a NumPy program in float64: the rival of the benchmarks.

A mirror takes the traced computation (jaxpr) of one cell and writes it as straight Python source
over NumPy and SciPy, as a competent NumPy user would for that one cell:

* every number of the cell is a Python float, and what depends on the cell alone is computed once;
* what is computed twice is computed once, and what nobody reads is not computed;
* no conversions and no copies: all numbers are float64, a size of 1 stays a scalar;
* results go to memory that an earlier value no longer needs, in place where an operand dies, so
  that a chunk of the right size never leaves the cache (`where` alone has no place to write to);
* `cond` runs one branch, loops of fixed length are unrolled, sizes of arrays are free.

Uniforms come from NumPy's fastest generator, SFC64, straight as (upper, distance). `Mirror.source`
is the program.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from bench.mirror_builder import Builder, as_float, named, parts_of
from bench.mirror_source import Name, source
from fabric_kernels.uniform import Uniform
from fabricarlo.plan import Plan
from fabricarlo.program import Program


def laws_and_model(program: Program) -> Callable[..., dict[str, Array]]:
    """The function (numbers, tables, rows, uniforms) -> outputs, as the product computes it."""

    def compute(numbers: Array, tables: dict, rows: Array, uniforms: list) -> dict[str, Array]:
        draws, slots = program.drawn(uniforms, numbers, tables, rows)
        return program.evaluated(numbers, draws, slots)

    return compute


class Mirror:
    """The NumPy program of one cell."""

    def __init__(self, plan: Plan, cell: int) -> None:
        alone = dataclasses.replace(plan.sweep, replicates=1)  # an axis of lanes, as columns are
        plan = Plan(alone, block=plan.layout.block, tile=plan.layout.tile)
        program = Program(plan, plan.variant(cell))
        self.streams = tuple(s.name for s in program.streams)
        numbers, rows = (a[:, None] for a in program.numbers(cell))
        one = (1, 1)
        truth, number = np.ones(one, np.bool_), np.full(one, 0.5, np.float32)  # only their shape
        uniforms = [Uniform(jnp.asarray(truth), jnp.asarray(number)) for _ in self.streams]
        traced, shape = jax.make_jaxpr(laws_and_model(program), return_shape=True)(
            numbers, program.tables, rows, uniforms
        )
        self.outputs = tuple(sorted(shape))  # the order of a flattened dictionary
        builder = Builder()
        names = [Name(f"{what}{k}", kind) for k in range(len(self.streams))
                 for what, kind in (("upper", "bool"), ("distance", "float"))]  # fmt: skip
        given = [as_float(a) for a in jax.tree.leaves((numbers, program.tables, rows))]
        given += [named(name, one) for name in names]
        results = builder.run(traced.jaxpr, traced.consts, given)
        self.results = [part for result in results for part in parts_of(result)]
        self.source = source(builder.steps, names, self.results)
        space: dict[str, Any] = dict(builder.space)
        exec(compile(self.source, "<mirror>", "exec"), space)
        self._run, self._memory = space["run"], Memory()

    def draw(self, generator: np.random.Generator, size: int) -> list[NDArray]:
        """(upper, distance) of every stream, in memory of the mirror."""
        memory, drawn = self._memory.of(size), []
        for _ in self.streams:
            u, distance, upper = memory.take(), memory.take(), memory.take_bool()
            generator.random(out=u)
            np.greater_equal(u, 0.5, out=upper)
            np.subtract(1.0, u, out=distance)
            np.minimum(u, distance, out=distance)
            memory.give(u)
            drawn += [upper, distance]
        return drawn

    def evaluate(self, uniforms: Sequence[NDArray], size: int) -> dict[str, Any]:
        """Outputs at these uniforms, which are consumed; a constant output is a float."""
        with np.errstate(all="ignore"):
            values = self._run(self._memory.of(size), *uniforms)
        return dict(zip(self.outputs, values, strict=True))

    def release(self, outputs: dict[str, Any]) -> None:
        """Take the memory of outputs back."""
        arrays = {id(a): a for a in outputs.values() if isinstance(a, np.ndarray)}
        for array in arrays.values():
            self._memory.give_any(array)


class Memory:
    """Arrays of one size, for use again: the last one given is the next one taken."""

    def __init__(self) -> None:
        self.of(0)

    def of(self, size: int) -> "Memory":
        """This memory, emptied if its arrays have another size."""
        if getattr(self, "size", None) != size:
            self.size = size
            self._float: list[NDArray] = []
            self._int: list[NDArray] = []
            self._bool: list[NDArray] = []
            self.give, self.give_int = self._float.append, self._int.append
            self.give_bool = self._bool.append
        return self

    def take(self) -> NDArray:
        """A float64 array."""
        return self._float.pop() if self._float else np.empty(self.size)

    def take_int(self) -> NDArray:
        """An integer array."""
        return self._int.pop() if self._int else np.empty(self.size, np.intp)

    def take_bool(self) -> NDArray:
        """An array of truths."""
        return self._bool.pop() if self._bool else np.empty(self.size, np.bool_)

    def drop(self) -> None:
        """Hand the float64 array that was given last back to the allocator."""
        del self._float[-1:]

    def drop_int(self) -> None:
        """The same of an integer array."""
        del self._int[-1:]

    def drop_bool(self) -> None:
        """The same of an array of truths."""
        del self._bool[-1:]

    def give_any(self, array: NDArray) -> None:
        """Take an array back, whatever its kind."""
        {"f": self.give, "i": self.give_int, "b": self.give_bool}[array.dtype.kind](array)
