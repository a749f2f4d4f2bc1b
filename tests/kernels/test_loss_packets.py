"""The packet-by-packet simulation against one that looks at every slot, and the closed forms."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fabric_kernels.loss.event_level import Outcome, Run, go_back_n_run, selective_repeat_run
from fabric_kernels.loss.laws.channel import NEVER, Channel, Event, GilbertElliott, Independent
from fabric_kernels.loss.laws.moments import go_back_n_moments, selective_repeat_mean
from fabric_kernels.uniform import Uniform, WideUniform
from tests.agreement import assert_mean, assert_share
from tests.reference import packet_recovery
from tests.reference.packet_recovery import Flow

FLOWS = (Flow(30, 6, 8, 60), Flow(40, 6, 20, 80), Flow(40, 6, 11, 80), Flow(1, 4, 9, 30))
LAST = 4000  # slots that are written down


class Given(NamedTuple):
    """A channel that loses exactly the slots that it is given."""

    slots: jax.Array  # [number, run]

    def following(self, after: Event, slot: jax.Array, *_: object) -> Event:
        later = jnp.where(self.slots > after.slot, self.slots, NEVER)
        found = jnp.min(later, axis=1, keepdims=True)
        return Event(found, found >= 0, found < 0)


class Drawn(WideUniform):
    """Uniforms of jax.random."""

    def __init__(self, seed: int, runs: int) -> None:
        self.key, self.runs = jax.random.key(seed), runs

    def at(self, number: jax.Array) -> Uniform:
        keys = jax.vmap(partial(jax.random.fold_in, self.key))(number.reshape(-1))
        u = jax.vmap(lambda k: jax.random.uniform(k, (1, self.runs), minval=1e-7))(keys)
        return Uniform(jnp.zeros(u.shape, bool), u)


def whole(flow: Flow) -> Run:
    return Run(*(jnp.full((1, 1), v, jnp.int32) for v in flow))


def lists_of_slots(seed: int, runs: int) -> list[list[int]]:
    generator = np.random.default_rng(seed)
    rates = generator.choice([0.02, 0.1, 0.3], runs)
    return [np.flatnonzero(generator.random(LAST) < rate).tolist() for rate in rates]


def tabled(lists: list[list[int]]) -> Given:
    table = np.full((max(map(len, lists)), len(lists)), NEVER, np.int32)
    for run, slots in enumerate(lists):
        table[: len(slots), run] = slots
    return Given(jnp.asarray(table))


def results(outcome: Outcome) -> list[tuple[int, int]]:
    return [(int(s), int(t)) for s, t in zip(*map(np.ravel, outcome), strict=True)]


UNUSED = Drawn(0, 1)
SCHEMES = {
    "again": (
        jax.jit(lambda run, channel: go_back_n_run(run, channel, UNUSED, single_nak=False)),
        partial(packet_recovery.go_back_n, single_nak=False),
    ),
    "once": (
        jax.jit(lambda run, channel: go_back_n_run(run, channel, UNUSED, single_nak=True)),
        partial(packet_recovery.go_back_n, single_nak=True),
    ),
    "selective": (
        jax.jit(lambda run, channel: selective_repeat_run(run, channel, UNUSED, open_losses=24)),
        packet_recovery.selective_repeat,
    ),
}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_run_is_that_of_a_simulation_slot_by_slot(scheme: str):
    simulate, reference = SCHEMES[scheme]
    for flow in FLOWS:
        lists = lists_of_slots(3, 40)
        made = results(simulate(whole(flow), tabled(lists)))
        sets = [set(slots) for slots in lists]
        assert made == [tuple(reference(flow, s.__contains__)) for s in sets]


def test_the_comparison_tells_the_schemes_apart():
    """Other protocols take other times on the same losses."""
    lists = lists_of_slots(4, 60)
    made = results(SCHEMES["once"][0](whole(FLOWS[0]), tabled(lists)))
    again = [
        packet_recovery.go_back_n(FLOWS[0], set(s).__contains__, single_nak=False) for s in lists
    ]
    differ = sum(one != tuple(other) for one, other in zip(made, again, strict=True))
    assert differ > 15


def test_a_run_without_loss_takes_its_packets_and_one_round_trip():
    none = Given(jnp.full((1, 1), NEVER, jnp.int32))
    for simulate, _ in SCHEMES.values():
        assert results(simulate(whole(FLOWS[1]), none)) == [(46, 0)]


RUNS = 4096
FLOW = Flow(200, 20, 24, 2000)
RATE = 0.01


def simulated(scheme: str, channel: Channel) -> tuple[np.ndarray, np.ndarray]:
    drawn = Drawn(5, RUNS)
    if scheme == "selective":
        outcome = jax.jit(lambda c: selective_repeat_run(whole(FLOW), c, drawn))(channel)
    else:
        again = partial(go_back_n_run, single_nak=scheme == "once")
        outcome = jax.jit(lambda c: again(whole(FLOW), c, drawn))(channel)
    slots, timers = (np.ravel(x) for x in outcome)
    assert (slots > 0).all()
    return slots.astype(float), timers


def constant(*values: float) -> list[jax.Array]:
    return [jnp.full((1, 1), v, jnp.float32) for v in values]


@pytest.mark.parametrize("single_nak", [False, True])
def test_closed_forms_of_go_back_n(*, single_nak: bool):
    slots, timers = simulated("once" if single_nak else "again", Independent(*constant(RATE)))
    law = go_back_n_moments(*constant(*FLOW, RATE), single_nak=single_nak)
    chance, mean, deviation, quiet_mean, quiet_deviation = (
        float(x[0, 0])
        for x in (
            law.timer_chance, law.mean, law.deviation,
            law.mean_without_timer, law.deviation_without_timer,
        )
    )  # fmt: skip
    timed = timers > 0
    assert_share(int(timed.sum()), RUNS, chance)
    assert_mean(slots[~timed], quiet_mean, quiet_deviation)
    assert_mean(slots, mean, deviation)
    assert slots[~timed].std() == pytest.approx(quiet_deviation, rel=0.08)
    with pytest.raises(AssertionError):
        assert_mean(slots[~timed], quiet_mean * 1.02, quiet_deviation)


def test_the_mean_of_selective_repeat():
    """Window of one product: the window shuts; 0.5 % beside what chance allows."""
    slots, _ = simulated("selective", Independent(*constant(RATE)))
    mean = float(selective_repeat_mean(*constant(*FLOW, RATE))[0, 0])
    error = slots.std() / RUNS**0.5
    allowed = 4.9 * error + 0.005 * mean
    assert abs(slots.mean() - mean) < allowed
    # go-back-N's cost is more than that away: 20 + 2 slots for every loss, not for a cluster
    wrong = FLOW.packets + FLOW.feedback + FLOW.packets * RATE / (1 - RATE) * 44
    assert abs(slots.mean() - wrong) > allowed


def test_bursts_hit_go_back_n_once():
    """Losses come five in a row on average, each row one stall; lost slots as often as stated."""
    channel = GilbertElliott(*constant(0.0, 1.0, 0.001, 0.2))
    slots, timers = simulated("again", channel)
    quiet = slots[timers == 0]
    rows = FLOW.packets * 0.2 * 0.001 / 0.201 / (1 - 0.001 / 0.201)
    stalls = (quiet.mean() - FLOW.packets - FLOW.feedback) / (FLOW.feedback + 2 + 4)
    # a row that outlasts the round trip hits again: (1 - 0.2)^22 = 0.7 %
    error = 4.9 * quiet.std() / quiet.size**0.5 / (FLOW.feedback + 6)
    assert abs(stalls - rows) < error + 0.03 * rows
    assert stalls < 0.5 * rows * 5
