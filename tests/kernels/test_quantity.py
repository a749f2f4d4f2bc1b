"""Declaring numbers: every one has a unit, a meaning and, with a default, a source."""

import abc
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import Array

from fabric_kernels import inputs
from fabric_kernels.catalogue import ANSWERS
from fabric_kernels.model import Stage
from fabric_kernels.noise.exponential import ExponentialNoise
from fabric_kernels.noise.lognormal import LognormalNoise
from fabric_kernels.quantity import Quantity, quantities, quantity, record
from fabric_kernels.uniform import Uniform


@record
class Kettle:
    """A kettle."""

    water: Array = quantity("kg", "water in the kettle", bounds=(0, 2))
    heating: Array = quantity("W", "power of the heater", default=2000, source="label [A]")


@record
class Pan:
    """A pan, with as many quantities as a kettle."""

    oil: Array = quantity("kg", "oil in the pan")
    glow: Array = quantity("W", "power of the plate")


def declared() -> dict[str, Quantity]:
    """Every quantity of every record that an input or an answer uses."""
    records = {kind for kind in vars(inputs).values() if hasattr(kind, "__dataclass_fields__")}
    for answers in ANSWERS.values():
        for function in answers.values():
            stage = Stage.of(function)
            records |= {stage.answers, *stage.needs.values()}
    return {name: q for kind in records for name, q in quantities(kind).items()}


def test_a_record_knows_its_quantities_in_order():
    found = quantities(Kettle)
    assert list(found) == ["water", "heating"]
    assert found["water"] == Quantity("kg", "water in the kettle", (0, 2), name="water")
    assert found["heating"].default == 2000
    assert found["heating"].source == "label [A]"


def test_a_record_is_a_pytree_that_jax_can_trace():
    kettle = Kettle(water=jnp.float32(1.5), heating=jnp.float32(2000))
    doubled = jax.jit(lambda k: jax.tree.map(lambda x: 2 * x, k))(kettle)
    assert isinstance(doubled, Kettle)
    assert doubled.water == 3


@pytest.mark.parametrize("classes", [(Kettle, Pan), (ExponentialNoise, LognormalNoise)])
def test_records_of_as_many_fields_are_different_trees(classes: tuple[Any, Any]):
    """Else JAX runs what it traced for the one on the other: their hashes meet now and then."""
    one, other = (
        jax.tree.structure(kind(**dict.fromkeys(quantities(kind), 1))) for kind in classes
    )
    assert one.num_leaves == other.num_leaves
    assert one != other


def test_a_record_cannot_be_changed():
    kettle = Kettle(water=jnp.float32(1.5), heating=jnp.float32(2000))
    with pytest.raises(AttributeError):
        kettle.water = jnp.float32(0)  # type: ignore[misc]


def test_a_field_without_a_unit_is_refused():
    with pytest.raises(TypeError, match=r"Cup\.tea has no unit: declare it with quantity"):

        @record
        class Cup:
            tea: Array


def test_a_default_without_a_source_is_refused():
    with pytest.raises(TypeError, match="the default 3 of 'cups' has no source"):
        quantity("1", "cups", default=3)


def test_an_abstract_answer_has_no_quantities_of_its_own():
    class Drink(abc.ABC):
        @abc.abstractmethod
        def sip(self) -> None: ...

    assert quantities(Drink) == {}


def test_every_quantity_of_the_project_is_well_declared():
    for name, found in declared().items():
        low, high = found.bounds
        assert low < high, name
        assert found.meaning, name
        assert found.unit, name
        if found.default is not None:
            assert low <= found.default <= high, name
        if found.flags:
            assert found.bounds == (0, len(found.flags) - 1), name


def test_the_value_of_a_uniform():
    point = Uniform(jnp.asarray([True, False]), jnp.asarray([0.25, 0.25], jnp.float32))
    assert point.value.tolist() == [0.75, 0.25]
