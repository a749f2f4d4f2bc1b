"""A list of array operations as Python source over NumPy, with memory used again."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any


@dataclasses.dataclass(frozen=True)
class Name:
    """A value that differs from lane to lane, or the truth that decides a branch."""

    text: str
    kind: str  # float, int, bool, or truth

    def __str__(self) -> str:
        return self.text


@dataclasses.dataclass(frozen=True)
class Step:
    """result = function(*arguments)."""

    function: str
    arguments: tuple[Any, ...]  # names, or source of numbers and tables
    result: Name

    @property
    def reads(self) -> set[Name]:
        """Names among the arguments."""
        return {a for a in self.arguments if isinstance(a, Name)}

    @property
    def makes(self) -> set[Name]:
        """The result."""
        return {self.result}


Body = tuple[tuple["Step | Cond", ...], tuple[Any, ...]]


@dataclasses.dataclass(frozen=True)
class Cond:
    """results = those of one of two bodies: the second where the truth holds."""

    which: Name
    bodies: tuple[Body, ...]
    results: tuple[Name, ...]

    @property
    def reads(self) -> set[Name]:
        """Outer names that either body reads."""
        read = {self.which}
        for steps, results in self.bodies:
            inner = set().union(*(s.makes for s in steps))
            wanted = set().union(*(s.reads for s in steps))
            wanted |= {r for r in results if isinstance(r, Name)}
            read |= wanted - inner
        return read

    @property
    def makes(self) -> set[Name]:
        """The results."""
        return set(self.results)


def source(steps: Sequence[Step | Cond], given: Sequence[Name], results: Sequence[Any]) -> str:
    """A function `run(memory, *given)` that returns the results; it consumes what is given."""
    wanted = {r for r in results if isinstance(r, Name)}
    head = f"def run(memory, {', '.join(map(str, given))}):"
    takes = ["take_float, take_int, take_bool = memory.take, memory.take_int, memory.take_bool"]
    takes += ["give_float, give_int, give_bool = memory.give, memory.give_int, memory.give_bool"]
    takes += ["drop_float, drop_int, drop_bool = memory.drop, memory.drop_int, memory.drop_bool"]
    lines = [*takes, *_body(steps, set(given), wanted), f"return ({', '.join(map(str, results))},)"]
    return "\n".join([head, *(f"    {line}" for line in lines)])


def _body(steps: Sequence[Step | Cond], alive: set[Name], wanted: set[Name]) -> Iterator[str]:
    """Lines of the steps that matter. `alive`: names that may be consumed; `wanted`: kept."""
    plan, live = [], set(wanted)
    for step in reversed(steps):
        if step.makes & live:
            plan.append((step, step.reads - live))
            live = (live - step.makes) | step.reads
    yield from _freed(alive - live)
    mine = set(alive)
    for step, last in reversed(plan):
        mine |= step.makes
        dying = {n for n in last & mine if n.kind != "truth"}
        if isinstance(step, Cond):
            yield from _branches(step)
            yield from _freed(dying)
        else:
            yield from _line(step, dying)
        if isinstance(step, Cond):
            yield from _freed(step.makes - wanted - set().union(*(s.reads for s, _ in plan)))


def _freed(names: set[Name]) -> Iterator[str]:
    for name in sorted(names, key=str):
        yield f"give_{name.kind}({name})"


def _line(step: Step, dying: set[Name]) -> Iterator[str]:
    out, arguments = step.result, ", ".join(map(str, step.arguments))
    if step.function in ("all", "any"):
        yield f"{out} = {arguments}.{step.function}()"
    elif step.function == "where":
        # it has no `out`: one array less is kept, so that it gets memory that is still in the cache
        same = next((n for n in step.arguments if n in dying and n.kind == out.kind), None)
        if same is None:
            yield f"drop_{out.kind}()"
        yield f"{out} = where({arguments})"
        if same is not None:
            yield f"del {same}"
        dying = dying - {same}
    elif step.function in ("take", "copyto"):
        yield f"{out} = take_{out.kind}()"
        rest = "out={}, mode='clip'" if step.function == "take" else "casting='unsafe'"
        call = f"{arguments}, {rest.format(out)}"
        yield f"take({call})" if step.function == "take" else f"copyto({out}, {call})"
    else:
        place = next((n for n in step.arguments if n in dying and n.kind == out.kind), None)
        dying = dying - {place}
        yield f"{out} = {step.function}({arguments}, out={place or f'take_{out.kind}()'})"
    yield from _freed(dying)


def _branches(cond: Cond) -> Iterator[str]:
    for number, (steps, results) in enumerate(cond.bodies):
        yield "else:" if number else f"if not {cond.which}:"
        inner = set().union(*(s.makes for s in steps)) if steps else set()
        own = {r for r in results if isinstance(r, Name) and r in inner}
        lines, used = list(_body(steps, set(), own)), set()
        for name, result in zip(cond.results, results, strict=True):
            if result in own and result not in used:
                lines.append(f"{name} = {result}")
                used.add(result)
            else:
                lines += [f"{name} = take_{name.kind}()", f"copyto({name}, {result})"]
        yield from (f"    {line}" for line in lines)
