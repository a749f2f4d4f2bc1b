"""Wire stages into one pure function.

A record is a question; a stage is a function that answers it from other records. The return
annotation says which question a stage answers, the parameter annotations what it needs. Nothing
else has to be declared.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any, get_args, get_origin

import jax
import jax.numpy as jnp
from jax import Array

from fabric_kernels.quantity import Quantity, has_structure, quantities
from fabric_kernels.uniform import DeepUniform, Uniform, WideUniform


class ModelError(TypeError):
    """The chosen stages do not fit together."""


@dataclasses.dataclass(frozen=True)
class Slot:
    """One uniform that a stage draws for every sample, or as many as it likes."""

    stream: str
    deep: bool
    wide: bool = False
    count: int | None = 1  # uniforms of one step; None: a wide slot that does not say


@dataclasses.dataclass(frozen=True)
class Stage:
    """A stage function, read."""

    function: Callable[..., Any]
    needs: dict[str, type]  # parameter -> record
    slots: dict[str, Slot]  # parameter -> its uniform
    answers: type

    @classmethod
    def of(cls, function: Callable[..., Any]) -> "Stage":
        """Read the annotations of a stage."""
        hints = inspect.get_annotations(function, eval_str=True)
        answers = hints.pop("return")
        question = question_of(answers)
        needs, slots = {}, {}
        for name, hint in hints.items():
            if get_origin(hint) is Annotated:
                kind, slot, *count = get_args(hint)
                wide = issubclass(kind, WideUniform)
                slots[name] = Slot(
                    f"{question}.{slot}",
                    deep=issubclass(kind, DeepUniform),
                    wide=wide,
                    count=count[0] if count else (None if wide else 1),
                )
            elif hint in (Uniform, DeepUniform, WideUniform):
                raise ModelError(
                    f'{function.__name__}({name}): name the slot: Annotated[Uniform, "slot"].'
                )
            else:
                needs[name] = hint
        return cls(function, needs, slots, answers)

    @property
    def name(self) -> str:
        """question.answer, for messages."""
        return f"{self.answers.__name__}.{self.function.__name__}"


def question_of(record: type) -> str:
    """The question a record answers: the folder that declares it."""
    return record.__module__.rpartition(".")[2]


class _Repeated(WideUniform):
    """Stands for a wide slot while a model is only read."""

    def __init__(self, u: Uniform) -> None:
        self._uniform = u

    def at(self, number: Array) -> Uniform:
        """The same uniform for every number, in the shape of the answer."""
        shape = jnp.broadcast_shapes(number.shape, self._uniform.distance.shape)
        upper, distance = self._uniform
        return Uniform(jnp.broadcast_to(upper, shape), jnp.broadcast_to(distance, shape))


def _spare(*, wide: bool) -> Uniform | WideUniform:
    """Stands for a slot that was not drawn, because no output depends on it."""
    u = Uniform(jnp.asarray(True), jnp.asarray(0.5))  # noqa: FBT003
    return _Repeated(u) if wide else u


def _variables(atoms: Iterable[Any]) -> set[Any]:
    """The variables among the atoms of a jaxpr; the others are constants."""
    return {a for a in atoms if not hasattr(a, "val")}


def _recalled(record: type, given: Mapping[str, Array], known: dict[type, Any]) -> Any:
    """A record that is known, or made of what is given, which makes it known."""
    if record not in known:
        fields = quantities(record)
        missing = [n for n in fields if n not in given]
        if missing:
            raise ModelError(f"{record.__name__} needs {', '.join(missing)}: give a value.")
        known[record] = record(**{n: given[n] for n in fields})
    return known[record]


class Model:
    """A set of stages, at most one per question, in an order that can be run.

    Raises ModelError for a question answered twice, a quantity declared twice, or a loop.
    """

    def __init__(self, *functions: Callable[..., Any]) -> None:
        self.stages: dict[type, Stage] = {}
        for stage in map(Stage.of, functions):
            if (other := self.stages.get(stage.answers)) is not None:
                raise ModelError(
                    f"{stage.answers.__name__} is answered twice, by {other.name} and "
                    f"{stage.name}: keep one."
                )
            self.stages[stage.answers] = stage
        self._refuse_loops()
        self._arithmetic = functools.lru_cache(maxsize=8)(self._arithmetic_of)  # takes a second
        needed = {r: None for s in self.stages.values() for r in s.needs.values()}
        self.inputs = tuple(r for r in needed if r not in self.stages)
        self.quantities: dict[str, Quantity] = {}
        self.owner: dict[str, type] = {}
        for record in (*self.inputs, *self.stages):
            for name, declared in quantities(record).items():
                if name in self.owner:
                    raise ModelError(
                        f"{name} is declared twice, by {self.owner[name].__name__} and "
                        f"{record.__name__}: rename one."
                    )
                self.owner[name] = record
                self.quantities[name] = declared

    def _refuse_loops(self) -> None:
        graph = {
            record: {r for r in stage.needs.values() if r in self.stages}
            for record, stage in self.stages.items()
        }
        try:
            tuple(TopologicalSorter(graph).static_order())
        except CycleError as error:
            loop = " needs ".join(r.__name__ for r in error.args[1])
            raise ModelError(f"{loop}: solve that loop inside one stage.") from None

    def computed(self, name: str) -> bool:
        """Whether a stage computes this quantity."""
        return self.owner[name] in self.stages

    def _unknown(self, name: str) -> ModelError:
        return ModelError(
            f"no chosen stage gives {name}; this model has {', '.join(self.quantities)}."
        )

    def traced(self, outputs: Iterable[str], given: Iterable[str]) -> list[Stage]:
        """The stages that must run for these outputs when `given` quantities replace their own."""
        given, order, seen = frozenset(given), [], set()

        def visit(record: type) -> None:
            if record in seen or record not in self.stages:
                return
            seen.add(record)
            fields = quantities(record)
            if fields and given.issuperset(fields) and not has_structure(record):
                return
            for needed in self.stages[record].needs.values():
                visit(needed)
            order.append(self.stages[record])

        for name in outputs:
            if name not in self.owner:
                raise self._unknown(name)
            if name not in given:
                visit(self.owner[name])
        return order

    def needed(self, outputs: Iterable[str], given: Iterable[str] = ()) -> list[str]:
        """Names of the input quantities that these outputs depend on."""
        outputs = list(outputs)
        records = {r: None for s in self.traced(outputs, given) for r in s.needs.values()}
        records |= {self.owner[o]: None for o in outputs if o not in set(given)}
        return [n for r in records if r not in self.stages for n in quantities(r)]

    def used(self, outputs: Iterable[str], given: Iterable[str] = ()) -> set[str]:
        """The inputs, replaced quantities and streams that these outputs really read.

        A stage needs whole records; this traces it and follows the arithmetic back.
        """
        traced, entering = self._arithmetic(tuple(outputs), tuple(given))
        live = _variables(traced.outvars)
        for equation in reversed(traced.eqns):
            if not live.isdisjoint(equation.outvars):
                live |= _variables(equation.invars)
        return {name for name, variables in entering if not live.isdisjoint(variables)}

    def varying(
        self, outputs: Iterable[str], given: Iterable[str], streams: Iterable[str]
    ) -> set[str]:
        """Those of the outputs that really read a uniform of these streams."""
        outputs, streams = tuple(outputs), frozenset(streams)
        traced, entering = self._arithmetic(outputs, tuple(given))
        reached = {v for name, variables in entering if name in streams for v in variables}
        for equation in traced.eqns:
            if not reached.isdisjoint(_variables(equation.invars)):
                reached.update(equation.outvars)
        ends = zip(outputs, traced.outvars, strict=True)
        return {name for name, v in ends if not reached.isdisjoint(_variables([v]))}

    def _arithmetic_of(
        self, outputs: tuple[str, ...], given: tuple[str, ...]
    ) -> tuple[Any, list[tuple[str, tuple]]]:
        """The jaxpr of the outputs, in order, and which of its variables every name enters by."""
        names = [*dict.fromkeys((*self.needed(outputs, given), *given))]
        slots = [s for stage in self.traced(outputs, given) for s in stage.slots.values()]
        number = jax.ShapeDtypeStruct((1, 1), jnp.float32)
        uniform: Any = Uniform(jax.ShapeDtypeStruct((1, 1), jnp.bool), number)  # pyright: ignore

        def flat(values: list[Array], uniforms: list[Uniform]) -> list[Array]:
            named: dict[str, Any] = {}
            for slot, u in zip(slots, uniforms, strict=True):
                named[slot.stream] = _Repeated(u) if slot.wide else u
            answers = self(dict(zip(names, values, strict=True)), named, outputs)
            return [answers[n] for n in outputs]

        traced = jax.make_jaxpr(flat)([number] * len(names), [uniform] * len(slots)).jaxpr
        ends = traced.invars[len(names) :]
        pairs = zip(ends[::2], ends[1::2], strict=True)
        entering = [(n, (v,)) for n, v in zip(names, traced.invars, strict=False)]
        return traced, entering + [(s.stream, p) for s, p in zip(slots, pairs, strict=True)]

    def slots(self, outputs: Iterable[str], given: Iterable[str] = ()) -> list[Slot]:
        """The uniforms drawn for these outputs: those of exchanges that a model lacks are not."""
        outputs, given = list(outputs), tuple(given)
        used = self.used(outputs, given)
        slots = [s for stage in self.traced(outputs, given) for s in stage.slots.values()]
        return [s for s in slots if s.stream in used]

    def __call__(
        self,
        given: Mapping[str, Array],
        uniforms: Mapping[str, Uniform | WideUniform],
        outputs: Iterable[str],
        known: Mapping[type, Any] | None = None,
    ) -> dict[str, Array]:
        """Evaluate `outputs`; every array has the shape of the lanes, kernels are elementwise.

        `given` holds every needed input by name, and any computed quantity that it replaces.
        `uniforms` holds one Uniform per stream, `known` records that are answered already. Raises
        ModelError for an input without a value.
        """
        outputs = list(outputs)
        found = self.answered(self.traced(outputs, given), given, uniforms, known)
        return {
            n: given[n] if n in given else getattr(_recalled(self.owner[n], given, found), n)
            for n in outputs
        }

    def answered(
        self,
        stages: Iterable[Stage],
        given: Mapping[str, Array],
        uniforms: Mapping[str, Uniform | WideUniform],
        known: Mapping[type, Any] | None = None,
    ) -> dict[type, Any]:
        """Run these stages, in order, but for those whose record is known: record -> its values."""
        found = dict(known or {})
        for stage in stages:
            if stage.answers in found:
                continue
            arguments = {p: _recalled(r, given, found) for p, r in stage.needs.items()}
            for parameter, slot in stage.slots.items():
                arguments[parameter] = uniforms.get(slot.stream, _spare(wide=slot.wide))
            answer = stage.function(**arguments)
            replaced = {n: given[n] for n in quantities(stage.answers) if n in given}
            found[stage.answers] = dataclasses.replace(answer, **replaced) if replaced else answer
        return found
