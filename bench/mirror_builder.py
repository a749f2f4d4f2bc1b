"""From a traced computation to the array operations that one cell leaves to do, in float64."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import special

from bench.mirror_source import Cond, Name, Step

Known = np.ndarray
Value = Any  # Known, Name, or a list of them: the last axis of an index

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
KINDS = {"f": "float", "i": "int", "u": "int", "b": "bool"}


def as_float(value: Value) -> Value:
    """A known array in the width that the mirror computes in."""
    if isinstance(value, Name):
        return value
    value = np.asarray(value)
    kinds = {"f": np.float64, "i": np.intp, "u": np.intp, "b": np.bool_}
    return value.astype(kinds[value.dtype.kind]) if value.dtype.kind in kinds else value


def number_of(value: Known) -> float | int | bool:
    """A known array that is the same for all lanes, as a plain number."""
    flat = value.reshape(-1)
    if flat.size != 1 and not np.array_equal(flat, np.full_like(flat, flat[0]), equal_nan=True):
        raise NotImplementedError(f"a known array of shape {value.shape} meets the lanes")
    return flat[0].item()


class Builder:
    """Reads a jaxpr: computes what is known, and lists the steps for what is not."""

    def __init__(self) -> None:
        self.steps: list[Step | Cond] = []
        self.space: dict[str, Any] = {"where": np.where, "copyto": np.copyto, "take": np.take}
        self._made: dict[tuple, Name] = {}
        self._wrapped: dict[Name, Name] = {}  # an index as jnp wraps it -> the index
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
            return [given[0] if isinstance(given[0], Name) else _shaped(equation, given[0])]
        if name not in FUNCTIONS:
            raise NotImplementedError(f"the mirror does not know {equation.primitive}: add it")
        return [self._apply(name, *given)]

    def _apply(self, name: str, *given: Value) -> Value:
        if not any(isinstance(g, Name) for g in given):
            with np.errstate(all="ignore"):
                return FUNCTIONS[name](*given)
        kinds = [g.kind if isinstance(g, Name) else KINDS[g.dtype.kind] for g in given]
        self.space[FUNCTIONS[name].__name__] = FUNCTIONS[name]
        kind = "bool" if name in TRUTHS else kinds[0]
        return self._step(FUNCTIONS[name].__name__, kind, given)

    def _step(self, function: str, kind: str, given: Sequence[Value]) -> Name:
        arguments = tuple(g if isinstance(g, Name) else repr(number_of(g)) for g in given)
        self.space |= {"inf": np.inf, "nan": np.nan}
        return self._make(function, kind, arguments)

    def _make(self, function: str, kind: str, arguments: tuple[Any, ...]) -> Name:
        key = (function, *arguments, kind)
        if key not in self._made:
            self._count += 1
            self._made[key] = Name(f"v{self._count}", kind)
            self.steps.append(Step(function, arguments, self._made[key]))
        return self._made[key]

    def _integer_pow(self, equation: Any, x: Value) -> Value:
        power = equation.params["y"]
        result, base = None, x
        for bit in reversed(f"{abs(power):b}"):
            if bit == "1":
                result = base if result is None else self._apply("mul", result, base)
            base = self._apply("square", base)
        return result if power > 0 else self._apply("div", np.float64(1.0), result)

    def _rsqrt(self, _equation: Any, x: Value) -> Value:
        return self._apply("div", np.float64(1.0), self._apply("sqrt", x))

    def _clamp(self, _equation: Any, low: Value, x: Value, high: Value) -> Value:
        return self._apply("min", self._apply("max", x, low), high)

    def _select_n(self, _equation: Any, which: Value, *cases: Value) -> Value:
        if not isinstance(which, Name):
            if which.size == 1 or (which == which.flat[0]).all():
                return cases[int(which.flat[0])]
            return np.choose(which.astype(np.intp), cases)
        first, second = cases
        if isinstance(second, Name) and self._wraps(which, first, second):
            return first
        kinds = {c.kind if isinstance(c, Name) else KINDS[c.dtype.kind] for c in cases}
        return self._step("where", kinds.pop(), (which, second, first))

    def _wraps(self, which: Name, first: Value, second: Name) -> bool:
        """Whether this lets a negative index count from the end: our laws have none."""
        return (
            isinstance(first, Name)
            and first.kind == "int"
            and self._made.get(("less", first, "0", "bool")) == which
            and any(k[:2] == ("add", first) and v == second for k, v in self._made.items())
        )

    def _convert_element_type(self, equation: Any, x: Value) -> Value:
        kind = KINDS[np.dtype(equation.params["new_dtype"]).kind]
        if not isinstance(x, Name):
            to = {"float": np.float64, "int": np.intp, "bool": np.bool_}[kind]
            return x.astype(to)
        if x.kind == "truth":  # the condition of a branch
            return x
        return x if x.kind == kind else self._step("copyto", kind, (x,))

    def _reduce_and(self, _equation: Any, x: Value) -> Value:
        return self._make("all", "truth", (x,)) if isinstance(x, Name) else np.asarray(x.all())

    def _reduce_or(self, _equation: Any, x: Value) -> Value:
        return self._make("any", "truth", (x,)) if isinstance(x, Name) else np.asarray(x.any())

    def _concatenate(self, _equation: Any, *parts: Value) -> Value:
        if any(isinstance(p, Name) for p in parts):
            return list(parts)
        return np.concatenate(np.broadcast_arrays(*parts), axis=-1)

    def _gather(self, _equation: Any, table: Value, where: Value) -> Value:
        """The laws' tables: [knot] by an index, or [row, knot] by a row and an index."""
        if isinstance(table, Name):
            raise NotImplementedError("a table that depends on the lanes")
        if not isinstance(where, (Name, list)):
            return table[tuple(np.moveaxis(where, -1, 0))]
        if isinstance(where, list):
            row, where = where
            table = table[int(number_of(row))]
        if table.ndim != 1 or not isinstance(where, Name):
            raise NotImplementedError("a table that is not read by one index")
        name = f"table{len(self.space)}"
        self.space[name] = np.ascontiguousarray(table)
        return self._make("take", KINDS[table.dtype.kind], (name, where))

    def _scan(self, parameters: dict[str, Any], given: list[Value]) -> list[Value]:
        inner, split = parameters["jaxpr"], parameters["num_consts"]
        end = split + parameters["num_carry"]
        consts, carry, rows = given[:split], given[split:end], given[end:]
        turns = range(parameters["length"])
        for k in reversed(turns) if parameters["reverse"] else turns:
            results = self.run(inner.jaxpr, inner.consts, [*consts, *carry, *(r[k] for r in rows)])
            carry, stacked = results[: len(carry)], results[len(carry) :]
            if stacked:
                raise NotImplementedError("a scan that stacks its results")
        return carry

    def _cond(self, branches: Sequence[Any], given: list[Value]) -> list[Value]:
        which, *operands = given
        if not isinstance(which, Name):
            chosen = branches[int(np.clip(number_of(which), 0, len(branches) - 1))]
            return self.run(chosen.jaxpr, chosen.consts, operands)
        outer, made, bodies = self.steps, self._made, []
        for branch in branches:
            self.steps, self._made = [], dict(made)
            results = self.run(branch.jaxpr, branch.consts, operands)
            bodies.append(
                (self.steps, [r if isinstance(r, Name) else number_of(r) for r in results])
            )
        self.steps, self._made = outer, made
        names = []
        for one, *_ in zip(*(results for _, results in bodies), strict=True):
            self._count += 1
            kind = one.kind if isinstance(one, Name) else KINDS[np.asarray(one).dtype.kind]
            names.append(Name(f"v{self._count}", kind))
        self.steps.append(Cond(which, tuple((tuple(s), tuple(r)) for s, r in bodies), tuple(names)))
        return list(names)


def _shaped(equation: Any, x: Known) -> Known:
    """A known array in another shape, by JAX's own rules."""
    parameters = equation.params
    match equation.primitive.name:
        case "broadcast_in_dim":
            shape, axes = parameters["shape"], parameters["broadcast_dimensions"]
            spread = np.ones(len(shape), int)
            spread[list(axes)] = x.shape
            return np.broadcast_to(x.reshape(spread), shape)
        case "slice":
            starts, limits = parameters["start_indices"], parameters["limit_indices"]
            steps = parameters["strides"] or [1] * x.ndim
            return x[tuple(map(slice, starts, limits, steps))]
        case "transpose":
            return x.transpose(parameters["permutation"])
        case _:
            return x.reshape(equation.outvars[0].aval.shape)
