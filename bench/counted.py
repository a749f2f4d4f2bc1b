"""Work that can be counted without a clock: operations, compilations, bytes, kernels.

XLA copies a producer into every fusion that reads it; a count of integer XORs, which only random
numbers need, shows how much of that work is done more than once.
"""

import collections
import dataclasses
import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax

from fabricarlo.engine import Engine
from fabricarlo.layout import Block

_HEAD = re.compile(r"^(ENTRY )?%?([\w.-]+) \(.*\{\s*$")
_LINE = re.compile(r"^\s+(ROOT )?%?([\w.-]+) = (.*?) ([a-z][a-z0-9-]*)\((.*)$")
_CALLED = re.compile(r"(?:calls|to_apply|body|true_computation|false_computation)=%?([\w.-]+)")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_TURNS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_SHAPE = re.compile(r"\w+\[([\d,]*)\]")
_AT_ANOTHER_INDEX = ("slice", "broadcast", "reverse", "transpose", "dynamic-slice", "concatenate")
_NO_KERNEL = (
    "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "copy-start", "copy-done",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Instruction:
    """One line of an HLO computation."""

    name: str
    elements: int  # of the result; of a tuple the sum
    operation: str
    operands: tuple[str, ...]
    called: tuple[str, ...]
    turns: int  # of a loop whose length XLA knows
    is_root: bool
    hoists: bool  # a broadcast along the columns: what it reads leaves the innermost loop


@dataclasses.dataclass(frozen=True)
class Module:
    """A compiled program, read from its text."""

    computations: dict[str, list[Instruction]]
    entry: str

    @classmethod
    def of(cls, text: str) -> "Module":
        """Read `compiled.as_text()`."""
        computations: dict[str, list[Instruction]] = {}
        entry, current = "", ""
        for line in text.splitlines():
            if head := _HEAD.match(line):
                current = head[2]
                computations[current] = []
                entry = current if head[1] else entry
            elif current and (found := _LINE.match(line)):
                computations[current].append(_instruction(found))
        return cls(computations, entry)

    def evaluations(self, operation: str) -> int:
        """How many elements of this operation one run computes; loops turn, branches count once."""
        return self._evaluations(self.entry, operation, frozenset())

    def _evaluations(self, name: str, operation: str, fused: frozenset[str]) -> int:
        lines = self.computations.get(name, [])
        wanted = _demand(lines) if name in fused else {i.name: i.elements for i in lines}
        total = 0
        for line in lines:
            total += wanted[line.name] if line.operation == operation else 0
            inside = fused | set(line.called if line.operation == "fusion" else ())
            for other in line.called:
                total += line.turns * self._evaluations(other, operation, inside)
        return total

    def kernels(self) -> int:
        """Launches of one run: what the entry computation does, loops and branches included."""
        return self._kernels(self.entry)

    def _kernels(self, name: str) -> int:
        total = 0
        for line in self.computations.get(name, []):
            if line.operation in ("while", "conditional", "call"):
                total += line.turns * sum(map(self._kernels, line.called))
            elif line.operation not in _NO_KERNEL:
                total += 1
        return total


def _instruction(found: re.Match[str]) -> Instruction:
    rest = found[5]
    called = _CALLED.findall(rest)
    if branches := _BRANCHES.search(rest):
        called += [b.strip().lstrip("%") for b in branches[1].split(",")]
    sizes = [math.prod(int(d) for d in s.split(",") if d) for s in _SHAPE.findall(found[3])]
    turns = _TURNS.search(rest)
    operands = re.findall(r"%([\w.-]+)", rest.split(")")[0])
    return Instruction(
        found[2],
        sum(sizes),
        found[4],
        tuple(operands),
        tuple(called),
        int(turns[1]) if turns else 1,
        bool(found[1]),
        found[4] == "broadcast" and _spreads_columns(found[3], rest),
    )


def _spreads_columns(shape: str, rest: str) -> bool:
    """Whether a broadcast fills the last dimension anew."""
    sizes = _SHAPE.findall(shape)[0].split(",")
    kept = re.search(r"dimensions=\{([\d,]*)\}", rest)
    return kept is None or str(len(sizes) - 1) not in kept[1].split(",")


def _demand(lines: list[Instruction]) -> dict[str, int]:
    """Elements of every instruction of a fusion that its result makes it compute.

    Readers at the same index share a value; a slice or a broadcast reads at its own index. What
    does not change along the columns is computed outside the innermost loop, by LLVM: measured,
    the key schedule of a scramble costs nothing.
    """
    same: dict[str, int] = collections.Counter()
    other: dict[str, int] = collections.Counter()
    elements = {line.name: line.elements for line in lines}
    wanted = {}
    for line in reversed(lines):
        own = line.elements if line.is_root else 0
        wanted[line.name] = max(own, same[line.name] + other[line.name])
        for operand in set(line.operands) & elements.keys():
            if line.hoists:
                same[operand] = max(same[operand], elements[operand])
            elif line.operation in _AT_ANOTHER_INDEX:
                other[operand] += wanted[line.name]
            elif line.operation in ("tuple", "reduce", "reduce-window", "gather"):
                same[operand] = max(same[operand], elements[operand])
            else:
                same[operand] = max(same[operand], wanted[line.name])
    return wanted


def traced(jaxpr: Any, primitive: str) -> int:
    """Elements of a primitive's results in a traced computation; loops turn."""
    total = 0
    for equation in jaxpr.eqns:
        if equation.primitive.name == primitive:
            total += sum(math.prod(v.aval.shape) for v in equation.outvars)
        turns = equation.params.get("length", 1) if equation.primitive.name == "scan" else 1
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple | list) else (value,):
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    total += turns * traced(inner, primitive)
    return total


@dataclasses.dataclass(frozen=True)
class Work:
    """One tile of a variant: lanes, and its programs with what enters them."""

    lanes: int
    programs: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]

    @classmethod
    def of(cls, engine: Engine, block: Block) -> "Work":
        """The compiled programs that the first tile of a block calls, and what it gives them."""
        program = engine.program(engine.plan.variant(int(block.cells[0])))
        calls: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}
        with _recorded(engine, calls), _recorded(program, calls):
            jax.block_until_ready(next(engine.tiles(block)).outputs)
        return cls(engine.plan.layout.tile, calls)

    def compiled(self, name: str) -> Any:
        """The compiled program."""
        function, given = self.programs[name]
        return function.lower(*given).compile()  # pyright: ignore[reportFunctionMemberAccess]

    def repeated(self, operation: str = "xor") -> float:
        """Evaluations of an operation in the optimised programs over those that were traced."""
        done = wanted = 0
        for name, (function, given) in self.programs.items():
            done += Module.of(self.compiled(name).as_text()).evaluations(operation)
            wanted += traced(function.trace(*given).jaxpr, operation)  # pyright: ignore
        return done / wanted


@contextmanager
def _recorded(
    owner: object, calls: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]
) -> Iterator[None]:
    """Note the arguments of every jitted function that is an attribute of `owner`."""
    jitted = {n: f for n, f in vars(owner).items() if callable(f) and hasattr(f, "lower")}

    def noting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            calls[name.strip("_")] = function, given
            return function(*given)

        return call

    try:
        for name, function in jitted.items():
            setattr(owner, name, noting(name, function))
        yield
    finally:
        for name, function in jitted.items():
            setattr(owner, name, function)


@contextmanager
def compilations() -> Iterator[list[str]]:
    """The list of what XLA compiles inside, one entry each."""
    found: list[str] = []

    def listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            found.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield found
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


def bytes_under(path: Path) -> int:
    """Bytes of all files of a store."""
    return sum(p.stat().st_size for p in path.rglob("*") if p.is_file())
