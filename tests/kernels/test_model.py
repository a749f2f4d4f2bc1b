"""Wiring stages by their annotations."""

import types
from typing import Annotated

import jax
import jax.numpy as jnp
import pytest
from jax import Array

from fabric_kernels.catalogue import ANSWERS
from fabric_kernels.model import Model, ModelError, Slot, Stage, question_of
from fabric_kernels.quantity import quantity, record
from fabric_kernels.uniform import DeepUniform, Uniform


@record
class Kitchen:
    """Input."""

    power: Array = quantity("W", "power at the socket")
    mass: Array = quantity("kg", "water")


@record
class Kettle:
    """How fast does water get hot?"""

    heating_rate: Array = quantity("K s-1", "heating rate")
    lid_loss: Array = quantity("W", "power lost")


@record
class Tea:
    """When is tea ready?"""

    tea_time: Array = quantity("s", "time to tea")


@record
class Cake:
    """A question nobody needs here."""

    cake_time: Array = quantity("s", "time to cake")


def kettle(kitchen: Kitchen) -> Kettle:
    loss = 0.1 * kitchen.power
    return Kettle(heating_rate=(kitchen.power - loss) / (4186 * kitchen.mass), lid_loss=loss)


def tea(kettle: Kettle, patience: Annotated[Uniform, "patience"]) -> Tea:
    return Tea(tea_time=80 / kettle.heating_rate + patience.distance)


def cake(kitchen: Kitchen, luck: Annotated[DeepUniform, "luck"]) -> Cake:
    return Cake(cake_time=jnp.exp(jnp.sin(kitchen.mass)) + luck.distance)


GIVEN = {"power": jnp.float32(2000), "mass": jnp.float32(1)}
HALF = Uniform(upper=jnp.zeros((), bool), distance=jnp.float32(0.5))
UNIFORMS = {"test_model.patience": HALF, "test_model.luck": HALF}


@pytest.fixture
def model() -> Model:
    return Model(tea, cake, kettle)


def equations(model: Model, outputs: list[str], **replaced: Array) -> int:
    """Operations that are traced for these outputs."""

    def run(given: dict[str, Array], uniforms: dict[str, Uniform]) -> dict[str, Array]:
        return model(given, uniforms, outputs)

    return len(jax.make_jaxpr(run)(GIVEN | replaced, UNIFORMS).eqns)


def test_evaluates_whatever_the_order_of_the_stages(model: Model):
    found = model(GIVEN, UNIFORMS, ["tea_time"])
    assert list(found) == ["tea_time"]
    # 80 K at 1800 W / (4186 J/K), and half a second
    assert float(found["tea_time"]) == pytest.approx(80 * 4186 / 1800 + 0.5, rel=1e-6)


def test_knows_inputs_and_computed_quantities(model: Model):
    assert model.inputs == (Kitchen,)
    assert not model.computed("mass")
    assert model.computed("tea_time")
    assert model.owner["lid_loss"] is Kettle
    assert model.quantities["tea_time"].unit == "s"


def test_needs_only_what_the_outputs_need(model: Model):
    assert model.needed(["tea_time"]) == ["power", "mass"]
    assert model.slots(["tea_time"]) == [Slot("test_model.patience", deep=False)]
    assert model.slots(["cake_time"]) == [Slot("test_model.luck", deep=True)]
    assert model.needed(["mass"]) == ["power", "mass"]
    assert model.slots(["mass"]) == []


def test_only_requested_outputs_are_traced(model: Model):
    alone, both = equations(model, ["tea_time"]), equations(model, ["tea_time", "cake_time"])
    without_cake = equations(Model(tea, kettle), ["tea_time"])
    assert alone == without_cake
    assert both > alone
    assert equations(model, ["mass"]) == 0


def test_a_given_quantity_replaces_what_a_stage_computes(model: Model):
    replaced = GIVEN | {"heating_rate": jnp.float32(1)}
    found = model(replaced, UNIFORMS, ["tea_time", "heating_rate", "lid_loss"])
    assert found["tea_time"] == 80.5
    assert found["heating_rate"] == 1
    # the rest of the record is still computed
    assert found["lid_loss"] == 200


def test_a_wholly_given_stage_is_not_traced(model: Model):
    given = {"heating_rate": jnp.float32(1), "lid_loss": jnp.float32(0)}
    assert [s.name for s in model.traced(["tea_time"], given)] == ["Tea.tea"]
    assert model.needed(["tea_time"], given) == []
    assert model(given, UNIFORMS, ["tea_time"])["tea_time"] == 80.5
    assert equations(model, ["tea_time"], **given) < equations(model, ["tea_time"])
    # a given output needs no stage at all
    assert model.traced(["tea_time"], ["tea_time"]) == []
    assert model({"tea_time": jnp.float32(3)}, {}, ["tea_time"])["tea_time"] == 3


def test_a_question_answered_twice_is_refused():
    def other(kitchen: Kitchen) -> Kettle:
        return kettle(kitchen)

    with pytest.raises(ModelError, match=r"Kettle is answered twice, by Kettle\.kettle and Kettle"):
        Model(kettle, other, tea)


def test_a_loop_is_refused():
    def fed(tea: Tea) -> Kettle:
        return Kettle(heating_rate=tea.tea_time, lid_loss=tea.tea_time)

    with pytest.raises(ModelError, match=r"(Tea needs Kettle needs Tea|Kettle needs Tea needs K)"):
        Model(fed, tea)


def test_a_name_declared_twice_is_refused():
    @record
    class Pot:
        mass: Array = quantity("kg", "the pot")

    def pot(kitchen: Kitchen) -> Pot:
        return Pot(mass=kitchen.mass)

    # locals of a test cannot be read from the annotations, so they are put there
    pot.__annotations__ = {"kitchen": Kitchen, "return": Pot}
    with pytest.raises(ModelError, match="mass is declared twice, by Kitchen and Pot: rename one"):
        Model(pot)


def test_an_input_without_a_value_is_named(model: Model):
    with pytest.raises(ModelError, match="Kitchen needs mass: give a value"):
        model({"power": GIVEN["power"]}, UNIFORMS, ["tea_time"])


def test_a_quantity_nobody_computes_is_named(model: Model):
    with pytest.raises(ModelError, match=r"no chosen stage gives biscuits; this model has .*mass"):
        model(GIVEN, UNIFORMS, ["biscuits"])


def test_a_uniform_without_a_slot_is_refused():
    def lucky(kitchen: Kitchen, luck: Uniform) -> Cake:
        return Cake(cake_time=kitchen.mass)

    with pytest.raises(ModelError, match=r"lucky\(luck\): name the slot"):
        Stage.of(lucky)


def test_the_question_is_the_folder_of_the_record():
    module = types.ModuleType("fabric_kernels.teatime")
    assert question_of(type("Sip", (), {"__module__": module.__name__})) == "teatime"


def test_the_default_answers_fit_together():
    model = Model(*(next(iter(answers.values())) for answers in ANSWERS.values()))
    assert model.computed("step_time")
    given = ["jitter_stall"]
    assert {"gpus", "link_rate", "packet_loss_rate"} <= set(model.needed(["step_time"], given))
