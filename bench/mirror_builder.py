"""From a traced computation to the array operations that one cell leaves to do, in float64."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import special

from bench.mirror_source import Cond, Name, Step
from bench.mirror_values import (
    KINDS,
    Part,
    Value,
    as_float,
    is_known,
    kind_of,
    named,
    parts_of,
    shaped,
)

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative,
    "max": np.maximum, "min": np.minimum, "abs": np.absolute, "sign": np.sign, "square": np.square,
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "expm1": np.expm1, "log1p": np.log1p,
    "sqrt": np.sqrt, "cbrt": np.cbrt, "tanh": np.tanh, "sin": np.sin, "cos": np.cos,
    "floor": np.floor, "ceil": np.ceil, "round": np.rint, "pow": np.power, "rem": np.fmod,
    "erf": special.erf, "erfc": special.erfc, "erf_inv": special.erfinv, "lgamma": special.gammaln,
    "logistic": special.expit, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal, "and": np.logical_and,
    "or": np.logical_or, "not": np.logical_not, "xor": np.logical_xor, "is_finite": np.isfinite,
}  # fmt: skip
TRUTHS = ("lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not", "xor", "is_finite")
SAME = ("stop_gradient", "copy", "optimization_barrier", "reduce_precision", "copy_p")
CALLS = ("jit", "pjit", "custom_jvp_call", "custom_vjp_call", "closed_call", "remat")
SHAPES = ("broadcast_in_dim", "reshape", "squeeze", "slice", "expand_dims", "transpose")


class Builder:
    """Reads a jaxpr: computes what is known, and lists the steps for what is not."""

    def __init__(self) -> None:
        self.steps: list[Step | Cond] = []
        self.space: dict[str, Any] = {"where": np.where, "copyto": np.copyto, "take": np.take}
        self.space |= {"inf": np.inf, "nan": np.nan}
        self._made: dict[tuple, Name] = {}
        self._tables: dict[tuple[str, bytes], str] = {}
        self._count = 0

    def run(self, jaxpr: Any, consts: Sequence[Any], given: Sequence[Value]) -> list[Value]:
        """Values of the results."""
        known = dict(zip(jaxpr.constvars, map(as_float, consts), strict=True))
        known |= zip(jaxpr.invars, given, strict=True)

        def read(v: Any) -> Value:
            return as_float(v.val) if hasattr(v, "val") else known[v]

        for equation in jaxpr.eqns:
            results = self._equation(equation, [read(v) for v in equation.invars])
            known |= zip(equation.outvars, results, strict=True)
        return [read(v) for v in jaxpr.outvars]

    def _equation(self, equation: Any, given: list[Value]) -> list[Value]:
        name, parameters = equation.primitive.name, equation.params
        if name in CALLS:
            inner = parameters.get("jaxpr", parameters.get("call_jaxpr"))
            return self.run(inner.jaxpr, inner.consts, given)
        if name == "scan":
            return self._scan(parameters, given)
        if name == "cond":
            return self._cond(parameters["branches"], given)
        if name in SAME:
            return given
        method = getattr(self, f"_{name}", None)
        if method is not None:
            return [method(equation, *given)]
        if name in SHAPES:
            return [shaped(equation, given[0])]
        if name not in FUNCTIONS:
            raise NotImplementedError(f"the mirror does not know {equation.primitive}: add it")
        return [self._apply(name, *given)]

    def _apply(self, name: str, *given: Value) -> Value:
        if all(map(is_known, given)):
            with np.errstate(all="ignore"):
                return np.asarray(FUNCTIONS[name](*given))
        return self._each(functools.partial(self._operation, name), *given)

    def _each(self, function: Callable[..., Part], *given: Value) -> Value:
        """`function` of the parts at every place."""
        made = np.asarray(np.frompyfunc(function, len(given), 1)(*given), object)
        parts = made.reshape(-1).tolist()
        if any(isinstance(part, Name) for part in parts):
            return made
        return as_float(np.array(parts).reshape(made.shape))

    def _operation(self, name: str, *parts: Part) -> Part:
        if not any(isinstance(part, Name) for part in parts):
            with np.errstate(all="ignore"):
                return FUNCTIONS[name](*parts).item()
        self.space[FUNCTIONS[name].__name__] = FUNCTIONS[name]
        kind = "bool" if name in TRUTHS else kind_of(parts[0])
        return self._step(FUNCTIONS[name].__name__, kind, parts)

    def _step(self, function: str, kind: str, parts: Sequence[Part]) -> Name:
        return self._make(
            function, kind, tuple(p if isinstance(p, Name) else repr(p) for p in parts)
        )

    def _make(self, function: str, kind: str, arguments: tuple[Any, ...]) -> Name:
        key = (function, *arguments, kind)
        if key not in self._made:
            self._count += 1
            self._made[key] = Name(f"v{self._count}", kind)
            self.steps.append(Step(function, arguments, self._made[key]))
        return self._made[key]

    def _integer_pow(self, equation: Any, x: Value) -> Value:
        power = equation.params["y"]
        result: Value | None = None
        base = x
        for bit in reversed(f"{abs(power):b}"):
            if bit == "1":
                result = base if result is None else self._apply("mul", result, base)
            base = self._apply("square", base)
        assert result is not None  # a power of 0 is no operation
        return result if power > 0 else self._apply("div", np.asarray(1.0), result)

    def _rsqrt(self, _equation: Any, x: Value) -> Value:
        return self._apply("div", np.asarray(1.0), self._apply("sqrt", x))

    def _clamp(self, _equation: Any, low: Value, x: Value, high: Value) -> Value:
        return self._apply("min", self._apply("max", x, low), high)

    def _select_n(self, _equation: Any, which: Value, *cases: Value) -> Value:
        return self._each(self._selected, which, *cases)

    def _selected(self, which: Part, *cases: Part) -> Part:
        if not isinstance(which, Name):
            return cases[int(which)]
        first, second = cases
        if isinstance(second, Name) and self._wraps(which, first, second):
            return first
        return self._step("where", kind_of(first), (which, second, first))

    def _wraps(self, which: Name, first: Part, second: Name) -> bool:
        """Whether this lets a negative index count from the end: our laws have none."""
        return (
            isinstance(first, Name)
            and first.kind == "int"
            and self._made.get(("less", first, "0", "bool")) == which
            and any(k[:2] == ("add", first) and v == second for k, v in self._made.items())
        )

    def _convert_element_type(self, equation: Any, x: Value) -> Value:
        kind = KINDS[np.dtype(equation.params["new_dtype"]).kind]
        if is_known(x):
            return x.astype({"float": np.float64, "int": np.intp, "bool": np.bool_}[kind])
        return self._each(functools.partial(self._converted, kind), x)

    def _converted(self, kind: str, x: Part) -> Part:
        if not isinstance(x, Name):
            return {"float": float, "int": int, "bool": bool}[kind](x)
        # a truth is the condition of a branch
        return x if x.kind in (kind, "truth") else self._step("copyto", kind, (x,))

    def _reduce_and(self, equation: Any, x: Value) -> Value:
        return self._truth("all", equation, x)

    def _reduce_or(self, equation: Any, x: Value) -> Value:
        return self._truth("any", equation, x)

    def _truth(self, function: str, equation: Any, x: Value) -> Value:
        """Whether all or any of the lanes hold."""
        if len(equation.params["axes"]) < x.ndim:
            raise NotImplementedError("a truth of each lane of its own")
        decided = function == "any"
        if is_known(x):
            return np.asarray(x.any() if decided else x.all())
        parts = parts_of(x)
        names = dict.fromkeys(p for p in parts if isinstance(p, Name))
        if any(p is decided for p in parts if not isinstance(p, Name)):
            return np.asarray(decided)
        joined = functools.partial(self._operation, "or" if decided else "and")
        return named(self._make(function, "truth", (functools.reduce(joined, names),)), ())

    def _reduce_sum(self, equation: Any, x: Value) -> Value:
        if is_known(x):
            return x.sum(axis=equation.params["axes"])
        for axis in sorted(equation.params["axes"], reverse=True):
            rows = [np.moveaxis(x, axis, 0)[k, ...] for k in range(x.shape[axis])]
            x = functools.reduce(functools.partial(self._apply, "add"), rows)
        return x

    def _concatenate(self, equation: Any, *parts: Value) -> Value:
        return np.concatenate(parts, axis=equation.params["dimension"])

    def _dynamic_slice(self, equation: Any, x: Value, *starts: Value) -> Value:
        """A slice of a known place, moved inside as JAX moves it."""
        sizes = equation.params["slice_sizes"]
        least = [
            int(np.clip(start.item(), 0, whole - size))
            for start, whole, size in zip(starts, x.shape, sizes, strict=True)
        ]
        return x[tuple(slice(k, k + size) for k, size in zip(least, sizes, strict=True))]

    def _gather(self, equation: Any, table: Value, where: Value) -> Value:
        """Entries, or whole slices, of a known table by an index for some of its axes."""
        numbers, sizes = equation.params["dimension_numbers"], equation.params["slice_sizes"]
        read = numbers.start_index_map
        kept = [k for k in range(table.ndim) if k not in read]
        if (
            not is_known(table)
            or sorted(read) != sorted(numbers.collapsed_slice_dims)
            or numbers.operand_batching_dims
            or any(sizes[k] != table.shape[k] for k in kept)
        ):
            raise NotImplementedError("a table that depends on the lanes, or is read in pieces")
        table, index = table.transpose(*read, *kept), np.moveaxis(where, -1, 0)
        batch = where.shape[:-1]
        if is_known(where):
            found = table[tuple(index)]
        else:
            found = np.empty((*batch, *table.shape[len(read) :]), object)
            for at in np.ndindex(batch):
                found[(*at, ...)] = self._looked_up(table, [i[at] for i in index])
        return np.moveaxis(found, range(len(batch), found.ndim), numbers.offset_dims)

    def _looked_up(self, table: Value, index: list[Part]) -> Value:
        """What stands at one index, of which at most one part differs from lane to lane."""
        lanes = [i for i in index if isinstance(i, Name)]
        if len(lanes) > 1:
            raise NotImplementedError("a table that is not read by one index")
        at = tuple(slice(None) if isinstance(i, Name) else int(i) for i in index)
        if not lanes:
            return table[at]
        rows = table[at]
        made = np.empty(rows.shape[1:], object)
        for place in np.ndindex(made.shape):
            column = np.ascontiguousarray(rows[(slice(None), *place)])
            arguments = self._table(column), lanes[0]
            made[place] = self._make("take", KINDS[column.dtype.kind], arguments)
        return made

    def _table(self, column: Value) -> str:
        key = column.dtype.str, column.tobytes()
        name = self._tables.setdefault(key, f"table{len(self._tables)}")
        self.space[name] = column
        return name

    def _scan(self, parameters: dict[str, Any], given: list[Value]) -> list[Value]:
        inner, split = parameters["jaxpr"], parameters["num_consts"]
        end = split + parameters["num_carry"]
        consts, carry, rows = given[:split], given[split:end], given[end:]
        turns = range(parameters["length"])
        for k in reversed(turns) if parameters["reverse"] else turns:
            row = [r[k, ...] for r in rows]
            results = self.run(inner.jaxpr, inner.consts, [*consts, *carry, *row])
            carry, stacked = results[: len(carry)], results[len(carry) :]
            if stacked:
                raise NotImplementedError("a scan that stacks its results")
        return carry

    def _cond(self, branches: Sequence[Any], given: list[Value]) -> list[Value]:
        which, *operands = given[0].item(), *given[1:]
        if not isinstance(which, Name):
            chosen = branches[int(np.clip(which, 0, len(branches) - 1))]
            return self.run(chosen.jaxpr, chosen.consts, operands)
        outer, made, bodies = self.steps, self._made, []
        shapes: list[tuple[int, ...]] = []
        for branch in branches:
            self.steps, self._made = [], dict(made)
            results = self.run(branch.jaxpr, branch.consts, operands)
            bodies.append((tuple(self.steps), tuple(p for r in results for p in parts_of(r))))
            shapes = [r.shape for r in results]
        self.steps, self._made = outer, made
        names = []
        for one in bodies[0][1]:
            self._count += 1
            names.append(Name(f"v{self._count}", kind_of(one)))
        self.steps.append(Cond(which, tuple(bodies), tuple(names)))
        rest = iter(names)
        values = [np.empty(shape, object) for shape in shapes]
        for value in values:
            value.reshape(-1)[:] = [next(rest) for _ in range(value.size)]
        return values
