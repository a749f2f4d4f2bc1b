"""What every answer of every question must do."""

import contextlib
import functools
import inspect
import itertools
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_origin

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fabric_kernels
from fabric_kernels.catalogue import ANSWERS, DIMENSIONS, REFUSALS
from fabric_kernels.collective import Collective
from fabric_kernels.errors import Errors, MarginalPaths
from fabric_kernels.expert import Expert
from fabric_kernels.model import Model, ModelError, Stage, question_of
from fabric_kernels.operation import Operation
from fabric_kernels.pattern import Barrier, Doubling, Line, Ring, Traffic, Tree
from fabric_kernels.pipeline import Pipeline
from fabric_kernels.quantity import Quantity, has_structure, quantities
from fabric_kernels.uniform import Uniform
from fabric_kernels.workload import Message, Workload

LANES = 64
AXES = 60  # NumPy has no more than 64, and an answer may add some
EVERY = [
    (q, name)
    for q, answers in ANSWERS.items()
    for name, function in answers.items()
    if not any(slot.wide for slot in Stage.of(function).slots.values())
]
"""All but simulations of single events, which have tests of their own (test_jitter_events.py)."""
FOLDERS = Path(fabric_kernels.__file__).parent
"""Folders are questions, but for what no question is."""
NO_QUESTIONS = {"calls", "inputs", "maths"}

BRANCHES_LEFT = {("cooling", "single_phase"), ("cooling", "air")}
"""Answers that leave their large branches at ordinary values."""

every_answer = pytest.mark.parametrize(("question", "name"), EVERY)


def middle(declared: Quantity) -> float:
    """An ordinary value: the default, else the middle of the bounds on their own scale."""
    low, high = declared.bounds
    if declared.flags == ("no", "yes"):
        return high  # an answer that needs a thing has it
    if declared.default is not None:
        return declared.default
    return float(np.sqrt(low * high)) if low > 0 else (low + high) / 2 if high < 1e3 else 100.0


def records_of(kind: type) -> type:
    """The record to fill: an abstract answer stands for its default."""
    if quantities(kind) or kind is Operation:
        return kind
    default = next(iter(ANSWERS[question_of(kind)].values()))
    return next(iter(Stage.of(default).needs.values()))


def corners(declared: Quantity, choice: np.ndarray) -> np.ndarray:
    low, high = declared.bounds
    values = np.choose(choice, [low, middle(declared), high])
    return np.round(values) if declared.integer or declared.flags else values


def arguments_of(stage: Stage, fill: Callable[[Quantity, int], np.ndarray]) -> dict[str, Any]:
    """Records and uniforms of one call; `fill` gives the lanes of the quantity of this number."""
    number = itertools.count()
    arguments: dict[str, Any] = {}

    def lane(declared: Quantity) -> jax.Array:
        return jnp.asarray(fill(declared, next(number)).reshape(1, -1), jnp.float32)

    for parameter, kind in stage.needs.items():
        kind = records_of(kind)
        if kind is Operation:
            arguments[parameter] = operation_of(stage)
            continue
        lanes = {name: lane(declared) for name, declared in quantities(kind).items()}
        if kind is Workload:
            spacing = lane(Quantity("1", "spacing", (1, 4096), 8))
            one = jnp.ones_like(spacing)
            lanes["messages"] = (Message(one, one, spacing),)
        elif kind is Errors:
            paths = MarginalPaths(lanes["marginal_path_loss_rate"], lanes["marginal_links"])
            lanes["marginal"] = (paths,)
        elif has_structure(kind):
            lanes["traffic"] = (traffic(lane, *PATTERNS[kind]),)
        arguments[parameter] = kind(**lanes)
    return arguments


def operation_of(stage: Stage) -> Operation:
    """The first operation that an answer knows."""
    for made in (made() for made in ANSWERS["operation"].values()):
        arguments = {"operation": made} | {
            p: jax.eval_shape(lambda kind=kind: _plain(kind))
            for p, kind in stage.needs.items()
            if kind is not Operation
        }
        with contextlib.suppress(ModelError):
            jax.eval_shape(
                lambda given, made=made: stage.function(operation=made, **given),
                {p: a for p, a in arguments.items() if p != "operation"},
            )
            return made
    raise AssertionError(f"{stage.name} knows no operation")


def _plain(kind: type) -> Any:
    one = jnp.ones((1, 1), jnp.float32)
    lanes: dict[str, Any] = dict.fromkeys(quantities(kind), one)
    if kind is Workload:
        lanes["messages"] = (Message(one, one, one),)
    elif has_structure(kind):
        lanes["traffic"] = ()
    return kind(**lanes)


COUNT, SIZE = Quantity("1", "count", (1, 2**17), 64), Quantity("B", "size", (0, 1e12), 1e6)
FEW = Quantity("1", "few", (1, 64), 2)


PATTERNS: dict[type, tuple[type, ...]] = {
    Collective: (Ring, Tree),
    Expert: (Barrier,),
    Pipeline: (Line,),
}
"""What an exchange often consists of; the laws of every pattern have tests of their own."""


def traffic(lane: Callable[[Quantity], jax.Array], *kinds: type) -> Traffic:
    """These patterns, one after another, with counts and sizes of every kind."""
    count, size, few = (lambda: lane(COUNT)), (lambda: lane(SIZE)), (lambda: lane(FEW))
    ring, again = count(), Quantity("1", "repeats", (0, 1000), 1)
    deep, twice = Quantity("1", "levels", (1, 17), 6), Quantity("1", "levels", (1, 34), 12)
    made = {
        Ring: lambda: Ring(ring, 2 * (ring - 1), size(), few(), lane(again)),
        Tree: lambda: Tree(count(), lane(deep), few(), few(), few(), size(), few(), lane(again)),
        Doubling: lambda: Doubling(count(), lane(twice), size(), few(), lane(again)),
        Barrier: lambda: Barrier(count(), few(), size(), lane(again)),
        Line: lambda: Line(count(), size(), lane(again)),
    }
    return Traffic(tuple(made[kind]() for kind in kinds), count())


def at_corners(question: str, name: str) -> dict[str, Any]:
    """All low, all high, all ordinary, and each lane's own choice of low, ordinary and high."""
    random = np.random.default_rng(zlib.crc32(f"{question}.{name}".encode()))
    stage = Stage.of(ANSWERS[question][name])

    def fill(declared: Quantity, number: int) -> np.ndarray:
        choice = random.integers(0, 3, LANES)
        choice[:3] = (0, 1, 2)
        # one quantity at a time at each end, the others ordinary
        choice[3:43] = 1
        if number < 20:
            choice[3 + 2 * number : 5 + 2 * number] = (0, 2)
        return corners(declared, choice)

    arguments = arguments_of(stage, fill)
    ends = jnp.asarray(np.resize([2.0**-33, 0.01, 0.5], (1, LANES)), jnp.float32)
    upper = jnp.asarray(np.resize([True, True, True, False, False, False], (1, LANES)))
    return arguments | {parameter: Uniform(upper, ends) for parameter in stage.slots}


def refused(question: str, name: str, arguments: dict[str, Any]) -> np.ndarray:
    """Lanes that the answer's refusal names."""
    refusal = REFUSALS.get(ANSWERS[question][name])
    if refusal is None:
        return np.zeros(LANES, bool)
    hints = inspect.get_annotations(refusal, eval_str=True)
    hints.pop("return")
    given = {type(record): record for record in arguments.values()}
    lanes = []
    for lane in range(LANES):
        plain = {
            parameter: jax.tree.map(lambda x, lane=lane: float(x[0, lane]), given[kind])
            for parameter, kind in hints.items()
            if kind in given
        }
        for parameter, kind in hints.items():
            if kind not in given:  # a limit that the answer itself does not read: leave it open
                plain[parameter] = kind(**{n: q.bounds[1] for n, q in quantities(kind).items()})
        lanes.append(refusal(**plain) is not None)
    return np.array(lanes)


def fields(answered: Any) -> dict[str, jax.Array]:
    return {name: getattr(answered, name) for name in quantities(type(answered))}


def endless(arguments: dict[str, Any]) -> np.ndarray:
    """Lanes of a step without work or with a stopped clock: its efficiency or time has no value."""
    lanes = np.zeros(LANES, bool)
    for record in arguments.values():
        for name in ("slowest_clock_fraction", "full_clock_compute_time"):
            if hasattr(record, name):
                lanes |= np.asarray(getattr(record, name))[0] == 0
    return lanes


@functools.cache  # compiling an answer takes longer than all that is checked of it
def run(question: str, name: str) -> dict[str, np.ndarray]:
    """Every field of a jitted answer on the corners."""
    answered = jax.jit(ANSWERS[question][name])(**at_corners(question, name))
    return {field: np.asarray(value) for field, value in fields(answered).items()}


def test_every_question_has_an_answer():
    folders = {p.parent.name for p in FOLDERS.glob("*/__init__.py")}
    assert set(ANSWERS) == folders - NO_QUESTIONS
    for question, answers in ANSWERS.items():
        kinds = {Stage.of(function).answers for function in answers.values()}
        assert len(kinds) == 1, question
        assert question_of(kinds.pop()) == question


def test_the_defaults():
    first = {question: next(iter(answers)) for question, answers in ANSWERS.items()}
    assert first["collective"] == "hierarchical"
    assert first["noise"] == "lognormal"
    assert first["loss"] == "go_back_n"
    assert first["cooling"] == "single_phase"
    assert not [name for name in first.values() if "seed" in name]


@every_answer
def test_is_named_and_described(question: str, name: str):
    function = ANSWERS[question][name]
    assert function.__name__ == name
    assert function.__doc__
    assert all(parameter.default is inspect.Parameter.empty for parameter in parameters(function))


def parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())


@every_answer
def test_gives_every_declared_field_in_the_shape_of_what_enters(question: str, name: str):
    """Every number that enters has an axis of its own, so that each meets each with size 1."""
    leaves, tree = jax.tree.flatten(at_corners(question, name))
    rank = min(len(leaves), AXES)
    apart = [
        jax.ShapeDtypeStruct([1 + (axis == k % rank) for axis in range(rank)], leaf.dtype)
        for k, leaf in enumerate(leaves)
    ]
    found = jax.eval_shape(ANSWERS[question][name], **jax.tree.unflatten(tree, apart))
    declared = quantities(Stage.of(ANSWERS[question][name]).answers)
    assert isinstance(found, Stage.of(ANSWERS[question][name]).answers)
    for field in declared:
        value = getattr(found, field)
        assert value.ndim == rank, field
        assert max(value.shape) == 2, field  # with lanes, it has all of them
        assert value.dtype == jnp.float32, field


@every_answer
def test_is_finite_on_the_corners_of_its_bounds(question: str, name: str):
    arguments = at_corners(question, name)
    may_fail = refused(question, name, arguments)
    if question == "step":
        may_fail |= endless(arguments)
    assert may_fail.mean() < 0.9
    for field, value in run(question, name).items():
        bad = ~np.isfinite(value[0]) & ~may_fail
        assert not bad.any(), (field, np.flatnonzero(bad))


@every_answer
def test_has_a_finite_gradient(question: str, name: str):
    """At ordinary values, with respect to every number that enters."""
    stage = Stage.of(ANSWERS[question][name])
    arguments = arguments_of(stage, lambda declared, _: np.full(1, middle(declared)))
    half = Uniform(jnp.asarray([[True]]), jnp.asarray([[0.1]], jnp.float32))

    def total(records: dict[str, Any]) -> jax.Array:
        uniforms = dict.fromkeys(stage.slots, half)
        answered = ANSWERS[question][name](**records, **uniforms)
        return sum((jnp.sum(value) for value in fields(answered).values()), jnp.float32(0))

    # not jitted: compiling the gradient of a solver takes longer than running it, and where large
    # branches are not taken this holds for each of its loops and branches
    with jax.disable_jit((question, name) in BRANCHES_LEFT):
        slopes = jax.tree.leaves(jax.grad(total)(arguments))
    assert all(np.isfinite(slope).all() for slope in slopes)


@every_answer
def test_is_the_same_under_jit(question: str, name: str):
    arguments = at_corners(question, name)
    plain = fields(ANSWERS[question][name](**arguments))
    fused = run(question, name)
    # fusion may round a product and a sum once instead of twice
    for field, value in plain.items():
        np.testing.assert_allclose(fused[field], np.asarray(value), rtol=2e-5, atol=1e-30)


@every_answer
def test_can_be_lowered_for_every_platform(question: str, name: str):
    arguments = at_corners(question, name)
    lowered = jax.export.export(
        jax.jit(lambda given: fields(ANSWERS[question][name](**given))),
        platforms=["cpu", "cuda", "tpu"],
    )(arguments)
    assert lowered.platforms == ("cpu", "cuda", "tpu")


def test_dimensions_cover_every_slot_once():
    slots = {
        slot.stream
        for answers in ANSWERS.values()
        for function in answers.values()
        for slot in Stage.of(function).slots.values()
        if not slot.wide
    }
    assert slots == set(DIMENSIONS)
    assert len(set(DIMENSIONS.values())) == len(DIMENSIONS)
    # those above 39 belong to stages
    assert max(DIMENSIONS.values()) == 63
    assert min(DIMENSIONS.values()) > 39


def test_all_answers_of_a_question_fit_the_defaults_of_the_others():
    first = {question: next(iter(answers.values())) for question, answers in ANSWERS.items()}
    for question, answers in ANSWERS.items():
        for function in answers.values():
            Model(*(first | {question: function}).values())


def test_refusals_belong_to_answers():
    known = {function for answers in ANSWERS.values() for function in answers.values()}
    assert set(REFUSALS) <= known
    for refusal in REFUSALS.values():
        hints = inspect.get_annotations(refusal, eval_str=True)
        assert hints.pop("return") == str | None
        assert all(quantities(kind) for kind in hints.values())
        assert not any(get_origin(kind) for kind in hints.values())
